"""An orchestrator's nights on disk and in Redis: each is begun once, whoever looks and whatever dies."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis

from orchestrator.domain.night import NIGHT_KEY_PREFIX, NightRecord, parse_schedule
from orchestrator.domain.results import MissedNight
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.night_keeper import MAX_STARTS, NightKeeper, NightRules
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import RedisClient

HOUR = timedelta(hours=1)


class Host:
    """An orchestrator: its OUT, its clock, and the nights that it was told to start."""

    def __init__(self, out: Path, client: RedisClient, schedule: str = "nightly@01:00") -> None:
        self.folder = NightFolder(out)
        self.client = client
        self.claims = NightClaims(client)
        self.name = out.name
        self.schedule = schedule
        self.started: list[str] = []

    def look(self, now: str) -> list[str]:
        """A process looks, starts what it must, and is killed."""
        moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
        rules = NightRules(parse_schedule(self.schedule), 8 * HOUR, 6 * HOUR)
        begun = NightKeeper(self.folder, self.claims, rules, self.name, lambda: moment).look()
        self.started += [record.night for record in begun]
        return [record.night for record in begun]

    def end(self, night: str, **changes: str) -> None:
        """The process of a night ends with a report."""
        state = changes.pop("state", "finished")
        assert state in ("finished", "failed")
        self.folder.replace(replace(self.folder.get(night), state=state, **changes))

    def states(self) -> dict[str, str]:
        return {night: record.state for night, record in self.folder.all().items()}


@pytest.fixture
def farm(client: RedisClient) -> RedisClient:
    """The nights of earlier tests are over."""
    for key in client.scan_iter(match=f"{NIGHT_KEY_PREFIX}*"):
        client.delete(key.decode())
    return client


@pytest.fixture
def host(tmp_path: Path, farm: RedisClient) -> Host:
    host = Host(tmp_path / "a", farm)
    assert host.look("2026-11-30T12:00") == []
    return host


def test_the_first_start_of_a_farm_has_missed_nothing(host: Host) -> None:
    assert host.states() == {}
    assert host.look("2026-12-01T00:59") == []
    assert host.look("2026-12-01T01:00") == ["2026-12-01-nightly"]


def test_beats_that_come_twice_start_one_night(host: Host) -> None:
    host.look("2026-12-01T01:00")
    host.end("2026-12-01-nightly")
    for now in ("2026-12-01T01:00", "2026-12-01T01:00", "2026-12-01T01:05", "2026-12-01T23:55"):
        assert host.look(now) == []
    assert host.states() == {"2026-12-01-nightly": "finished"}


def test_a_night_at_work_is_not_started_beside_itself(host: Host) -> None:
    host.look("2026-12-01T01:00")
    with host.folder.alone("2026-12-01-nightly") as alone:
        assert alone
        assert host.look("2026-12-01T01:05") == []
    assert host.look("2026-12-01T01:10") == ["2026-12-01-nightly"]  # its process died
    assert host.folder.get("2026-12-01-nightly").starts == 2


def test_two_orchestrators_with_their_own_folders_make_one_night(
    host: Host, tmp_path: Path, farm: RedisClient
) -> None:
    other = Host(tmp_path / "b", farm)
    other.look("2026-11-30T12:00")
    assert host.look("2026-12-01T01:00") == ["2026-12-01-nightly"]
    assert other.look("2026-12-01T01:00") == []
    assert other.folder.get("2026-12-01-nightly").host == "a"
    host.end("2026-12-01-nightly", verdict="all passed")
    assert host.look("2026-12-01T05:00") == []
    assert other.look("2026-12-01T05:00") == []
    assert other.folder.get("2026-12-01-nightly").verdict == "all passed"


def test_another_orchestrator_was_first_although_our_record_is_there(
    host: Host, tmp_path: Path, farm: RedisClient
) -> None:
    """Killed after its record, before Redis knew; meanwhile the other one took the night."""
    other = Host(tmp_path / "b", farm)
    other.look("2026-11-30T12:00")
    host.look("2026-12-01T01:00")
    ours = host.folder.get("2026-12-01-nightly")
    host.folder.replace(replace(ours, starts=0))
    farm.delete(NIGHT_KEY_PREFIX + ours.night)
    assert other.look("2026-12-01T01:01") == ["2026-12-01-nightly"]
    assert host.look("2026-12-01T01:05") == []
    assert host.folder.get("2026-12-01-nightly").host == "b"


def test_two_processes_of_one_folder_do_not_look_at_once(host: Host) -> None:
    with host.folder.alone("keeper"):
        assert host.look("2026-12-01T01:00") == []
    assert host.look("2026-12-01T01:00") == ["2026-12-01-nightly"]


def test_killed_between_record_and_start_it_is_started_once(host: Host, farm: RedisClient) -> None:
    """With the run id that the first start would have used, and Redis told of it."""
    host.look("2026-12-01T01:00")  # killed with its answer
    first = host.folder.get("2026-12-01-nightly")
    farm.delete(NIGHT_KEY_PREFIX + first.night)  # or even before it was claimed
    assert host.look("2026-12-01T01:30") == ["2026-12-01-nightly"]
    second = host.folder.get("2026-12-01-nightly")
    assert second.run_id == first.run_id == "20261201T010000Z-nightly-night"
    assert second.started_at == first.started_at  # and so is its deadline
    assert list(NightClaims(farm).all()) == ["2026-12-01-nightly"]


def test_redis_that_lost_its_data_makes_no_second_night(host: Host, farm: RedisClient) -> None:
    host.look("2026-12-01T01:00")
    host.end("2026-12-01-nightly")
    farm.delete(NIGHT_KEY_PREFIX + "2026-12-01-nightly")
    assert host.look("2026-12-01T02:00") == []
    assert NightClaims(farm).all()["2026-12-01-nightly"].state == "finished"


def test_redis_remembers_no_night_for_ever(host: Host, farm: RedisClient) -> None:
    host.look("2026-12-01T01:00")
    host.end("2026-12-01-nightly")
    farm.delete(NIGHT_KEY_PREFIX + "2026-12-01-nightly")  # as after its time to live
    host.look("2027-02-01T00:00")
    assert "2026-12-01-nightly" not in NightClaims(farm).all()
    assert host.states()["2026-12-01-nightly"] == "finished"


def test_down_for_three_days(host: Host) -> None:
    assert host.look("2026-12-04T03:00") == ["2026-12-04-nightly"]
    assert host.states() == {
        "2026-12-01-nightly": "missed",
        "2026-12-02-nightly": "missed",
        "2026-12-03-nightly": "missed",
        "2026-12-04-nightly": "started",
    }
    why = "nobody looked between 2026-11-30 12:00 and 2026-12-04 03:00 UTC, or Redis did not answer"
    assert host.folder.get("2026-12-04-nightly").missed == [
        MissedNight(f"2026-12-0{n}-nightly", why) for n in (1, 2, 3)
    ]


def test_a_clock_that_goes_back_starts_nothing_again(host: Host) -> None:
    host.look("2026-12-01T01:10")
    host.end("2026-12-01-nightly")
    assert host.look("2026-12-01T00:10") == []
    assert host.look("2026-12-01T01:00") == []
    assert host.look("2026-12-02T01:00") == ["2026-12-02-nightly"]


def test_a_clock_that_was_ahead_takes_no_later_night_away(host: Host) -> None:
    """It told three nights as missed that had not come yet, and started the fourth, which has its run."""
    assert host.look("2026-12-04T01:00") == ["2026-12-04-nightly"]
    host.end("2026-12-04-nightly")
    for day in ("2026-12-01", "2026-12-02", "2026-12-03"):
        assert host.look(f"{day}T01:30") == [f"{day}-nightly"]
        host.end(f"{day}-nightly")
    assert host.look("2026-12-04T01:00") == []
    assert host.look("2026-12-05T01:00") == ["2026-12-05-nightly"]


def test_another_hosts_clock_that_is_ahead_takes_no_night_from_us(
    host: Host, tmp_path: Path, farm: RedisClient
) -> None:
    other = Host(tmp_path / "b", farm)
    other.look("2026-11-30T12:00")
    other.look("2026-12-05T12:00")  # it tells five nights as missed that are still to come
    assert set(NightClaims(farm).all()) == {f"2026-12-0{n}-nightly" for n in range(1, 6)}
    assert host.look("2026-12-01T01:00") == ["2026-12-01-nightly"]
    assert NightClaims(farm).all()["2026-12-01-nightly"].host == "a"
    assert other.look("2026-12-05T13:00") == []
    assert other.states()["2026-12-01-nightly"] == "started"


def test_a_changed_schedule_begins_when_it_is_first_seen(host: Host) -> None:
    host.schedule = "nightly@02:00, speed@Sun 03:00"
    assert host.look("2026-12-01T06:00") == []
    why = "the schedule was changed to nightly@02:00, speed@Sun 03:00 before it was started"
    assert host.folder.get("2026-12-01-nightly").why == why
    assert host.look("2026-12-02T01:30") == []
    assert host.look("2026-12-02T02:00") == ["2026-12-02-nightly"]
    assert host.states()["2026-12-01-nightly"] == "missed"


def test_a_suite_that_is_scheduled_no_more_has_no_nights(host: Host) -> None:
    host.schedule = ""
    assert host.look("2026-11-30T13:00") == []
    assert host.look("2026-12-02T02:00") == []
    assert host.states() == {}


class Unreachable(NightClaims):
    def all(self) -> dict[str, NightRecord]:
        raise redis.ConnectionError("Connection refused")


def test_without_redis_no_night_begins_and_none_is_forgotten(host: Host) -> None:
    there = host.claims
    host.claims = Unreachable(host.client)
    assert host.look("2026-12-01T01:00") == []
    assert host.states() == {}
    host.claims = there
    assert host.look("2026-12-01T03:00") == ["2026-12-01-nightly"]


def test_g3_07_without_redis_a_night_gets_its_report_at_the_deadline(host: Host) -> None:
    """G3-07: what collects the report depends on nothing that a lost task or Redis can take away."""
    host.look("2026-12-01T01:00")
    host.claims = Unreachable(host.client)
    assert host.look("2026-12-01T08:59") == []
    assert host.look("2026-12-01T09:00") == ["2026-12-01-nightly"]


def test_a_night_whose_processes_all_die_is_told_as_failed(host: Host) -> None:
    for minute in range(2 * MAX_STARTS + 2):
        host.look(f"2026-12-01T{1 + minute // 60:02d}:{minute % 60:02d}")
    assert len(host.started) == MAX_STARTS
    for minute in range(MAX_STARTS + 5):
        host.look(f"2026-12-01T09:{minute:02d}")
    assert len(host.started) == 2 * MAX_STARTS
    assert host.look("2026-12-02T01:00") == ["2026-12-02-nightly"]
    (missed,) = host.folder.get("2026-12-02-nightly").missed
    assert missed.why == f"{2 * MAX_STARTS} processes ended without a report; see their logs"


def test_a_record_in_redis_that_names_another_night_is_left_out(farm: RedisClient, host: Host) -> None:
    host.look("2026-12-01T01:00")
    text = farm.get(NIGHT_KEY_PREFIX + "2026-12-01-nightly")
    assert text is not None
    for key in ("2026-12-02-nightly", "../../x"):
        farm.set(NIGHT_KEY_PREFIX + key, text.decode(), ex=60)
    farm.set(NIGHT_KEY_PREFIX + "2026-12-03-nightly", "no JSON", ex=60)
    assert list(NightClaims(farm).all()) == ["2026-12-01-nightly"]
