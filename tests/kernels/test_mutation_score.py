"""docs/numerics.md says how many ways of being wrong each kernel's tests kill, and on which drivers."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import pytest

from tests.kernels import (
    mutants_matrix,
    mutants_tiled_sgemm,
    test_blocked,
    test_blocked_halves,
    test_flash_lanes,
    test_image_mutants,
    test_mutants,
    test_sgemm_mutants,
)
from tests.kernels.drivers import DRIVERS, ROOT

PAGE = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `.*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| `(test_\w+)\.py` \|$", re.MULTILINE)


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Racing(Named, Protocol):
    @property
    def race(self) -> bool: ...


def _races_everywhere(mutants: Sequence[Racing]) -> Mapping[str, Sequence[Named]]:
    """All on SwiftShader, missing barriers on every driver."""
    return {name: [m for m in mutants if m.race or name == "swiftshader"] for name in DRIVERS}


OF: dict[str, Mapping[str, Sequence[Named]]] = {
    "test_mutants": test_mutants.OF,
    "test_blocked": _races_everywhere(test_blocked.MUTANTS),
    "test_blocked_halves": {"lavapipe": test_blocked_halves.MUTANTS},
    "test_flash_lanes": test_flash_lanes.OF,
    "test_matrix_units": {"lavapipe": mutants_matrix.MUTANTS},
    "test_tiled_sgemm": _races_everywhere(mutants_tiled_sgemm.MUTANTS),
    "test_sgemm_mutants": test_sgemm_mutants.OF,
    "test_image_mutants": test_image_mutants.OF,
}


@pytest.mark.parametrize("file", OF)
def test_the_page_counts_the_mutants_that_run(file: str) -> None:
    rows = {found[-1]: tuple(int(n) for n in found[:-1]) for found in ROW.findall(PAGE)}
    each = [{m.name for m in OF[file].get(name, ())} for name in DRIVERS]
    assert rows[file] == (len(set[str]().union(*each)), *map(len, each))
    assert set(rows) == set(OF)
