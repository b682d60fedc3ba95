"""The agent's loop on a made-up host: phones come, go and are brought back, each with one worker."""

from orchestrator.domain.health import Condition, Failed, Rung, Vitals, Vouched
from orchestrator.domain.lease import Hold
from tests.unit.agent.made_up_host import Host
from workers.__main__ import EXIT_DEVICE
from workers.agent.station import Identity
from workers.discovery import Reachable


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


def test_g2_06_batches_that_a_dead_server_took_are_no_phones_fault(host: Host) -> None:
    """G2-06: seed 1 of the chaos test had a phone in quarantine, two of its rungs for killed servers."""
    host.shows(a="device", b="device")
    host.run()
    host.agent.no_server("none answers")
    host.told["id-a"] = [Failed(host.now, "the link dropped")]
    host.children[1].code = EXIT_DEVICE
    host.run(2)
    host.shows(a="device", b="device")
    host.told["id-a"] = [Failed(host.now, "device not found")]
    host.run(30)
    assert host.climbed == []
    assert not host.children[0].stopped, "its worker goes on"
    assert sorted(host.serving()) == ["a", "b"]
    host.told["id-a"] = [Failed(host.now, "the link dropped")]
    host.run(1)
    assert host.phone("a").condition is Condition.RECOVERING, "this is its own"


def test_g2_06_without_a_server_no_rung_is_tried_or_counts(host: Host) -> None:
    """G2-06: what a phone is recovered from goes on where it was once the server is back."""
    host.shows(a="device")
    host.run()
    host.silent.add("a")
    host.helps = Rung.ADB_RECONNECT
    host.told["id-a"] = [Failed(host.now, "the link dropped")]
    host.run(1)
    host.children[0].code = 0
    host.waits = True
    host.run(8)
    ((tried, _),) = host.calls
    host.agent.no_server("none answers")
    host.waits = False
    host.finish()
    assert tried.done()
    assert host.climbed == [("a", Rung.RECONNECT)]
    host.run(60)
    assert host.climbed == [("a", Rung.RECONNECT)]
    host.shows(a="device")
    host.run(60)
    assert host.climbed == [("a", Rung.RECONNECT), ("a", Rung.RECONNECT), ("a", Rung.ADB_RECONNECT)]
    assert host.serving() == ["a"]


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
