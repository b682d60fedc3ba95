"""Places of the roofline's lines and marks."""

import pytest

from orchestrator.analysis.outcome import judge
from orchestrator.analysis.roofline import ceilings
from orchestrator.domain.case import Case
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from reports.labels import Labels
from reports.roofline import HEIGHT, LABEL_GAP, LEFT, MAX_MARKS, RIGHT, TOP, WIDTH, RoofChart, charts, places
from tests.probes_fixture import FMA_FLOPS, KIB, MIB, calculated, copied, copy_case, fma_case, probe_info
from tests.results_fixture import TODAY, case, info, passing, results, timing, trial

DEVICE = "local-1"
PROBES = [copied(64 * KIB, DEVICE, 40), copied(256 * MIB, DEVICE, 10), calculated(DEVICE, 100)]


def _chart(points: list[Case], trials: list[Trial], probes: list[Trial] | None = None) -> RoofChart:
    cases = [copy_case(64 * KIB), copy_case(256 * MIB), *_fma()]
    run = results(
        trials=[*trials, *(PROBES if probes is None else probes)],
        infos=[*(info(p) for p in points), *(probe_info(c) for c in cases)],
    )
    judged = judge(run, TODAY).trials
    found = ceilings(run.trials, run.cases, DEVICE)
    return charts(found, judged, Labels(points))[0]


def _fma() -> list[Case]:
    return [fma_case(), fma_case(hint="mediump"), fma_case(precision="fp16")]


def test_lines_meet_at_the_ridge() -> None:
    chart = _chart([case()], [passing(case(), DEVICE)])
    cache, dram, compute = chart.roofs
    assert [r.kind for r in chart.roofs] == ["cache", "dram", "compute"]
    assert [r.name for r in chart.roofs] == ["cache 40.0 GB/s", "DRAM 10.0 GB/s", "fp32 highp: 100 GFLOP/s"]
    assert (dram.x2, dram.y2) == pytest.approx((dram.x2, compute.y1))
    assert (cache.x2, cache.y2) == pytest.approx((compute.x1, compute.y1))
    assert compute.x2 == WIDTH - RIGHT
    assert dram.angle < 0
    assert all(LEFT <= x <= WIDTH - RIGHT for r in chart.roofs for x in (r.x1, r.x2))
    assert all(TOP <= y <= HEIGHT for r in chart.roofs for y in (r.y1, r.y2))


def test_a_mark_lies_where_its_numbers_say() -> None:
    point = case()
    median = round(info(point).cost.flops / 50)  # 50 GFLOP/s: half of the ceiling in ns
    chart = _chart([point], [passing(point, DEVICE, timing(median))])
    mark = chart.marks[0]
    assert mark.title == "attention_flash: 50.0 GFLOP/s, 50.0 % of fp32 compute"
    ticks = {t.label: t.at for t in chart.y_ticks}
    assert ticks["100 G"] < mark.y < ticks["10 G"]
    assert mark.y - ticks["100 G"] == pytest.approx(0.301 * (ticks["10 G"] - ticks["100 G"]), abs=0.2)


def test_labels_of_compute_ceilings_keep_apart_and_equal_ones_share_a_line() -> None:
    probes = [
        *PROBES[:2],
        calculated(DEVICE, 100),
        calculated(DEVICE, 98, hint="mediump"),
        calculated(DEVICE, 103, precision="fp16"),
    ]
    compute = [r for r in _chart([case()], [passing(case(), DEVICE)], probes).roofs if r.kind == "compute"]
    assert [r.name for r in compute] == ["fp16 highp: 103 GFLOP/s", "fp32 highp = mediump: 100 GFLOP/s"]
    assert compute[1].label_y - compute[0].label_y >= LABEL_GAP


def test_marks_on_the_same_spot_share_one_and_their_number_is_bounded() -> None:
    points = [case(tile=f"{n}x8") for n in range(1, 2 * MAX_MARKS)]
    same = _chart(points[:9], [passing(p, DEVICE) for p in points[:9]])
    assert (len(same.marks), same.placed, same.left_out) == (1, 9, 8)
    apart = [passing(p, DEVICE, timing(round(1e6 * 1.05**i))) for i, p in enumerate(points[:200])]
    assert 50 < len(_chart(points[:200], apart).marks) <= 200


def test_kernels_have_shapes_of_their_own() -> None:
    points = [case(), case("attention_naive"), case("sgemm_tiled")]
    chart = _chart(points, [passing(p, DEVICE) for p in points])
    assert chart.kernels == (
        ("attention_flash", "circle"), ("attention_naive", "square"), ("sgemm_tiled", "triangle"),
    )  # fmt: skip


def test_wrong_results_and_probes_have_no_place() -> None:
    wrong = trial(case(), DEVICE, Verdict.MISMATCH, time=timing())
    run = results(
        trials=[wrong, *PROBES],
        infos=[
            info(case()),
            *(probe_info(c) for c in (copy_case(64 * KIB), copy_case(256 * MIB), fma_case())),
        ],
    )
    found = ceilings(run.trials, run.cases, DEVICE)
    assert places(found, judge(run, TODAY).trials) == {}


def test_without_probes_there_is_nothing_to_draw() -> None:
    chart = _chart([case()], [passing(case(), DEVICE)], probes=[])
    assert not chart.measured
    assert chart.roofs == chart.marks == ()


def test_one_kind_of_probe_alone_is_drawn_alone() -> None:
    point = [case()]
    only_copy = _chart(point, [passing(case(), DEVICE)], PROBES[:2])
    assert {r.kind for r in only_copy.roofs} == {"cache", "dram"}
    only_fma = _chart(point, [passing(case(), DEVICE)], PROBES[2:])
    assert {r.kind for r in only_fma.roofs} == {"compute"}
    assert FMA_FLOPS > 0
