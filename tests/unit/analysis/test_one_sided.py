"""A case that was measured and is not any more never vanishes without a word."""

from dataclasses import replace

import pytest

from orchestrator.analysis.compare import compare
from orchestrator.analysis.one_sided import OneSided, by_reason
from orchestrator.domain.results import Excluded, Missing, Pruned, RunResults
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import case, device, passing, results, run_info

POINT, OTHER = case(tile="32x16"), case(tile="8x8")
BEFORE = results(
    trials=[passing(OTHER, "local-1")], points=[OTHER], devices=[device("local-1"), device("local-2")]
)
NOW = results(trials=[passing(POINT, "local-1")], points=[POINT], devices=[device("local-1")])
EXCLUDE = Excluded("tile=8x8", 1, "takes minutes", "farm", "2027-02-01")


def gone(now: RunResults, before: RunResults = BEFORE) -> OneSided:
    (found,) = compare(before, now).missing
    assert (found.case_id, found.label) == (OTHER.case_id, OTHER.label)
    return found


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (NOW, "not planned in the other run"),
        (
            replace(NOW, pruned=[Pruned("local-1", OTHER.case_id, Verdict.UNSUPPORTED, ["lacks fp16"])]),
            "pruned in the other run: lacks fp16",
        ),
        (
            replace(NOW, excluded=[replace(EXCLUDE, when="tile=64x64"), EXCLUDE]),
            "excluded in the other run: tile=8x8: takes minutes (owner farm, until 2027-02-01)",
        ),
        (replace(NOW, excluded=[replace(EXCLUDE, when="'")]), "not planned in the other run"),
        (replace(NOW, devices=[device("other")], trials=[]), "device not in the other run"),
    ],
    ids=["unplanned", "pruned", "excluded", "unreadable exclude", "no device"],
)
def test_what_the_plan_dropped_is_gone(now: RunResults, why: str) -> None:
    found = gone(now)
    assert (found.why, found.gone) == (why, True)


def test_what_was_not_asked_for_is_not_gone() -> None:
    part = replace(NOW, run=replace(run_info(), selection="tile=32x16"))
    assert (gone(part).why, gone(part).gone) == ("not selected in the other run", False)
    elsewhere = replace(NOW, devices=[device("o")], trials=[], run=replace(run_info(), wanted=["o"]))
    assert (gone(elsewhere).why, gone(elsewhere).gone) == ("device not in the other run", False)


@pytest.mark.parametrize("name", ["local-1", "serial-1"])
def test_what_is_told_as_missing_is_not_told_twice(name: str) -> None:
    """A phone that did not take part is missing by its id, or by its serial while nobody has opened it."""
    before = replace(BEFORE, devices=[replace(device("local-1"), serial="serial-1")])
    away = replace(NOW, devices=[device("o")], trials=[], missing=[Missing(name, "", "offline on farm-3")])
    assert gone(away, before).why == "device not in the other run: offline on farm-3"
    assert not gone(away, before).gone
    lost = replace(NOW, missing=[Missing("local-1", OTHER.case_id, "vanished")])
    assert (gone(lost).why, gone(lost).gone) == ("no result in the other run: vanished", False)


def test_another_phone_of_the_soc_stands_for_it() -> None:
    twin = replace(device("local-2"), name="the twin")
    now = results(trials=[passing(OTHER, "local-2")], points=[OTHER], devices=[device("local-1"), twin])
    assert gone(now).why == "measured on the twin in the other run, which has the same SoC"
    assert not gone(now).gone


def test_one_reason_on_one_device_is_one_group_the_largest_first() -> None:
    items = [OneSided("b", "1", "", "pruned"), *(OneSided("a", str(n), "", "device gone") for n in range(3))]
    groups = by_reason([*items, OneSided("a", "9", "", "pruned")])
    assert [(g.device_id, g.why, len(g.items)) for g in groups] == [
        ("a", "device gone", 3), ("b", "pruned", 1), ("a", "pruned", 1),
    ]  # fmt: skip
    assert by_reason([]) == ()
