"""The suite ``speed`` holds the points whose times stand in docs/measurements."""

import re
from collections.abc import Mapping
from datetime import date

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.expand import expand_blocks
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.matrix_reader import load_matrix
from orchestrator.planning.select import compile_selection
from tests.farm import REPOSITORY

PAGES = REPOSITORY / "docs" / "measurements"
ROW = re.compile(r"^ *(64|128) (\w+) +(vulkan|gles) +(\w+) +(\d+x\d+) ([^.]*?)  ", re.MULTILINE)
BEST: tuple[dict[str, AxisValue], ...] = (
    {"chunk": 16, "pipeline": "prefetch", "wave": "16x128", "lanes": "paired", "pad": 1},
    {"chunk": 16, "pipeline": "prefetch", "wave": "16x128", "lanes": "plain", "pad": 0},
    {"chunk": 8, "pipeline": "double", "wave": "16x128", "lanes": "paired"},
    {"chunk": 8, "pipeline": "plain", "wave": "16x128", "lanes": "paired"},
    {"tile": "64x64", "block": "4x4", "chunk": 16, "wave": "16x32"},
    {"tile": "128x128", "block": "4x4", "chunk": 16, "wave": "16x32"},
    {"precision": "fp16", "chunk": 32, "wave": "16x128", "lanes": "paired"},
    {"m": 1024, "tile": "64x64", "block": "4x8", "chunk": 8, "wave": "16x64"},
    {"m": 1024, "tile": "64x64", "block": "8x8", "chunk": 16, "wave": "64x64"},
)
"""Rows of h200-gemm.txt, whose text is prose."""


@pytest.fixture(scope="module")
def speed() -> list[Case]:
    kernels = {name: loaded.kernel for name, loaded in load_kernels(REPOSITORY / "kernels").items()}
    matrix = load_matrix(REPOSITORY / "matrix.yaml", kernels, date(2026, 12, 1))
    return [case for case, _ in expand_blocks(matrix.suite("speed"), matrix.excludes)]


def _holds(cases: list[Case], wanted: Mapping[str, AxisValue]) -> bool:
    return any(all({**c.axes, **c.workload}[n] == v for n, v in wanted.items()) for c in cases)


def test_rows_of_attention_are_points_of_speed(speed: list[Case]) -> None:
    rows = ROW.findall((PAGES / "h200-speed.txt").read_text())
    assert len(rows) == 26
    for head_dim, kernel, api, precision, tile, variant in rows:
        wanted: dict[str, AxisValue] = {"head_dim": int(head_dim), "seq": 2048, "heads": 32}
        wanted |= {"api": api, "precision": precision, "tile": tile}
        for word in variant.split():
            name, _, value = word.rpartition("=")
            wanted[name or "layout"] = int(value) if value.isdigit() else value
        assert _holds([c for c in speed if c.kernel == f"attention_{kernel}"], wanted), wanted


@pytest.mark.parametrize("wanted", BEST, ids=str)
def test_rows_of_matrix_products_are_points_of_speed(speed: list[Case], wanted: dict[str, AxisValue]) -> None:
    defaults: dict[str, AxisValue] = {"api": "vulkan", "precision": "fp32", "m": 4096}
    assert _holds([c for c in speed if c.kernel == "sgemm"], defaults | wanted)


@pytest.mark.parametrize("page", ["h200-speed.txt", "h200-gemm.txt", "h200-image.txt"])
def test_commands_of_the_pages_select_as_many_points_as_they_say(speed: list[Case], page: str) -> None:
    """``-k '…'`` and, behind it, the number of points."""
    found = re.findall(r"-k '([^']+)'\s+\((\d+) points\)", (PAGES / page).read_text())
    assert found
    for expression, count in found:
        selects = compile_selection(" ".join(expression.split()), source=page)
        assert sum(selects(case) for case in speed) == int(count), expression
