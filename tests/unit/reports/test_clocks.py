"""How a moved clock looks in every output (field case G4-05, first part)."""

import io
from dataclasses import replace

from rich.console import Console

from orchestrator.analysis.canaries import CanaryFacts
from orchestrator.domain.results import Pruned, RunResults
from orchestrator.domain.trial import Sensors, Timing
from orchestrator.domain.verdict import Verdict
from reports import clocks
from reports.build import build_report
from reports.html import render_index, render_soc
from reports.junit import render_junit
from reports.markdown import render_markdown
from reports.model import ReportModel
from reports.terminal import print_summary
from tests.results_fixture import TODAY, case, passing, results, timing

MOVED, STILL = case(tile="8x8"), case(tile="16x8")
HZ = [1_155_000_000] * 4 + [1_980_000_000] * 17


def _timed(*ms: float) -> Timing:
    return replace(timing(), wall_ns=[round(m * 1e6) for m in ms])


def _run(*, hz: list[int] | None = None, both: bool = False) -> RunResults:
    sensors = Sensors(gpu_hz=hz or [])
    moved = replace(passing(MOVED, "local-1", _timed(*[21.2] * 4, *[11.9] * 16)), sensors=sensors)
    still = replace(moved, case_id=STILL.case_id) if both else passing(STILL, "local-1", _timed(*[15.0] * 20))
    return results(trials=[moved, still], points=[MOVED, STILL])


def _terminal(model: ReportModel) -> str:
    file = io.StringIO()
    print_summary(model, Console(file=file, width=220, force_terminal=False, color_system=None))
    return file.getvalue()


def _page(model: ReportModel) -> str:
    return " ".join(render_soc(model, model.socs[0]).split())


def test_g4_05_two_clock_states_stand_beside_the_median_in_words() -> None:
    """G4-05: 4 samples at 1155 MHz and 16 at 1980 MHz are not one median."""
    model = build_report(_run(hz=HZ), None, TODAY)
    rows = {r.case_id: r for r in model.socs[0].devices[0].tables[0].rows}
    words = "two clock states: 4 samples at 1155 MHz 21.2 ms, 16 at 1980 MHz 11.9 ms"
    assert clocks.sentence(rows[MOVED.case_id].clock) == words
    page = _page(model)
    assert f'<span class="warn" title="{words}">clock moved</span>' in page
    assert '×4</span></span><br><span class="soft w">1155 MHz</span>' in page
    assert rows[MOVED.case_id].gflops is None
    assert rows[STILL.case_id].gflops is not None


def test_g4_05_without_a_clock_times_alone_are_two_modes() -> None:
    """G4-05: no clock is claimed that nothing showed."""
    model = build_report(_run(), None, TODAY)
    page = _page(model)
    assert 'title="two modes: 4 samples 21.2 ms, 16 11.9 ms">two modes<' in page
    assert "MHz" not in page
    assert "times fell in two modes in 1 of 2 timed trials" in render_index(model)


def test_g4_05_a_moved_clock_is_no_fastest_variant_beside_a_steady_one() -> None:
    """G4-05: the median of 11.9 ms is below 15 ms, and no candidate."""
    best = build_report(_run(hz=HZ), None, TODAY).socs[0].devices[0].best[0].rows
    assert [b.variant for b in best] == ["16x8"]
    model = build_report(_run(hz=HZ, both=True), None, TODAY)
    best = model.socs[0].devices[0].best[0].rows
    assert best[0].clock.clock_moved
    assert (best[0].gflops, best[0].speedup) == (None, None)
    assert "21.2 ms ×4 / 11.9 ms ×16" in _terminal(model)
    assert "21.2 ms ×4 / 11.9 ms ×16, clock moved" in render_markdown(model)


def test_throttled_samples_are_counted_and_named() -> None:
    made = replace(passing(STILL, "local-1"), sensors=Sensors(throttled=True))
    model = build_report(results(trials=[made], points=[STILL]), None, TODAY)
    said = "10 samples of 1 trial were taken while the device was throttled"
    assert all(said in text for text in (_terminal(model), render_markdown(model), render_index(model)))


def test_a_canary_at_two_speeds_is_told() -> None:
    seen = CanaryFacts("vulkan", 10_144, 5.0, 10_144, 34_100, 6, 138, 0)
    (note,) = clocks.device_notes([], [seen])
    assert note.startswith("the vulkan canary took 10.1 µs to 34.1 µs: its speed varied up to ×3.36")
    assert clocks.device_notes([], [replace(seen, high_ns=11_000)]) == ()


def test_points_of_another_api_are_small_print_and_no_tests() -> None:
    other = case(api="vulkan")
    run = results(trials=[passing(STILL, "local-1")], points=[STILL, other])
    run = replace(run, pruned=[Pruned("local-1", other.case_id, Verdict.UNSUPPORTED, ["lacks api vulkan"])])
    model = build_report(run, None, TODAY)
    said = "Not counted: 1 point of another API (llvmpipe 1)"
    assert said in _terminal(model)
    assert said in render_index(model)
    assert "Not counted: 1 point of another API" in render_markdown(model)
    assert "1 point of another API (vulkan), which this device does not have" in _page(model)
    assert "unsupported" not in model.summary.sentence
    assert 'tests="1"' in render_junit(model, run)
    assert "skipped=" in render_junit(model, run)
    assert "lacks api" not in render_junit(model, run)
