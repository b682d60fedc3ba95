from dataclasses import replace

import pytest

from orchestrator.analysis.outcome import judge
from orchestrator.analysis.tiles import TileGrid, tile_coordinates, tile_grids
from orchestrator.domain.case import Case
from orchestrator.domain.results import Pruned
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import TODAY, case, passing, results, timing, trial


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("64x16", ("64", "16")),
        ("128x64x8", ("128", "64x8")),
        ("64", None),
        ("64x", None),
        ("x16", None),
        ("auto", None),
        ("64x16 ", None),
    ],
)
def test_tile_coordinates(text: str, found: tuple[str, str] | None) -> None:
    assert tile_coordinates(text) == found


def _grids(trials: list[Trial], points: list[Case], pruned: list[Pruned] | None = None) -> list[TileGrid]:
    run = replace(results(trials=trials, points=points), pruned=pruned or [])
    return tile_grids(run, judge(run, TODAY).trials, "local-1")


def test_grid_is_sorted_by_number_and_takes_the_best_of_the_other_axes() -> None:
    points = [case(tile=t, vector=v) for t in ("8x16", "16x8", "128x16") for v in (1, 4)]
    trials = [passing(p, "local-1", timing((20 - i) * 1_000_000)) for i, p in enumerate(points)]
    grid = _grids(trials, points)[0]
    assert (grid.rows, grid.columns) == (("8", "16", "128"), ("8", "16"))
    assert grid.cells["8", "16"].median_ns == pytest.approx(19e6, rel=1e-6)
    assert grid.cells["8", "16"].why == "vector=4"
    assert grid.fixed == "api=gles precision=fp32"


def test_precisions_never_share_a_grid() -> None:
    points = [case(tile=t, precision=p) for p in ("fp32", "fp16_storage") for t in ("8x8", "16x8", "32x8")]
    grids = _grids([passing(p, "local-1") for p in points], points)
    assert [g.fixed for g in grids] == ["api=gles precision=fp32", "api=gles precision=fp16_storage"]


def test_wrong_and_pruned_cells_say_why() -> None:
    points = [case(tile=t) for t in ("8x8", "16x8", "32x8", "64x8", "128x8")]
    trials = [passing(p, "local-1") for p in points[:3]]
    trials.append(trial(points[3], "local-1", Verdict.MISMATCH, reason="4 elements", time=timing(1000)))
    pruned = Pruned("local-1", points[4].case_id, Verdict.UNSUPPORTED, ["shared_bytes 2 > 1"])
    cells = _grids(trials, points, [pruned])[0].cells
    assert (cells["64", "8"].median_ns, cells["64", "8"].verdict) == (None, Verdict.MISMATCH)
    assert cells["64", "8"].why == "4 elements"
    assert (cells["128", "8"].median_ns, cells["128", "8"].verdict) == (None, None)
    assert cells["128", "8"].why == "shared_bytes 2 > 1"


def test_two_tiles_are_no_map() -> None:
    points = [case(tile=t) for t in ("8x8", "16x8")]
    assert _grids([passing(p, "local-1") for p in points], points) == []
