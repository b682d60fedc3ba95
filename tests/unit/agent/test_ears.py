"""A worker that lives and does not hear its queue is replaced; one that works, waits or is new is not."""

import signal

from tests.unit.agent.made_up_host import Host
from workers.agent.station import DEAF_S, EARS_EVERY_S

SOON = DEAF_S + 3 * EARS_EVERY_S


def test_g3_03_a_worker_that_leaves_its_queue_alone_is_replaced(host: Host) -> None:
    """G3-03: registered, heartbeat fine, and consumes nothing after a blip of Redis."""
    host.shows(a="device")
    host.run()
    host.queued["id-a"] = "1000"
    host.run(DEAF_S - EARS_EVERY_S, step=1)
    assert host.children[0].code is None
    host.run(4 * EARS_EVERY_S, step=1)
    assert host.children[0].code == -signal.SIGKILL, "nothing is in its hands"
    assert host.serving() == ["a"]
    assert len(host.children) == 2
    host.run(DEAF_S - 4 * EARS_EVERY_S, step=1)
    assert len(host.children) == 2, "the new one has its time, too"
    assert host.climbed == [], "no phone's fault"
    ((device_id, why),) = host.deaf
    assert (device_id, "took none of the work queued for 180 s" in why) == ("id-a", True)


def test_a_worker_that_begins_one_batch_after_another_hears(host: Host) -> None:
    host.shows(a="device")
    host.run()
    for token in range(40):
        host.queued["id-a"] = str(token)
        host.run(EARS_EVERY_S, step=1)
    host.leased.add("id-a")  # a long batch, and others queued behind it
    host.run(2 * SOON, step=1)
    host.leased.clear()
    host.queued.clear()
    host.run(2 * SOON, step=1)
    assert len(host.children) == 1
    assert host.deaf == []


def test_a_worker_is_not_blamed_for_what_waited_before_it_came(host: Host) -> None:
    """A phone that took minutes to restart, with a queue that waits for it."""
    host.shows(a="device")
    host.run()
    host.queued["id-a"] = "1000"
    host.run(DEAF_S - 2 * EARS_EVERY_S, step=1)
    host.children[0].code = 3
    host.run(4 * EARS_EVERY_S, step=1)
    assert (len(host.children), host.serving()) == (2, ["a"])
