"""The example's last fourteen nights: what is shipped is what is truly the fastest of what works."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path

import pytest

from orchestrator.cli.options import load_inputs
from orchestrator.domain.best import Best, SocBest, Variant, WorkloadBest
from orchestrator.domain.case import Case
from orchestrator.domain.results import RunResults
from orchestrator.example import matrix_file
from orchestrator.example.month import Month
from orchestrator.example.truth import NIGHTS, NUMBERS
from orchestrator.history.history import History
from orchestrator.verdicts.best import best_variants

FIRST = NIGHTS - 13
NEAR = log(1.02)


@dataclass(frozen=True)
class Told:
    best: Best
    month: Month
    last: RunResults

    @property
    def workloads(self) -> Iterator[tuple[SocBest, WorkloadBest]]:
        for soc in self.best.socs:
            for workload in soc.workloads:
                yield soc, workload

    def true_ns(self, soc: str, case_id: str) -> float:
        return self.month.true_ns(soc, self.last.cases[case_id].case, NIGHTS)

    def works(self, soc: str, case: Case) -> bool:
        return not any(
            n.flag in ("nondeterministic", "limit_crossed") and n.holds(NIGHTS, soc, case) for n in NUMBERS
        )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("month")
    inputs = load_inputs(matrix_file(), None)
    month = Month(inputs.matrix, inputs.kernels, 1)
    history = History(f"sqlite:///{folder}/tilefarm.db", Path(folder) / "history")
    nights = [month.night(n) for n in range(FIRST, NIGHTS + 1)]
    for results in nights:
        history.store(results)
    last = nights[-1]
    yield Told(best_variants(history, last.run.suite, last.run.run_id, last), month, last)
    history.close()


def test_each_pick_is_the_truly_fastest_or_within_noise_of_it(told: Told) -> None:
    picks = 0
    for soc, workload in told.workloads:
        for pick in workload.picks:
            among = [v for v in workload.variants if pick.api in ("any", v.api)]
            true = {v.case_id: told.true_ns(soc.soc, v.case_id) for v in among}
            first = min(true, key=lambda case_id: true[case_id])
            assert log(true[pick.case_id] / true[first]) < NEAR, (soc.soc, workload.op, pick.api)
            second = min((ns for case_id, ns in true.items() if case_id != first), default=float("inf"))
            if log(second / true[first]) > NEAR:
                assert pick.case_id == pick.fastest == first
                assert pick.tied == []
            picks += 1
    assert picks == 5 * 4 * 3


def test_every_variant_that_works_is_there_and_no_other(told: Told) -> None:
    """Of those of the last night: each SoC's planned trials."""
    soc_of = {d.device_id: d.soc.name for d in told.last.devices}
    ops = [t for t in told.last.trials if told.last.cases[t.case_id].role == "op"]
    planned = {(soc_of[t.device_id], t.case_id) for t in ops}
    works = {(s, c) for s, c in planned if told.works(s, told.last.cases[c].case)}
    assert {(s.soc, v.case_id) for s, w in told.workloads for v in w.variants} == works
    left = {(s.soc, left.case_id): left.why for s, w in told.workloads for left in w.left_out}
    assert set(left) == planned - works
    assert {why.split(" ")[0] for why in left.values()} == {"nondeterministic", "mismatch"}


def test_ratios_and_intervals_hold_the_truth(told: Told) -> None:
    """With this seed; the goal of an interval is 95 %."""
    inside = total = 0
    for soc, workload in told.workloads:
        first = workload.variants[0]
        for variant in workload.variants:
            true = log(told.true_ns(soc.soc, variant.case_id) / told.true_ns(soc.soc, first.case_id))
            assert variant.log_ratio == pytest.approx(true, abs=0.02)
        for pick in workload.picks:
            if (margin := pick.runner_up) is not None:
                pair = told.true_ns(soc.soc, margin.case_id), told.true_ns(soc.soc, pick.case_id)
                inside += margin.low <= log(pair[0] / pair[1]) <= margin.high
                total += 1
    assert total > 50
    assert inside / total >= 0.9


def test_latencies_are_of_the_phone_in_the_middle(told: Told) -> None:
    """Phones differ by some per cent, and so does the middle one from the SoC's average."""
    for soc, workload in told.workloads:
        best: Variant = workload.variants[0]
        worn = 1.12**0.5 if soc.soc == "SM6375" else 1.0
        assert best.latency_ns == pytest.approx(told.true_ns(soc.soc, best.case_id) * worn, rel=0.15)


def test_what_must_be_known_is_said(told: Told) -> None:
    by_soc = {soc.soc: soc for soc in told.best.socs}
    assert all("virtual" in soc.warnings[0] for soc in told.best.socs)
    changed = by_soc["SM8650"].driver_warnings
    assert set(changed) == {"gles", "vulkan"}
    assert all("changed on 2026-11-18" in own[0] for own in changed.values())
    assert len(by_soc["SM6375"].warnings) == 1
    gemm = next(w for w in by_soc["MT6989"].workloads if w.op == "gemm")
    assert gemm.picks[0].warnings == ["rests on 6 nights, and 7 are needed"], "its code is new since night 25"
    attention = next(w for w in by_soc["MT6989"].workloads if w.op == "attention")
    assert attention.picks[0].warnings == []
    assert [p.device_id for p in by_soc["Tensor-G3"].phones] == ["tensor-g3-1", "tensor-g3-9"]
