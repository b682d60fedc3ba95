"""What an agent leaves alone on a made-up host: what others use, hold or flash, and one phone's trouble."""

import threading
from dataclasses import replace

import pytest

from orchestrator.domain.errors import InfraError
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Condition, Failed, Rung
from orchestrator.domain.lease import Hold
from tests.results_fixture import device
from tests.unit.agent.made_up_host import Host, Log
from workers.__main__ import EXIT_DEVICE
from workers.agent.station import Identity
from workers.discovery import Reachable

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


def test_a_killed_workers_registration_is_not_taken_for_that_of_a_new_one_with_its_process_id(
    host: Host,
) -> None:
    """In a restarted container process ids begin anew: what is left of b's worker has that of a's."""
    host.strangers = [stranger("id-b", pid=100)]
    host.told["id-b"] = [Failed(0.0, "the link dropped")]
    host.shows(a="device", b="unauthorized")
    host.run()
    assert host.children[0].pid == 100
    assert host.phone("a").device_id == "id-a"
    assert "id-b" in host.told, "news of b are not a's"
    assert host.phone("a").condition is Condition.ONLINE


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


@pytest.mark.parametrize("link", [USB, WIFI])
def test_a_phone_is_a_persons_once_the_last_question_has_ended(host: Host, link: str) -> None:
    """``tilefarm hold`` says "is yours" at the agent's word; also the phone's other link is left by then."""
    two_links(host)
    host.waits = True
    host.run(11)
    questions = [done for done, _ in host.calls]
    assert all(done.set_running_or_notify_cancel() for done in questions)
    host.held["R58"] = replace(TAKEN, device_id="id-R58", serial=link)
    host.run(20)
    assert host.phone(USB).condition is Condition.ONLINE
    questions[0].set_exception(InfraError("no answer within 10 s"))
    host.run(20)
    assert len(questions) == 2
    assert host.phone(USB).condition is Condition.ONLINE, "the other one still runs"
    questions[1].set_result(host.identities[WIFI])
    host.run(1)
    assert host.phone(USB).condition is Condition.MAINTENANCE
    host.run(60)
    assert [done for done, _ in host.calls] == questions, "none was begun meanwhile"


def test_a_phone_is_a_persons_once_the_last_connection_has_ended(host: Host) -> None:
    host.shows(**{WIFI: "device"})
    host.run()
    host.waits = True
    host.agent.no_server("none answers")
    host.run(1)
    host.shows()
    host.run(1)
    connections = [done for done, _ in host.calls if done.set_running_or_notify_cancel()]
    assert len(connections) == 1
    host.held["x"] = replace(TAKEN, device_id=f"id-{WIFI}", serial=WIFI)
    host.run(20)
    assert host.phone(WIFI).condition is not Condition.MAINTENANCE
    connections[0].set_result(None)
    host.run(60)
    assert host.phone(WIFI).condition is Condition.MAINTENANCE
    assert len(host.calls) == 1


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

    def wrong(_rung: Rung, _serial: str, _leave: threading.Event, *, network: bool) -> None:
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
