"""Each case on N phones of a SoC: series go on, the rest is drawn and evened out, and what is short shows."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import MatrixError
from orchestrator.domain.job import CanaryLatency
from orchestrator.domain.results import RunInfo, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.placement import Candidate, Placement, place
from orchestrator.planning.plan import Plan, build_plan
from tests.unit.planning.probe_toys import kernels, load
from tests.unit.planning.toy import PHONE_LIMITS, device, profile

TEXT = """\
    version: 1
    suites:
      s:
        min_phones_per_soc: 2
        blocks:
          - kernel: attention_toy
            workloads: [{seq: [8, 16, 32, 64]}]
            axes: {tile: [8x8, 128x16], api: [gles, vulkan]}
    probes:
      blocks:
        - kernel: gauge
          axes: {api: [gles, vulkan]}
        - kernel: bird
          axes: {api: [gles, vulkan]}
    """
BIG = PHONE_LIMITS | {"shared_bytes": 49_152}
BOTH = (profile(limits=BIG), profile(limits=BIG, api="vulkan"))


def phone(name: str, soc: str = "SM8650") -> DeviceRecord:
    return device(name, *BOTH, soc=soc, transport="adb", resource=name)


A, B, C = phone("a"), phone("b"), phone("c")
SMALL = device("small", profile(), soc="SM8650", transport="adb", resource="small")
DESK = device("desk", *BOTH, soc="SM8650")


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    return load(tmp_path, TEXT)


def plan(matrix: Matrix, *devices: DeviceRecord, phones: int | None = None, seed: str = "x") -> Plan:
    return build_plan(matrix, "s", kernels(), devices, phones=phones, seed=seed)


def ops(planned: Plan, device_id: str) -> list[str]:
    (found,) = [d for d in planned.devices if d.device.device_id == device_id]
    return [c.case_id for c in found.cases if c.role == "op"]


def earlier(*held: tuple[str, str], verdict: Verdict = Verdict.PASS, planned_for: str = "") -> RunResults:
    """A run in which these (device, case) had results, by code that is not today's."""
    trials = [Trial("r0", d, c, 1, verdict, "", "0ld", "t", 1, planned_for=planned_for) for d, c in held]
    return RunResults(RunInfo("r0", "s", "t", "1", "h", "c"), [], {}, trials)


def candidates(count: int, cases: int, seconds: float = 1.0) -> list[Candidate]:
    return [Candidate(f"p{n}", "soc", {f"c{i}": seconds for i in range(cases)}) for n in range(count)]


def loads(placement: Placement) -> list[int]:
    return sorted(len(cases) for cases in placement.cases.values())


def test_each_case_runs_on_as_many_phones_as_wanted_and_they_share_evenly() -> None:
    placement = place(candidates(5, 100), 2, set(), "seed")
    count = Counter(case for cases in placement.cases.values() for case in cases)
    assert set(count.values()) == {2}
    assert len(count) == 100
    assert loads(placement) == [40] * 5
    assert (placement.anywhere, placement.short, placement.spare) == ([], [], [])


@given(
    able=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=6),
    wanted=st.integers(1, 4),
    held=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))),
    seed=st.text(max_size=3),
)
def test_every_case_is_placed_as_often_as_wanted_where_it_can_run_and_first_where_its_series_is(
    able: list[set[int]], wanted: int, held: set[tuple[int, int]], seed: str
) -> None:
    phones = [Candidate(f"p{n}", "soc", {f"c{i}": 1.0 + i for i in cases}) for n, cases in enumerate(able)]
    series = {(f"p{p}", f"c{c}") for p, c in held}
    placement = place(phones, wanted, series, seed)
    for case in {case for phone in phones for case in phone.seconds}:
        can = {p.device_id for p in phones if case in p.seconds}
        does = {i for i, cases in placement.cases.items() if case in cases}
        has = {i for i in can if (i, case) in series}
        groups = [set(g.devices) for g in placement.anywhere if case in g.cases]
        if groups:
            assert (groups, wanted, does, has) == ([can], 1, set(), set())
        else:
            assert does <= can
            assert len(does) == min(wanted, len(can))
            assert has <= does or does <= has


def test_one_seed_draws_the_same_and_another_one_differently() -> None:
    first, again, other = (place(candidates(4, 40), 2, set(), seed).cases for seed in ("a", "a", "b"))
    assert first == again
    assert first != other


def test_a_draw_depends_on_no_other_soc() -> None:
    alone = place(candidates(4, 40), 2, set(), "a").cases
    others = [replace(c, device_id=f"x{c.device_id}", soc="other") for c in candidates(3, 10)]
    assert alone.items() <= place([*others, *candidates(4, 40)], 2, set(), "a").cases.items()


def test_time_is_evened_out_not_the_number_of_cases() -> None:
    seconds = {f"long{i}": 60.0 for i in range(4)} | {f"short{i}": 1.0 for i in range(240)}
    phones = [Candidate("busy", "soc", seconds, busy_s=120.0), *(Candidate(n, "soc", seconds) for n in "ab")]
    placement = place(phones, 2, set(), "seed")
    busy_s = {i: sum(seconds[c] for c in cases) for i, cases in placement.cases.items()}
    busy_s["busy"] += 120.0
    assert max(busy_s.values()) - min(busy_s.values()) <= 60.0


def test_no_case_comes_first_whatever_the_seed() -> None:
    """In the order of the matrix the busy phone would never get one of the first cases."""
    busy, *others = candidates(3, 100)
    draws = [place([replace(busy, busy_s=30.0), *others], 2, set(), f"seed {n}").cases for n in range(12)]
    assert {"c0" in cases["p0"] for cases in draws} == {True, False}


def test_a_series_goes_on_where_it_is_and_the_rest_is_drawn() -> None:
    series = {("p3", f"c{i}") for i in range(20)} | {("p1", "c0"), ("gone", "c1")}
    placement = place(candidates(4, 20), 2, series, "seed")
    assert placement.cases["p3"] == {f"c{i}" for i in range(20)}
    assert [i for i, cases in placement.cases.items() if "c0" in cases] == ["p1", "p3"]
    assert sum(loads(placement)) == 40


def test_a_placement_goes_on_from_run_to_run_whatever_the_seed() -> None:
    nights = [place(candidates(6, 60), 2, set(), "night 0").cases]
    for n in range(1, 4):
        series = {(i, case) for i, cases in nights[-1].items() for case in cases}
        nights.append(place(candidates(6, 60), 2, series, f"night {n}").cases)
    assert all(before == after for before, after in pairwise(nights))


def test_of_many_phones_with_the_series_the_wanted_ones_are_drawn() -> None:
    everywhere = {(f"p{n}", f"c{i}") for n in range(4) for i in range(40)}
    placement = place(candidates(4, 40), 1, everywhere, "seed")
    assert loads(placement) == [10, 10, 10, 10]
    assert placement.anywhere == []


def test_without_a_series_one_phone_is_whichever_is_free_first() -> None:
    series = {("p1", "c2")}
    placement = place(candidates(3, 4), 1, series, "seed")
    assert placement.cases == {"p0": set(), "p1": {"c2"}, "p2": set()}
    (group,) = placement.anywhere
    assert (group.soc, group.devices, group.cases) == ("soc", ("p0", "p1", "p2"), ["c0", "c1", "c3"])
    assert placement.spare == []


def test_the_only_phone_of_a_soc_has_its_cases_itself() -> None:
    placement = place(candidates(1, 3), 1, set(), "seed")
    assert (loads(placement), placement.anywhere, placement.short) == ([3], [], [])


def test_too_few_phones_run_everything_and_the_lack_has_a_name() -> None:
    placement = place(candidates(2, 3), 4, set(), "seed")
    assert loads(placement) == [3, 3]
    (short,) = placement.short
    assert short.sentence == "4 phones of soc wanted, 2 there (p0, p1)"
    assert short.unmet == ["soc (phone 3 of 4)", "soc (phone 4 of 4)"]


def test_a_virtual_phone_stands_in_for_no_real_one() -> None:
    real, virtual = candidates(1, 3)[0], replace(candidates(1, 3)[0], device_id="v", virtual=True)
    placement = place([real, virtual], 1, set(), "seed")
    assert loads(placement) == [3, 3]


def test_phones_that_are_not_needed_are_spare() -> None:
    series = {("p0", "c0"), ("p0", "c1")}
    assert place(candidates(3, 2), 1, series, "seed").spare == ["p1", "p2"]


def test_without_the_key_every_device_runs_everything(matrix: Matrix) -> None:
    whole = plan(matrix, A, B, C, DESK, phones=0)
    assert {len(ops(whole, d.device_id)) for d in (A, B, C, DESK)} == {16}
    assert (whole.suite.min_phones_per_soc, whole.anywhere, whole.spare, whole.missing) == (None, [], [], [])


def test_the_suite_says_how_many_phones_and_local_gpus_run_everything(matrix: Matrix) -> None:
    placed = plan(matrix, A, B, C, DESK)
    assert len(ops(placed, "desk")) == 16
    own = [ops(placed, d.device_id) for d in (A, B, C)]
    assert sorted(Counter(case for cases in own for case in cases).values()) == [2] * 16
    order = list(placed.cases)
    assert all(cases == sorted(cases, key=order.index) for cases in own)
    assert placed.trials == 16 + 32 + 4 * 2
    assert placed.warnings == placed.missing == []


def test_probes_and_canaries_stay_on_every_phone_that_has_cases(matrix: Matrix) -> None:
    for planned in plan(matrix, A, B, C).devices:
        assert [c.case.axes["api"] for c in planned.cases if c.role == "probe"] == ["gles", "vulkan"]
        assert [c.api for c in planned.canaries] == ["gles", "vulkan"]


def test_a_phone_that_nothing_is_left_for_takes_no_part(matrix: Matrix) -> None:
    every = list(plan(matrix, A).cases)
    placed = build_plan(
        matrix, "s", kernels(), [A, B, SMALL], phones=1, history=earlier(*(("a", c) for c in every))
    )
    assert [d.device.device_id for d in placed.devices] == ["a"]
    assert placed.spare == ["b", "small"]
    assert placed.pruned == []
    assert placed.trials == 16 + 2


def test_what_one_phone_cannot_run_is_placed_on_the_others_and_stays_pruned_there(matrix: Matrix) -> None:
    placed = plan(matrix, A, B, SMALL)
    fits = set(ops(plan(matrix, SMALL, phones=0), "small"))
    pruned = {p.case_id for p in placed.pruned if p.device_id == "small"}
    assert len(fits) == 4
    assert fits.isdisjoint(pruned)
    assert set(ops(placed, "small")) <= fits
    count = Counter(case for name in ("a", "b", "small") for case in ops(placed, name))
    assert set(count.values()) == {2}
    assert placed.missing == []


def test_fewer_phones_than_wanted_are_missing_with_a_name_and_a_warning(matrix: Matrix) -> None:
    other = phone("d", soc="Tensor-G2")
    placed = plan(matrix, A, B, other)
    what = "2 phones of Tensor-G2 wanted, 1 there (d)"
    assert len(ops(placed, "d")) == 16
    assert [(m.device_id, m.case_id, m.why) for m in placed.missing] == [
        ("Tensor-G2 (phone 2 of 2)", "", what)
    ]
    assert placed.warnings == [what]


def test_a_phone_whose_soc_is_not_known_stands_in_for_none(matrix: Matrix) -> None:
    unsure = [replace(d, soc=replace(d.soc, name="unknown-Adreno", model="")) for d in (A, B, C)]
    placed = plan(matrix, *unsure, phones=1)
    assert [len(ops(placed, d.device_id)) for d in (A, B, C)] == [16, 16, 16]
    assert placed.anywhere == []


def test_cases_for_any_phone_are_apart_with_canaries_of_no_known_latency(matrix: Matrix) -> None:
    placed = plan(matrix, A, B, SMALL, phones=1)
    assert [d.device.device_id for d in placed.devices] == ["a", "b", "small"]
    assert all(c.role == "probe" for d in placed.devices for c in d.cases)
    two, three = sorted(placed.anywhere, key=lambda a: len(a.devices))
    assert (two.soc, two.devices, three.devices) == ("SM8650", ["a", "b"], ["a", "b", "small"])
    assert (len(two.cases), len(three.cases)) == (12, 4)
    assert [c.api for c in two.canaries] == ["gles", "vulkan"]
    assert [(c.api, c.expected) for c in three.canaries] == [("gles", CanaryLatency())]
    assert placed.trials == 16 + sum(len(d.cases) for d in placed.devices)
    shares = sum(placed.seconds_of(d) - d.seconds for d in placed.devices)
    assert shares == pytest.approx(two.seconds + three.seconds)


def test_a_canary_that_one_of_the_phones_cannot_run_guards_no_batch_for_all_of_them(matrix: Matrix) -> None:
    narrow = profile(limits=BIG | {"invocations": 32, "group_x": 32})
    placed = plan(matrix, A, device("narrow", narrow, soc="SM8650", transport="adb"), phones=1)
    both = next(group for group in placed.anywhere if "narrow" in group.devices)
    alone = next(d for d in placed.devices if d.device.device_id == "a")
    assert (both.devices, both.canaries) == (["a", "narrow"], [])
    assert [c.api for c in alone.canaries] == ["gles", "vulkan"]


def test_any_result_of_the_run_before_makes_a_series_but_infrastructure_makes_none(matrix: Matrix) -> None:
    one, two, *_ = ops(plan(matrix, A, phones=0), "a")
    failed = earlier(("c", one), verdict=Verdict.MISMATCH)
    lost = earlier(("b", two), verdict=Verdict.INFRA)
    history = replace(failed, trials=[*failed.trials, *lost.trials])
    placed = build_plan(matrix, "s", kernels(), [A, B, C], phones=1, history=history)
    assert (ops(placed, "b"), ops(placed, "c")) == ([], [one])


def test_the_series_of_a_phone_that_another_stood_in_for_goes_back_to_it(matrix: Matrix) -> None:
    one, *_ = ops(plan(matrix, A, phones=0), "a")
    history = earlier(("b", one), planned_for="a")
    back = build_plan(matrix, "s", kernels(), [A, B, C], phones=1, history=history)
    assert (ops(back, "a"), ops(back, "b")) == ([one], [])
    away = build_plan(matrix, "s", kernels(), [B, C], phones=1, history=history)
    assert ops(away, "b") == [one]


def test_a_budget_counts_what_a_phone_may_get(tmp_path: Path) -> None:
    tight = TEXT.replace("min_phones_per_soc: 2", "budget: {minutes: 0.01}")
    matrix = load(tmp_path, tight)
    assert [w.split(":")[1].strip() for w in plan(matrix, A, B, phones=1).warnings] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("min_phones_per_soc: 0", "must be a whole number from 1 to 100, not the number 0"),
        ("min_phones_per_soc: 101", "must be a whole number from 1 to 100, not the number 101"),
        ("min_phones_per_soc: 1.5", "must be a whole number from 1 to 100, not the number 1.5"),
        ("min_phones_per_soc: all", 'must be a whole number from 1 to 100, not text "all"'),
    ],
)
def test_a_wrong_number_of_phones_is_named_with_its_line(tmp_path: Path, line: str, what: str) -> None:
    with pytest.raises(MatrixError) as caught:
        load(tmp_path, TEXT.replace("min_phones_per_soc: 2", line))
    assert list(caught.value.problems) == [f"matrix.yaml:4: suites.s.min_phones_per_soc: {what}"]


def test_a_misspelt_key_is_answered_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r'4: suites\.s\.phones_per_soc: .*mean "min_phones_per_soc"\?'):
        load(tmp_path, TEXT.replace("min_phones", "phones"))


def test_probes_are_for_every_phone_and_take_no_such_key(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"probes\.min_phones_per_soc: unknown key"):
        load(tmp_path, TEXT.replace("probes:\n", "probes:\n      min_phones_per_soc: 2\n"))
