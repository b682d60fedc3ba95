"""Words for second measurements: tonight's, an earlier night's, and why there was none."""

from dataclasses import replace
from math import nan

import pytest

from orchestrator.domain.finding import Finding, InTurns
from reports.changes.second import confirmed, second_look, second_looks

NIGHT = "20261122T010000Z-nightly-aaaa"
FOUND = Finding("f", "speed", "regressed", "SM8650", "c", confirmed="yes")
KNOWN = replace(FOUND, confirmed="not asked", not_asked="known", known_since=NIGHT)
EARLIER = replace(
    FOUND,
    confirmed_in=NIGHT,
    duels=[
        InTurns("one", "different", 0.0788, 0.07, 0.09, 1e-5, 16, 16),
        InTurns("two", "unknown", nan, nan, nan, 1, 0, 0),
    ],
)


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (FOUND, "confirmed by a second measurement"),
        (EARLIER, "confirmed by a second measurement on 22 Nov, in turns: +8.2 %"),
        (replace(EARLIER, confirmed="unknown", duels=[]), "a second measurement could not tell on 22 Nov"),
        (KNOWN, "not asked again: known since 22 Nov"),
        (replace(FOUND, confirmed="not asked"), "not measured a second time"),
        (
            replace(FOUND, confirmed="not asked", not_asked="budget"),
            "not measured a second time: beyond the night's budget",
        ),
        (replace(FOUND, confirmed="not asked", not_asked="numerics"), "numerics are not measured twice"),
    ],
)
def test_one_finding_says_by_whom_or_why_not(finding: Finding, words: str) -> None:
    assert second_look(finding) == words


def test_several_are_counted_where_they_differ() -> None:
    assert second_looks([]) == "not asked"
    assert second_looks([EARLIER]) == "yes (22 Nov)"
    assert second_looks([KNOWN, KNOWN]) == "not asked again: known since 22 Nov"
    assert second_looks([KNOWN, EARLIER, KNOWN, FOUND]) == (
        "1 yes (22 Nov), 1 yes, 2 not asked again: known since 22 Nov"
    )


def test_a_card_names_the_night_that_all_answers_are_of() -> None:
    assert confirmed([KNOWN]) == ""
    assert confirmed([KNOWN, EARLIER]) == "confirmed in a second measurement on 22 Nov: 1 of 2"
    assert confirmed([FOUND, EARLIER]) == "confirmed in a second measurement: 2 of 2"
    refuted = replace(FOUND, confirmed="no")
    assert confirmed([FOUND, refuted]) == "confirmed in a second measurement: 1 of 2, refuted 1"
    assert confirmed([replace(FOUND, confirmed="unknown")]) == "a second measurement could not tell"
