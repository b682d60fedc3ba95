"""`tilefarm example` never touches what is not its own; docs/example.md makes one."""

from pathlib import Path

from orchestrator.domain.errors import UsageError
from tests.unit.cli.conftest import Invoke


def test_a_folder_with_something_else_is_left_alone(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("two years")
    found = invoke("example", str(tmp_path))
    assert isinstance(found.exception, UsageError)
    assert "is no example of ours and not empty" in str(found.exception)
    assert (tmp_path / "thesis.txt").read_text() == "two years"
