"""attention_flash_matrix where there are no matrix units: its template with matrices put in by hand (see
emulated_matrices), on lavapipe under the validation layer. Any place of the elements must do."""

from pathlib import Path

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from tests.kernels.attention_mutant import Mutant, assert_all_killed
from tests.kernels.emulated_matrices import emulated
from tests.kernels.harness import KERNELS, Bench, make_case
from tests.kernels.mutants_matrix import MUTANTS, NAME
from tests.kernels.named_inputs import BASE, WORKLOADS

Workload = dict[str, AxisValue]


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedKernel:
    folder = tmp_path / NAME
    folder.mkdir()
    return emulated(load_kernels(KERNELS)[NAME], folder)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "jobs", "lavapipe", repeats=0, unoptimised=True)


def _assert_passes(bench: Bench, loaded: LoadedKernel, *cases: Case) -> None:
    bench.folder.mkdir()
    bench.passing([(loaded, case) for case in cases])


@pytest.mark.parametrize(
    ("workload", "tile", "blocks"),
    [
        ({"seq": 33, "kv_seq": 70, "head_dim": 5, "heads": 4, "kv_heads": 2}, "16x16", 1),
        ({"seq": 20, "kv_seq": 50, "head_dim": 24, "heads": 2, "causal": True}, "16x16", 1),
        ({"seq": 70, "kv_seq": 50, "head_dim": 16, "heads": 1, "causal": True}, "32x16", 2),
        ({"seq": 33, "kv_seq": 33, "head_dim": 8, "heads": 1, "causal": True}, "32x32", 2),
        (
            {
                "seq": 20,
                "kv_seq": 18,
                "head_dim": 8,
                "heads": 4,
                "kv_heads": 2,
                "causal": True,
                "align": "top_left",
                "kv_rows": 24,
                "kv_order": "row",
            },
            "16x16",
            1,
        ),
    ],
)
def test_ragged_shapes(
    bench: Bench, loaded: LoadedKernel, workload: Workload, tile: str, blocks: int
) -> None:
    case = make_case(loaded.kernel, workload, axes={"tile": tile, "blocks": blocks})
    _assert_passes(bench, loaded, case)


def test_named_inputs(bench: Bench, loaded: LoadedKernel) -> None:
    """Masked first tiles, rows without keys, growing maxima, and rows that are not finite."""
    names = ("n3_logit_minus_60000", "n4_rows_without_keys", "n5_first_tile_masked", "n9_rising_logits")
    cases = [
        make_case(loaded.kernel, {**BASE, **WORKLOADS[name]}, inputs=name, axes={"tile": "16x16"})
        for name in (*names, "n15_nan_row", "n15_inf_row")
    ]
    _assert_passes(bench, loaded, *cases)


def test_mutants_are_killed_where_they_are_wrong(tmp_path: Path, bench: Bench, loaded: LoadedKernel) -> None:
    """Each broken in its own text, before matrices are put in."""

    def broken(mutant: Mutant) -> LoadedKernel:
        folder = tmp_path / "emulated" / mutant.name
        folder.mkdir(parents=True)
        return emulated(mutant.load(tmp_path / "mutants"), folder)

    bench.folder.mkdir()
    assert_all_killed(bench, loaded, [(mutant, broken(mutant)) for mutant in MUTANTS], {"tile": "16x16"})
