"""Times for people."""

import pytest

from orchestrator.cli.output import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (42, "42 s"),
        (119, "119 s"),
        (120, "2 min"),
        (3600, "60 min"),
        (7199, "2 h 00 min"),
        (198_992, "55 h 17 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
