"""Each pending job is explained: by its phones, by other runs, by who carries its run out."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Condition
from orchestrator.domain.lease import Hold
from orchestrator.domain.run_state import RunState, Target
from orchestrator.domain.submission import Service
from orchestrator.execution.matches import FREE, UNSERVED, Seen
from orchestrator.execution.waiting import CASE_S, Pending, pending
from tests.unit.planning.toy import device

FIRST = "0001-01-01T00:00:00+14:00"
"""Not a time in UTC."""
NOW = datetime(2026, 12, 1, 1, 30, tzinfo=UTC)
SINCE = "2026-12-01T01:20:00+00:00"


def phone(name: str) -> DeviceRecord:
    return device(name, soc="SM8650", transport="adb", resource=name)


def served(*records: DeviceRecord) -> dict[str, Registration]:
    return {r.device_id: Registration(r, f"w-{r.device_id}", "t", 7) for r in records}


def report(device_id: str, condition: Condition, why: str = "", until: str = "") -> PhoneReport:
    return PhoneReport(f"serial-{device_id}", device_id, condition, why, SINCE, until)


def agent(*phones: PhoneReport, host: str = "shelf") -> AgentReport:
    return AgentReport(host, 7, "t", "adb", list(phones))


def target(
    *devices: str, pool: bool = False, since: str = SINCE, left_s: float = 60.0, why: str = ""
) -> Target:
    name = f"any of {len(devices)} SM8650" if pool else f"Phone {devices[0]}"
    device_id = "" if pool else devices[0]
    return Target(device_id, "SM8650", name, 10, 4, 1, 0, left_s, since, why, list(devices))


def run(name: str, *targets: Target, user: str = "anna@desk", **more: object) -> RunState:
    started = f"2026-12-01T01:0{name[-1]}:00+00:00"
    plain = RunState(name, "smoke", user, "ondemand", "running", started, SINCE, "desk", list(targets))
    return replace(plain, **{"live": True, **more})


A, B, C = phone("a"), phone("b"), phone("c")
FARM = Seen([], served(A, B, C))


def only(seen: Seen, *runs: RunState) -> Pending:
    (found,) = pending(replace(seen, runs=runs), NOW)
    return found


def whys(seen: Seen, runs: Sequence[RunState], run_id: str) -> list[str]:
    (found,) = [p for p in pending(replace(seen, runs=runs), NOW) if p.run_id == run_id]
    return found.why


def test_a_job_says_whose_it_is_what_is_left_and_since_when_it_waits() -> None:
    job = only(FARM, run("r1", target("a")))
    assert (job.run_id, job.user, job.suite, job.lane) == ("r1", "anna@desk", "smoke", "ondemand")
    assert (job.target, job.cases, job.since) == ("Phone a (a)", 5, SINCE)
    assert job.why == ["its phone is free"]
    assert (job.begins_s, job.ends_s) == (0.0, 60.0)


def test_phones_are_counted_by_what_keeps_them_away() -> None:
    hot = [report(n, Condition.HOT, f"{t} °C > 35 °C") for n, t in (("a", 41), ("b", 38))]
    hold = Hold("c", "ben@desk", "new battery", "2026-12-01T00:00:00+00:00")
    job = only(
        replace(FARM, agents=[agent(*hot)], holds={"c": hold}), run("r1", target("a", "b", "c", pool=True))
    )
    assert job.why == [
        "3 phones match: 2 hot (41 °C > 35 °C; 38 °C > 35 °C), "
        "1 held by ben@desk since 2026-12-01T00:00:00+00:00: new battery"
    ]
    assert [(m.device_id, m.state) for m in job.matches] == [("a", "hot"), ("b", "hot"), ("c", "held")]
    assert (job.begins_s, job.ends_s) == (None, None)


@pytest.mark.parametrize("condition", [c for c in Condition if c is not Condition.ONLINE])
def test_every_condition_of_a_phone_is_told(condition: Condition) -> None:
    seen = replace(FARM, agents=[agent(report("a", condition, "see there"))])
    job = only(seen, run("r1", target("a")))
    assert job.why == [f"its phone is {condition} (see there)"]
    assert job.begins_s is None


def test_the_end_of_a_quarantine_is_when_a_job_may_begin() -> None:
    until = "2026-12-01T01:40:00+00:00"
    seen = replace(FARM, agents=[agent(report("a", Condition.QUARANTINED, "gone", until))])
    job = only(seen, run("r1", target("a")))
    assert job.why == [f"its phone is quarantined (gone until {until})"]
    assert (job.begins_s, job.ends_s) == (600.0, 660.0)


def test_a_phone_that_is_well_through_one_of_two_links_is_well() -> None:
    links = [agent(report("a", Condition.OFFLINE)), agent(report("a", Condition.ONLINE), host="other")]
    for agents in (links, links[::-1]):
        assert only(replace(FARM, agents=agents), run("r1", target("a"))).matches[0].state == FREE


@pytest.mark.parametrize(
    ("agents", "why"),
    [([], "no agent sees it"), ([agent(report("gone", Condition.ONLINE))], "it starts on shelf")],
)
def test_a_device_without_a_worker_is_told(agents: list[AgentReport], why: str) -> None:
    job = only(replace(FARM, agents=agents), run("r1", target("gone")))
    assert job.why == [f"its phone is {UNSERVED} ({why})"]
    assert job.begins_s is None


def test_a_local_gpu_is_no_phone() -> None:
    assert only(Seen([], served(device("gpu"))), run("r1", target("gpu"))).why == ["its device is free"]


def test_details_of_many_phones_are_cut() -> None:
    names = [f"p{n}" for n in range(9)]
    hot = [report(n, Condition.HOT, f"{n} is hot") for n in names]
    job = only(replace(FARM, agents=[agent(*hot)]), run("r1", target(*names, pool=True)))
    assert job.why == ["9 phones match: 9 hot (p0 is hot; p1 is hot; p2 is hot; and 6 more)"]


def test_a_batch_of_another_run_is_on_the_phone() -> None:
    runs = [run("r1", target("a", since="")), run("r2", target("a"), user="ben@desk")]
    assert whys(FARM, runs, "r2") == [
        "its phone is at work (a batch of r1)",
        "takes turns with 1 run of 1 person",
    ]
    first, second = pending(replace(FARM, runs=runs), NOW)
    assert (first.why, first.since, first.begins_s) == (["a batch of it runs"], "", 0.0)
    assert (second.begins_s, second.ends_s) == (60.0, 120.0)


def test_a_leased_phone_of_a_soc_works_for_the_one_run_that_may_have_it() -> None:
    pool = run("r1", target("a", "b", pool=True, since=""), user="ben@desk")
    waits = run("r2", target("a"))
    seen = replace(FARM, leased={"a"})
    assert whys(seen, [pool, waits], "r2")[0] == "its phone is at work (a batch of r1)"
    assert whys(seen, [waits], "r2") == ["its phone is at work"]


def test_nobody_says_which_of_two_runs_of_a_soc_a_leased_phone_works_for() -> None:
    pools = [run(n, target("a", "b", pool=True, since=""), user=n) for n in ("r1", "r2")]
    assert (
        whys(replace(FARM, leased={"a"}), [*pools, run("r3", target("a"))], "r3")[0] == "its phone is at work"
    )


def test_a_phones_own_jobs_begin_before_those_of_its_soc() -> None:
    runs = [run("r1", target("a", "b", pool=True, left_s=240.0)), run("r2", target("a"), user="ben@desk")]
    shared, own = pending(replace(FARM, runs=runs), NOW)
    assert (own.begins_s, shared.ends_s) == (0.0, 180.0)


def test_a_soc_that_works_at_a_run_tells_of_its_other_phones() -> None:
    seen = replace(FARM, agents=[agent(report("b", Condition.HOT, "41 °C > 35 °C"))], leased={"a"})
    job = only(seen, run("r1", target("a", "b", pool=True, since="")))
    both = "2 phones match: 1 at work (a batch of r1), 1 hot (41 °C > 35 °C)"
    assert (job.why, job.begins_s) == (["a batch of it runs", both], 0.0)


def test_runs_of_other_people_are_counted_with_them() -> None:
    runs = [
        run("r1", target("a"), user="ben@desk"),
        run("r2", target("a", "b", pool=True), user="ben@desk"),
        run("r3", target("a"), user="eve@desk"),
        run("r4", target("a")),
        run("r5", target("c"), user="eve@desk"),
    ]
    assert whys(FARM, runs, "r4") == ["its phone is free", "takes turns with 3 runs of 2 people"]


def test_nightly_work_is_behind_work_on_demand() -> None:
    runs = [
        run("r1", target("a"), user="ben@desk"),
        run("r2", target("a"), user="ben@desk"),
        run("r3", target("a"), user="night@desk", lane="nightly"),
    ]
    assert whys(FARM, runs, "r3") == ["its phone is free", "behind 2 runs of 1 person on demand"]
    assert whys(FARM, runs, "r1") == ["its phone is free"]
    assert [p.run_id for p in pending(replace(FARM, runs=runs), NOW)] == ["r1", "r2", "r3"]


def test_a_persons_second_run_is_after_their_first() -> None:
    runs = [run("r1", target("a")), run("r2", target("a"))]
    assert whys(FARM, runs, "r2") == ["its phone is free", "after r1 of the same person"]


@pytest.mark.parametrize("other", [{"live": False}, {"phase": "finished"}])
def test_runs_that_nobody_carries_out_are_not_in_the_way(other: dict[str, object]) -> None:
    runs = [run("r1", target("a"), user="ben@desk", **other), run("r2", target("a"))]
    assert whys(FARM, runs, "r2") == ["its phone is free"]


def test_what_its_worker_waits_for_is_told_once() -> None:
    job = only(FARM, run("r1", target("a", why="hot: 41 °C > 35 °C")))
    assert job.why == ["its phone is free", "its worker says: hot: 41 °C > 35 °C"]
    seen = replace(FARM, agents=[agent(report("a", Condition.HOT, "41 °C > 35 °C"))])
    assert only(seen, run("r1", target("a", why="41 °C > 35 °C"))).why == ["its phone is hot (41 °C > 35 °C)"]


def test_a_run_that_nobody_carries_out_says_how_to_go_on() -> None:
    job = only(FARM, run("r1", target("a"), live=False))
    what = "its run is not carried out by anybody now: `tilefarm run --resume r1` on desk goes on with it"
    assert (job.why, job.cases, job.target) == ([what], 5, "Phone a (a)")
    assert (job.begins_s, job.ends_s) == (None, None)
    odd = only(FARM, run("r1", target("a"), live=False, run_id="x; reboot"))
    assert "--resume 'x; reboot'`" in odd.why[0]


def test_a_submitted_run_waits_for_an_orchestrator() -> None:
    waits = run("r1", phase="submitted", live=False)
    job = only(FARM, waits)
    assert job.why == ["no orchestrator serves this farm now: start `tilefarm orchestrator`"]
    assert (job.cases, job.target, job.since) == (0, "", SINCE)
    house = replace(FARM, orchestrators=[Service("orchestrator", "big", 7, "t")], submitted={"r2"})
    assert only(house, waits).why == ["the orchestrator on big has not begun it"]
    died = only(house, run("r2", target("a"), live=False))
    assert died.why == ["nobody carries it out now: the orchestrator on big starts it again"]


def test_a_run_that_is_being_prepared_has_no_devices_yet() -> None:
    assert only(FARM, run("r1", phase="preparing")).why == ["it is being prepared on desk"]


def test_jobs_that_have_all_they_want_and_runs_that_ended_are_not_pending() -> None:
    done = replace(target("a"), done=9, lost=1)
    ended = run("r2", target("a"), phase="cancelled")
    assert pending(replace(FARM, runs=[run("r1", done), ended]), NOW) == []


def test_devices_of_one_processor_share_it() -> None:
    gpus = [device("x", resource="cpu"), device("y", resource="cpu")]
    jobs = pending(Seen([run("r1", target("x"), target("y"))], served(*gpus)), NOW)
    assert sorted((j.begins_s, j.ends_s) for j in jobs) == [(0.0, 60.0), (60.0, 120.0)]


def test_a_case_without_an_estimate_takes_a_few_seconds() -> None:
    assert only(FARM, run("r1", target("a", left_s=0.0))).ends_s == 5 * CASE_S


@pytest.mark.parametrize(
    "moment", ["", "yesterday", "2999-01-01T00:00:00+00:00", "2026-12-01T01:20:00", FIRST]
)
def test_odd_times_of_other_hosts_do_no_harm(moment: str) -> None:
    waits = run("r1", target("a", since=moment or "?"), lane="nightly")
    assert only(FARM, waits).begins_s == 0.0
