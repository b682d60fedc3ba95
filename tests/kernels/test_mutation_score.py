"""How many mutants there are of which kernel; docs/numerics.md holds the same numbers."""

from tests.kernels import (
    mutants,
    mutants_image,
    mutants_masks,
    mutants_matrix,
    mutants_scale,
    mutants_sgemm,
    mutants_tiled_sgemm,
    test_blocked,
    test_blocked_halves,
    test_flash_lanes,
)
from tests.kernels.drivers import ROOT
from tests.kernels.harness import KERNELS, load_kernels

IMAGE = (
    *mutants_image.BLUR_MUTANTS,
    *mutants_image.NATIVE_MUTANTS,
    *mutants_scale.SCALE_MUTANTS,
    *mutants_scale.SLANG_MUTANTS,
)
SCORE = {
    "test_mutants.py": (*mutants.MUTANTS, *mutants.FP16_MUTANTS, *mutants_masks.MASK_MUTANTS),
    "test_tiled_sgemm.py": mutants_tiled_sgemm.MUTANTS,
    "test_flash_lanes.py": (*test_flash_lanes.MUTANTS, *test_flash_lanes.SHUFFLED),
    "test_blocked.py": test_blocked.MUTANTS,
    "test_blocked_halves.py": test_blocked_halves.MUTANTS,
    "test_matrix_units.py": mutants_matrix.MUTANTS,
    "test_sgemm_mutants.py": (*mutants_sgemm.MUTANTS, *mutants_sgemm.SUBGROUP_MUTANTS),
    "test_image_mutants.py": IMAGE,
}
"""By the file that runs them."""


def test_every_kernel_is_broken_on_purpose() -> None:
    ops = {name for name, loaded in load_kernels(KERNELS).items() if loaded.kernel.role == "op"}
    assert {mutant.kernel for found in SCORE.values() for mutant in found} == ops
    assert sum(len(found) for found in SCORE.values()) >= 40


def test_the_page_has_the_same_numbers() -> None:
    page = (ROOT / "docs" / "numerics.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines() if line.startswith("|")]
    told = {row[-2].strip("`"): int(row[2]) for row in rows if row[-2].strip("`") in SCORE}
    assert told == {file: len(found) for file, found in SCORE.items()}
