"""One bounded story on a whole farm; `python -m tests.chaos` tells longer ones."""

from pathlib import Path

import pytest

from tests.chaos.check import check
from tests.chaos.farm import chaos_farm
from tests.chaos.matrix import write_matrix
from tests.chaos.play import play
from tests.chaos.story import KINDS, counted, story

CASES, PHONES, CASE_MS = 40, 3, 100
SEED = 4


def test_the_same_seed_tells_the_same_story_in_words() -> None:
    told = [str(e) for e in story(7, cases=2000, phones=4, shelves=2, events=50)]
    assert told == [str(e) for e in story(7, cases=2000, phones=4, shelves=2, events=50)]
    assert told != [str(e) for e in story(8, cases=2000, phones=4, shelves=2, events=50)]
    assert told[0] == "after 105 results: phone 0 has no room for its next two files"


@pytest.mark.parametrize("seed", range(20))
def test_a_story_has_every_kind_as_often_and_ends_while_there_is_something_to_lose(seed: int) -> None:
    events = story(seed, cases=2000, phones=4, shelves=2, events=50)
    assert set(counted(events).values()) == {5}
    assert events == sorted(events, key=lambda e: e.after)
    assert events[0].after >= 100
    assert events[-1].after <= 1600
    assert {e.target for e in events if e.kind in ("agent", "adb")} <= {0, 1}
    assert {e.target for e in events if e.kind in ("redis", "dispatcher")} == {0}


def test_whatever_is_killed_each_case_has_one_right_result_and_no_phone_works_for_two(tmp_path: Path) -> None:
    """A worker, an agent, an adb server, Redis and the run itself are killed; links drop and drip, a phone
    restarts, a disk is full, a file arrives damaged. One host's clock is 15 minutes ahead, and its workers
    take from others what those have had in hand for two seconds."""
    events = story(SEED, cases=CASES * PHONES, phones=PHONES, shelves=2, events=len(KINDS))
    matrix = write_matrix(tmp_path, CASES)
    with chaos_farm(tmp_path, phones=PHONES, case_ms=CASE_MS) as farm:
        played = play(farm, ["--matrix", str(matrix)], events)
        found = check(farm, played.run_folder)
        assert farm.redeliveries() > 0
    assert played.struck == events
    assert played.given_up == 0, "nothing but its own death ends a run before its report"
    assert len(found.outcomes) == CASES * PHONES
    assert found.accepted == len(found.outcomes), found.named
