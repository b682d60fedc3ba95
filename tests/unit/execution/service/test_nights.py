"""The service's nights: when it looks, and what it does with the processes of nights."""

import threading
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.names import NIGHTS_TASK, ORCHESTRATOR_QUEUE
from orchestrator.domain.night import NIGHT_KEY_PREFIX, NightRecord, parse_schedule
from orchestrator.domain.settings import Settings
from orchestrator.execution.beat import make_scheduler
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.night_keeper import NightKeeper, NightRules
from orchestrator.execution.service.inbox import Inbox
from orchestrator.execution.service.nights import LOOK_S, Nights, nights_of
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import RedisClient
from tests.farm import wait_for

NIGHT = "2026-12-01-nightly"


class Process:
    """A child that ends when the test says so."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.told: list[str] = []

    def ended(self) -> int | None:
        return self.code

    def ask_to_stop(self) -> None:
        self.told.append("stop")

    def kill(self) -> None:
        self.told.append("kill")

    def last_words(self) -> str:
        return "no such option: --matrx"


class Service:
    """Nights with made-up clocks and processes."""

    def __init__(self, out: Path, client: RedisClient) -> None:
        self.time = datetime(2026, 11, 30, 12, tzinfo=UTC)
        self.clock = 0.0
        self.leads = True
        self.processes: list[Process] = []
        self.folder = NightFolder(out)
        rules = NightRules(parse_schedule("nightly@01:00"), timedelta(hours=8), timedelta(hours=6))
        keeper = NightKeeper(self.folder, NightClaims(client), rules, "host", lambda: self.time)
        self.nights = Nights(keeper, self._start, lambda: self.leads, now=lambda: self.clock)

    def _start(self, record: NightRecord) -> Process:
        assert record.night == NIGHT
        self.processes.append(Process())
        return self.processes[-1]

    def at(self, hour: int, minute: int = 0) -> None:
        self.time = datetime(2026, 12, 1, hour, minute, tzinfo=UTC)


@pytest.fixture
def service(tmp_path: Path, client: RedisClient) -> Service:
    for key in client.scan_iter(match=f"{NIGHT_KEY_PREFIX}*"):
        client.delete(key.decode())
    made = Service(tmp_path, client)
    made.nights.tick()
    return made


def test_it_looks_at_its_start_when_it_is_told_to_and_now_and_then(service: Service) -> None:
    service.at(1)
    service.nights.tick()
    assert service.nights.children == 0  # no message yet
    service.nights.wake()
    service.nights.tick()
    assert service.nights.children == 1
    service.processes[0].code = 3  # its Redis was away
    service.nights.tick()
    assert service.nights.children == 0
    service.clock += LOOK_S
    service.nights.tick()  # without any message
    assert service.nights.children == 1


def test_messages_that_come_twice_start_one_process(service: Service) -> None:
    service.at(1)
    for _ in range(3):
        service.nights.wake()
        service.nights.tick()
    assert len(service.processes) == 1
    assert service.folder.get(NIGHT).starts == 1


def test_one_that_stands_by_looks_at_nothing(service: Service) -> None:
    service.leads = False
    service.at(1)
    service.nights.wake()
    service.nights.tick()
    assert service.processes == []
    service.leads = True  # the other one is gone
    service.nights.tick()
    assert len(service.processes) == 1


def test_a_process_that_was_called_wrongly_is_not_called_again(service: Service) -> None:
    service.at(1)
    service.nights.wake()
    service.nights.tick()
    service.processes[0].code = UsageError.exit_code
    service.nights.wake()
    service.nights.tick()
    assert len(service.processes) == 1
    found = service.folder.get(NIGHT)
    assert (found.state, found.why) == ("failed", "no such option: --matrx")


def test_at_its_end_nothing_begins_and_processes_are_told(service: Service) -> None:
    service.at(1)
    service.nights.wake()
    service.nights.tick()
    service.nights.stop()
    service.nights.kill()
    assert service.processes[0].told == ["stop", "kill"]
    service.processes[0].code = 130
    service.nights.wake()
    service.nights.tick()
    assert (service.nights.children, len(service.processes)) == (0, 1)
    assert service.folder.get(NIGHT).state == "started"  # the next orchestrator goes on with it


def test_settings_that_cannot_be_read_end_the_service_before_it_serves(
    redis_url: str, tmp_path: Path
) -> None:
    for wrong in (
        Settings(broker=redis_url, nights="nightly"),
        Settings(broker=redis_url, night_options="'"),
    ):
        with pytest.raises(UsageError), nights_of(wrong, tmp_path, lambda: True):
            pass


@pytest.fixture
def inbox(redis_url: str) -> Generator[Inbox]:
    made = Inbox(redis_url)
    yield made
    made.close()


def test_beats_message_reaches_the_service(inbox: Inbox, redis_url: str) -> None:
    """Celery's own beat, worker and Redis; what nobody read in time is thrown away unread."""
    heard = threading.Event()
    scheduler = make_scheduler(redis_url, 300)
    for expires in (0.001, 300):
        scheduler.app.send_task(NIGHTS_TASK, queue=ORCHESTRATOR_QUEUE, expires=expires)
    count: list[int] = []

    def message() -> None:
        count.append(1)
        heard.set()

    inbox.keep_open(message)
    inbox.keep_open(message)  # it is open
    wait_for(heard.is_set, "beat's message")
    assert count == [1]
    scheduler.close()
