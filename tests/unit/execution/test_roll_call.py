"""A phone that took part in the last nights and is not there tonight is missing, until it is let go."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.execution.roll_call import EXPECTED_FOR, Roll, Rolls
from tests.results_fixture import device

NIGHT = datetime(2026, 12, 1, 1, tzinfo=UTC)


def roll(*ids: str, at: datetime = NIGHT) -> Roll:
    return Roll().after(
        [device(i, name=f"phone {i}", serial=f"serial-{i}") for i in ids], "RUN", at.isoformat()
    )


def absent(
    known: Roll, there: set[str], named: Collection[str] = (), at: datetime = NIGHT, known_of: str = ""
) -> list[tuple[str, str]]:
    return [(m.device_id, m.why) for m in known.absent(there, named, at, lambda _: known_of)]


def test_who_is_not_there_is_missing_with_what_the_farm_knows() -> None:
    why = "phone b took part in run RUN and is not served now: "
    assert absent(roll("a", "b"), {"a"}) == [("b", why + "no agent knows of it")]
    assert absent(roll("a", "b"), {"a"}, known_of="offline on farm-3") == [("b", why + "offline on farm-3")]
    assert absent(roll("a", "b"), {"a", "b", "c"}) == []
    assert absent(Roll(), {"a"}) == []


def test_who_is_missing_already_is_not_told_twice() -> None:
    serial = roll("b").seen["b"].serial
    assert absent(roll("b"), set(), {"b"}) == absent(roll("b"), set(), {serial}) == []


def test_it_stays_missing_night_after_night_for_a_fortnight() -> None:
    known = roll("a", "b")
    for days in range(1, 20):
        now = NIGHT + timedelta(days=days)
        assert [name for name, _ in absent(known, {"a"}, at=now)] == (["b"] if days <= 14 else [])
        known = known.after([device("a")], f"RUN-{days}", now.isoformat())
    assert list(known.seen) == ["a"]
    assert timedelta(days=14) == EXPECTED_FOR


def test_a_roll_is_kept_for_each_suite_and_forgets_on_demand(tmp_path: Path) -> None:
    rolls = Rolls(tmp_path)
    assert rolls.get("nightly") == Roll()
    assert rolls.forget("a") == []
    rolls.put("nightly", roll("a", "b"))
    rolls.put("speed", roll("b"))
    assert rolls.get("nightly") == roll("a", "b")
    assert rolls.forget(roll("b").seen["b"].serial) == ["b"]
    assert (list(rolls.get("nightly").seen), list(rolls.get("speed").seen)) == (["a"], [])
    (tmp_path / "nights" / "phones-nightly.json").write_text("of another version")
    assert rolls.get("nightly") == Roll()
