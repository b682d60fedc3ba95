"""The agent's loop on a made-up host: adb's list, phones, workers and Redis are scripts, time is a number."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import pytest

from orchestrator.domain.agent import AgentReport, News, PhoneReport
from orchestrator.domain.errors import InfraError
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Condition, Failed, Rung, Vitals, Vouched
from orchestrator.domain.lease import Hold
from tests.results_fixture import device
from workers.__main__ import EXIT_DEVICE
from workers.agent.agent import Agent
from workers.agent.station import Identity
from workers.discovery import Reachable
from workers.transports.adb_listing import PhoneListing


@dataclass
class Child:
    pid: int
    found: Reachable
    code: int | None = None
    stopped: bool = False
    words: str = "words"

    def ended(self) -> int | None:
        return self.code

    def ask_to_stop(self) -> None:
        self.stopped = True

    def kill(self) -> None:
        self.code = -9

    def last_words(self) -> str:
        return self.words


@dataclass
class Host:
    """World and farm in one; an agent ticks on it."""

    now: float = 1000.0
    silent: set[str] = field(default_factory=set[str])
    starting: set[str] = field(default_factory=set[str])
    refuses: Exception | None = None
    """Why no worker can be started."""
    connected: list[str] = field(default_factory=list[str])
    waits: bool = False
    """Calls are not done before ``finish``."""
    calls: "list[tuple[Future[object], Callable[[], object]]]" = field(
        default_factory=list[tuple["Future[object]", Callable[[], object]]]
    )
    left: list[threading.Event] = field(default_factory=list[threading.Event])
    strangers: list[Registration] = field(default_factory=list[Registration])
    """Workers that are not this agent's."""
    identities: dict[str, Identity] = field(default_factory=dict[str, Identity])
    helps: Rung | None = None
    """The rung after which silent phones answer."""
    children: list[Child] = field(default_factory=list[Child])
    climbed: list[tuple[str, Rung]] = field(default_factory=list[tuple[str, Rung]])
    asked: list[str] = field(default_factory=list[str])
    held: dict[str, Hold] = field(default_factory=dict[str, Hold])
    leased: set[str] = field(default_factory=set[str])
    told: dict[str, list[News]] = field(default_factory=dict[str, list[News]])
    reports: list[AgentReport] = field(default_factory=list[AgentReport])
    rows: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.agent = Agent(
            AgentReport("shelf", 1, "2026-11-30T12:00:00+00:00", ""),
            self,
            self,
            clock=lambda: self.now,
            wall=lambda: self.now + 1e9,
        )

    def identify(self, serial: str) -> Identity:
        self.asked.append(serial)
        if serial in self.silent:
            raise InfraError("no answer within 10 s")
        known = Identity(serial, "boot-1", serial not in self.starting, f"id-{serial}")
        return self.identities.get(serial, known)

    def connect(self, serial: str) -> None:
        self.connected.append(serial)

    def climb(self, rung: Rung, serial: str, leave: threading.Event) -> None:
        self.left.append(leave)
        self.climbed.append((serial, rung))
        if rung is not self.helps:
            raise InfraError("it did not come back")
        self.silent.discard(serial)

    def start_worker(self, found: Reachable) -> Child:
        if self.refuses is not None:
            raise self.refuses
        self.children.append(Child(len(self.children) + 100, found))
        return self.children[-1]

    def later(self, call: Callable[[], object]) -> "Future[object]":
        done: Future[object] = Future()
        self.calls.append((done, call))
        if not self.waits:
            self.finish()
        return done

    def finish(self) -> None:
        """Do what was put off."""
        for done, call in self.calls:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(call())
                except (InfraError, ValueError) as e:
                    done.set_exception(e)
        self.calls.clear()

    def registrations(self) -> Sequence[Registration]:
        ours = [self.registration(c) for c in self.children if c.code is None]
        taken = {s.record.device_id for s in self.strangers}
        return [*self.strangers, *(r for r in ours if r.record.device_id not in taken)]

    def registration(self, child: Child) -> Registration:
        known = self.identities.get(child.found.serial)
        record = device(known.device_id if known else f"id-{child.found.serial}", serial=child.found.serial)
        return Registration(replace(record, host="shelf"), f"w{child.pid}", "", child.pid)

    def holds(self) -> Sequence[Hold]:
        return list(self.held.values())

    def busy(self, device_id: str) -> bool:
        return device_id in self.leased

    def news(self, device_id: str) -> Iterable[News]:
        return self.told.pop(device_id, [])

    def publish(self, report: AgentReport) -> None:
        self.reports.append(report)

    def shows(self, **rows: str) -> None:
        """adb's list from now on: ``a="device"``."""
        self.rows = rows
        self.agent.listed(
            [PhoneListing(s, w, "" if w == "device" else "why") for s, w in rows.items()], "adb"
        )

    def run(self, seconds: float = 2.0, step: float = 0.5) -> None:
        for _ in range(round(seconds / step)):
            self.now += step
            self.agent.tick()

    def phone(self, serial: str) -> PhoneReport:
        return next(p for p in self.reports[-1].phones if p.serial == serial)

    def serving(self) -> list[str]:
        return [c.found.serial for c in self.children if c.code is None and not c.stopped]


class Log:
    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, event: str, **_facts: object) -> None:
        self.errors.append(event)

    exception = error


@pytest.fixture
def host() -> Host:
    return Host()


def test_each_phone_that_answers_gets_a_worker(host: Host) -> None:
    host.starting.add("b")
    host.shows(a="device", b="device", c="unauthorized")
    host.run()
    assert host.serving() == ["a"]
    assert host.phone("a").condition is Condition.ONLINE
    assert (host.phone("b").condition, host.phone("b").why) == (
        Condition.BOOTING,
        "Android is still starting",
    )
    assert (host.phone("c").condition, host.phone("c").why) == (Condition.UNAUTHORIZED, "why")
    host.starting.clear()
    host.shows(a="device", b="device", c="device")
    host.run(12)
    assert sorted(host.serving()) == ["a", "b", "c"]
    assert host.climbed == []


def test_the_worker_of_an_unplugged_phone_ends_and_a_new_one_comes_with_it(host: Host) -> None:
    host.shows(a="device", b="device")
    host.run()
    host.shows(b="device")
    host.run()
    assert host.children[0].stopped
    assert host.phone("a").condition is Condition.OFFLINE
    assert host.serving() == ["b"]
    host.children[0].code = 0
    host.shows(a="device", b="device")
    host.run(12)
    assert host.serving() == ["b", "a"]
    assert host.climbed == []


def test_a_silent_phone_is_recovered_rung_by_rung(host: Host) -> None:
    host.silent.add("a")
    host.helps = Rung.REBOOT
    host.shows(a="device", b="device")
    host.run(60)
    assert host.climbed == [("a", Rung.RECONNECT), ("a", Rung.ADB_RECONNECT), ("a", Rung.REBOOT)]
    assert host.serving() == ["b", "a"]
    assert not host.phone("a").trusted
    host.told["id-a"] = [Vouched(host.now)]
    host.run(1)
    assert host.phone("a").trusted


def test_what_nothing_helps_is_quarantined_and_tried_again_after_it(host: Host) -> None:
    host.silent.add("a")
    host.shows(a="device")
    host.run(90)
    found = host.phone("a")
    assert found.condition is Condition.QUARANTINED
    assert found.until > found.since
    tried = len(host.climbed)
    asked = len(host.asked)
    host.run(1000, step=5)
    assert (len(host.climbed), len(host.asked)) == (tried, asked)
    host.silent.clear()
    host.helps = Rung.RECONNECT
    host.run(1000, step=5)
    assert host.serving() == ["a"]


def test_a_batch_that_infrastructure_took_starts_the_ladder_at_a_mild_rung(host: Host) -> None:
    host.helps = Rung.RECONNECT
    host.shows(a="device")
    host.run()
    host.told["id-a"] = [Failed(host.now, "the link dropped")]
    host.run(1)
    assert host.children[0].stopped
    host.children[0].code = 0
    host.run(8)
    assert host.climbed == [("a", Rung.RECONNECT)]
    host.run(12)
    assert host.serving() == ["a"]


def test_g2_06_all_phones_of_a_dead_server_come_back_without_a_reboot(host: Host) -> None:
    """G2-06: the server dies and is restarted; B to F are rescheduled, nobody is blamed."""
    names = dict.fromkeys("abcdef", "device")
    host.shows(**names)
    host.run()
    host.agent.no_server("none answers")
    host.run(5)
    assert len(host.serving()) == 6, "a restart takes seconds; workers find out for themselves"
    host.run(12)
    assert host.serving() == []
    assert host.phone("a").why == "no adb server: none answers"
    assert host.reports[-1].adb == "none answers"
    for child in host.children:
        child.code = 0
    host.shows(**names)
    host.run(12)
    assert sorted(host.serving()) == sorted(names)
    assert host.climbed == []


def test_a_phone_is_not_asked_while_a_batch_runs_there(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.leased.add("id-a")
    host.run(1)
    before = len(host.asked)
    host.run(60)
    assert len(host.asked) == before
    host.leased.clear()
    host.silent.add("a")
    host.run(45)
    assert host.phone("a").condition is Condition.RECOVERING


def test_a_worker_that_cannot_run_for_the_hosts_sake_is_no_phones_fault(host: Host) -> None:
    host.shows(a="device")
    host.run()
    for _ in range(3):
        host.children[-1].code, host.children[-1].words = 3, "runner is not built"
        host.run(20)
    assert host.climbed == []
    assert (host.phone("a").condition, len(host.children)) == (Condition.ONLINE, 4)
    host.children[-1].code = 3
    host.now += 0.5
    host.agent.tick()
    assert host.phone("a").why == "its worker ended with 3: words"
    crashes = len(host.children)
    host.run(10)
    assert len(host.children) == crashes, "each time it is waited longer"


def test_a_worker_that_lost_its_phone_starts_the_ladder(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.children[0].code = EXIT_DEVICE
    host.run(7)
    assert host.climbed[0] == ("a", Rung.RECONNECT)


def test_one_phone_under_two_serials_has_one_worker(host: Host) -> None:
    usb, wifi = "R58", "192.168.1.5:5555"
    same = Identity("R58", "boot-1", booted=True, device_id="id-R58")
    host.identities = {usb: same, wifi: same}
    host.shows(**{wifi: "device", usb: "device"})
    host.run(3)
    assert len(host.children) == 1
    (only,) = host.serving()
    assert [p.serial for p in host.reports[-1].phones] == [only]
    gone = {usb: "device", wifi: "device"}
    del gone[only]
    host.shows(**gone)
    host.children[0].code = 0
    host.run(12)
    assert host.serving() == list(gone)


def test_a_held_phone_is_not_asked_and_its_worker_waits(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.held["a"] = Hold("id-a", "anna@desk", "new battery", "2026-11-30T12:00:00+00:00", "a", "shelf")
    host.run(1)
    asked = len(host.asked)
    host.shows()
    host.run(60)
    host.shows(a="device")
    host.run(60)
    assert host.phone("a").condition is Condition.MAINTENANCE
    assert "new battery" in host.phone("a").why
    assert (len(host.asked), host.climbed, host.serving()) == (asked, [], ["a"])
    host.held.clear()
    host.run(12)
    assert host.phone("a").condition is Condition.ONLINE


def test_gates_are_shown_and_left_to_the_worker(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.told["id-a"] = [Vitals(host.now, battery_c=41.0)]
    host.run(1)
    assert (host.phone("a").condition, host.phone("a").why) == (Condition.HOT, "41.0 °C > 35 °C")
    assert host.serving() == ["a"]


def test_a_local_gpu_has_a_worker_that_is_started_again(host: Host) -> None:
    host.agent.serve_local(Reachable("local", "local:H200"))
    host.run()
    host.children[0].code = EXIT_DEVICE
    host.told["id-local:H200"] = [Failed(host.now, "x")]
    host.run(10)
    assert host.serving() == ["local:H200"]
    assert host.reports[-1].phones == []


def test_at_the_end_workers_finish_their_batches_and_none_is_started(host: Host) -> None:
    host.shows(a="device", b="device")
    host.run()
    host.agent.stop()
    assert all(c.stopped for c in host.children)
    assert host.agent.workers == 2
    host.children[0].code = host.children[1].code = 0
    host.run(20)
    assert (host.agent.workers, len(host.children)) == (0, 2)


TAKEN = Hold("id-a", "anna@desk", "new battery", "2026-11-30T12:00:00+00:00", "a", "shelf")
USB, WIFI = "R58", "192.168.1.5:5555"


def stranger(device_id: str, pid: int = 7, host: str = "shelf") -> Registration:
    return Registration(replace(device(device_id, serial="x"), host=host), "old", "", pid)


def two_links(host: Host) -> None:
    """One phone through USB and Wi-Fi, served through USB."""
    same = Identity("R58", "boot-1", booted=True, device_id="id-R58")
    host.identities = {USB: same, WIFI: same}
    host.shows(**{USB: "device"})
    host.run(3)
    host.shows(**{USB: "device", WIFI: "device"})
    host.run(3)
    assert host.serving() == [USB]


def test_a_new_agent_waits_for_the_workers_of_its_predecessor(host: Host) -> None:
    """They end their batches: nothing is asked of their phones, climbed or started meanwhile."""
    host.strangers, host.leased = [stranger("id-a")], {"id-a"}
    host.shows(a="device")
    host.run(300, step=2)
    assert (host.asked, host.climbed, host.children) == (["a"], [], [])
    assert host.phone("a").why == "served by process 7 on shelf"
    host.silent.add("a")
    host.leased.clear()
    host.run(60)
    assert host.phone("a").condition is Condition.RECOVERING
    assert host.climbed == [], "it still serves: the phone is well"
    host.silent.clear()
    host.strangers.clear()
    host.helps = Rung.RECONNECT
    host.run(20)
    assert host.serving() == ["a"]


def test_a_phone_that_another_host_has_leased_is_not_climbed(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.children[0].code = EXIT_DEVICE
    host.leased = {"id-a"}
    host.run(300, step=2)
    assert host.climbed == []
    host.leased.clear()
    host.run(10)
    assert host.climbed[0] == ("a", Rung.RECONNECT)


def test_the_other_link_of_a_phone_is_not_asked_during_a_batch_nor_climbed(host: Host) -> None:
    two_links(host)
    host.leased = {"id-R58"}
    host.run(1)
    asked = len(host.asked)
    host.run(60)
    assert len(host.asked) == asked
    host.leased.clear()
    host.silent.add(WIFI)
    host.run(300, step=2)
    host.shows(**{USB: "device", WIFI: "offline"})
    host.run(300, step=2)
    assert (host.climbed, host.serving()) == ([], [USB])
    assert [p.serial for p in host.reports[-1].phones] == [USB]
    host.shows(**{USB: "device"})
    host.run(20)
    assert [p.serial for p in host.reports[-1].phones] == [USB], "nothing is missing: the phone is there"
    host.identities[USB] = replace(host.identities[USB], boot_id="boot-2")
    host.run(20)
    assert [p.serial for p in host.reports[-1].phones] == [USB], "also after it restarted"


def test_a_held_phone_is_left_alone_through_its_other_link(host: Host) -> None:
    two_links(host)
    host.held["R58"] = replace(TAKEN, device_id="id-R58", serial=USB)
    host.run(1)
    asked = len(host.asked)
    host.shows(**{WIFI: "device"})
    host.children[0].code = 0
    host.run(60)
    assert (len(host.asked), len(host.children), host.climbed) == (asked, 1, [])
    assert host.phone(WIFI).condition is Condition.MAINTENANCE


def test_a_rung_ends_when_a_person_takes_the_phone(host: Host) -> None:
    host.shows(a="device", b="device")
    host.run()
    for child in host.children:
        child.code = EXIT_DEVICE
    host.waits = True
    host.run(7)
    (running, climb), (queued, _) = host.calls
    assert running.set_running_or_notify_cancel()
    host.held = {"a": TAKEN, "b": replace(TAKEN, device_id="id-b", serial="b")}
    host.run(1)
    assert queued.cancelled(), "one that waits for a thread never begins"
    with pytest.raises(InfraError):
        climb()
    assert host.left[0].is_set()
    running.set_exception(InfraError("left alone"))
    host.calls.clear()
    host.run(60)
    for serial in "ab":
        assert host.phone(serial).condition is Condition.MAINTENANCE
        assert host.agent.stations[serial].health.rung == 0, "it was not tried"
    assert host.calls == []


def test_a_local_gpu_that_was_held_works_again(host: Host) -> None:
    host.agent.serve_local(Reachable("local", "local:H200"))
    host.run()
    host.held["x"] = replace(TAKEN, device_id="id-local:H200", serial="local:H200")
    host.run()
    host.held.clear()
    host.run()
    assert host.serving() == ["local:H200"]


@pytest.mark.parametrize("word", ["sideload", "recovery", "bootloader", "unknown"])
def test_a_phone_that_somebody_flashes_is_left_alone(host: Host, word: str) -> None:
    host.shows(a="device")
    host.run()
    host.shows(a=word)
    host.run(3)
    host.children[0].code = 0
    host.run(600, step=2)
    assert host.climbed == []
    assert host.phone("a").condition is Condition.NOT_ANDROID
    host.shows(a="device")
    host.run(12)
    assert host.serving() == ["a"]


def test_what_goes_wrong_with_one_phone_ends_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = Log()
    monkeypatch.setattr("workers.agent.station.log", logged)
    monkeypatch.setattr("workers.agent.agent.log", logged)
    host.shows(a="device")
    host.refuses = OSError("no space left on device")
    host.run(4)
    assert host.phone("a").why == "its worker cannot be started: no space left on device"
    host.refuses = None
    host.run(10)
    assert host.serving() == ["a"]

    def odd(serial: str) -> Identity:
        raise ValueError(f"{serial}: embedded null byte")

    monkeypatch.setattr(host, "identify", odd)
    host.run(45)
    assert host.phone("a").condition is Condition.RECOVERING
    assert host.phone("a").why.endswith("ValueError: a: embedded null byte")

    def wrong(_rung: Rung, _serial: str, _leave: threading.Event) -> None:
        raise ValueError("No closing quotation")

    monkeypatch.setattr(host, "climb", wrong)
    host.children[0].code = 0
    host.run(60)
    assert host.phone("a").condition is Condition.QUARANTINED

    def bad(_device_id: str) -> bool:
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "of one phone")

    monkeypatch.setattr(host, "busy", bad)
    host.shows(a="device", b="unauthorized")
    host.run(2)
    assert host.phone("b").condition is Condition.UNAUTHORIZED
    assert len(logged.errors) < 15, "each kind once in a row, not twice a second"


def test_news_has_the_agents_own_time_and_is_of_the_present_worker(host: Host) -> None:
    """Another host's clock, or this one's before its last boot."""
    host.told["id-a"] = [Failed(8.6e6, "of yesterday")]
    host.strangers = [stranger("id-a", host="elsewhere")]
    host.shows(a="device")
    host.run(4)
    host.strangers.clear()
    assert "id-a" in host.told, "it is another worker's"
    host.told.clear()  # as each worker does when it begins
    host.run(12)
    host.helps = Rung.RECONNECT
    host.told["id-a"] = [Failed(float("inf"), "the link dropped")]
    host.run(1)
    assert host.phone("a").condition is Condition.RECOVERING
    host.children[0].code = 0
    host.run(30)
    assert (host.climbed, host.serving()) == ([("a", Rung.RECONNECT)], ["a"])


def test_an_adb_server_that_was_restarted_lists_its_phones_one_by_one(host: Host) -> None:
    host.shows(a="device", b="device")
    host.run()
    host.agent.no_server("none answers")
    host.run(3)
    host.shows()
    host.run(5)
    host.shows(a="device")
    host.run(3)
    assert host.serving() == ["a", "b"]
    host.run(5)
    assert host.serving() == ["a"], "b did not come back"
    assert host.phone("b").condition is Condition.OFFLINE


@pytest.mark.parametrize("seen", [True, False])
def test_network_phones_are_connected_again_after_a_restart_of_the_server(host: Host, seen: bool) -> None:
    host.shows(**{WIFI: "device", USB: "device"})
    host.run()
    host.agent.no_server("none answers")
    if seen:
        host.run(3)
    host.shows(**{USB: "device"})
    host.run(30)
    assert host.connected[0] == WIFI
    assert set(host.connected) == {WIFI}
    assert len(host.connected) == 4, "after 0, 2, 6 and 14 s"
    host.shows(**{WIFI: "device", USB: "device"})
    host.run(60)
    assert len(host.connected) == 4
    host.shows(**{USB: "device"})
    host.run(60)
    assert len(host.connected) == 4, "a person's `adb disconnect` is respected"


def test_a_phone_that_was_unplugged_in_a_persons_hands_is_offline_when_it_is_released(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.held["a"] = TAKEN
    host.run(1)
    host.shows()
    host.run(5)
    host.held.clear()
    host.run(3)
    assert host.phone("a").condition is Condition.OFFLINE


def test_an_unplugged_phone_is_not_climbed_after_its_quarantine(host: Host) -> None:
    host.silent.add("a")
    host.shows(a="device")
    host.run(90)
    climbed = len(host.climbed)
    host.shows()
    host.run(4000, step=5)
    assert (host.phone("a").condition, len(host.climbed)) == (Condition.OFFLINE, climbed)
    host.silent.clear()
    host.shows(a="device")
    host.run(12)
    assert host.serving() == ["a"]


def test_a_worker_that_ends_unasked_is_started_again_later_each_time(host: Host) -> None:
    """Celery ends with 0 when the broker refuses it."""
    host.shows(a="device")
    host.run()
    for _ in range(60):
        host.children[-1].code = 0
        host.run(1)
    assert len(host.children) < 8
    assert host.phone("a").why


def test_phones_that_came_and_went_are_forgotten_after_a_day(host: Host) -> None:
    for port in range(20):
        host.shows(**{f"192.168.1.5:{port}": "unauthorized"})
        host.run(1)
    host.shows()
    host.run(1)
    host.now += 24 * 3600
    host.run(1)
    assert len(host.agent.stations) == 0


def test_a_phone_whose_worker_is_starting_says_so(host: Host) -> None:
    host.shows(a="device")
    host.run()
    assert [p.why for p in host.reports[0].phones] == ["listed; has not answered yet"]
    whys = [p.why for r in host.reports for p in r.phones if p.condition is Condition.ONLINE]
    assert whys[0] == "its worker is starting; try again in a moment"
