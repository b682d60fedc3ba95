"""What the guess of a case's time is made of, and what is paid once for several cases."""

import math
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Cost
from orchestrator.planning import estimate
from orchestrator.planning.estimate import (
    DESKTOP,
    PREPARE_S_PER_ELEMENT,
    PREPARE_S_PER_FLOP,
    SOFTWARE,
    Estimator,
    Work,
)
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.matrix import Sampling
from orchestrator.planning.plan import build_plan
from orchestrator.planning.render import render_case
from tests.farm import REPOSITORY
from tests.kernels.harness import make_case
from tests.unit.planning.test_prune import case
from tests.unit.planning.toy import KERNELS, TOY, device, load, profile

PHONE = device("phone", replace(profile(), renderer="Adreno (TM) 750"), transport="adb", resource="phone")
DESK = device("desk", replace(profile(), renderer="NVIDIA"), resource="gpu")
LAPTOP = device("laptop")
SAMPLING = Sampling(repeats=20, warmup=2, replays=2)
SMALL = Work(Cost(0, 0, 0), programs=1, data_key="k", sent_bytes=0, checked=0)
TWELVE_MEGAPIXELS = replace(SMALL, cost=Cost(0, 384 * 10**6, 384 * 10**6), checked=48 * 10**6)


def seconds(work: Work, on: object = DESK, **known: bool) -> float:
    assert on in (PHONE, DESK, LAPTOP)
    target = PHONE if on is PHONE else DESK if on is DESK else LAPTOP
    return Estimator().estimate(target, case(), work, SAMPLING, **known).seconds


def test_comparing_48_million_elements_takes_longer_than_computing_them_on_a_gpu() -> None:
    """Measured: copy of 64 MiB on an H200, 16.8 M elements, took 2.8 to 3.4 s, of which the GPU 1 ms."""
    computing = 25 * TWELVE_MEGAPIXELS.cost.bytes_moved / 200e9
    assert seconds(TWELVE_MEGAPIXELS) - seconds(SMALL) > 10 * computing
    copied = replace(SMALL, checked=16_809_984)
    assert 1.5 < seconds(copied) - seconds(SMALL) < 6


def test_a_phone_is_sent_data_that_a_local_device_reads_where_they_are() -> None:
    big = replace(SMALL, sent_bytes=200 * 10**6)
    assert seconds(big, PHONE) - seconds(big, PHONE, sent=True) == pytest.approx(10)
    assert seconds(big, DESK) == seconds(big, DESK, sent=True) == seconds(SMALL, DESK)


def test_compiled_shaders_cost_nothing() -> None:
    three = replace(SMALL, programs=3)
    assert seconds(three, LAPTOP) - seconds(SMALL, LAPTOP) == pytest.approx(2 * 0.15)
    assert seconds(three, LAPTOP, compiled=True) == seconds(SMALL, LAPTOP, compiled=True)


def test_a_loop_on_the_host_compiles_its_programs_once() -> None:
    """attention_tiled_sgemm at 2048 keys: 97 dispatches, few programs (decision 0019)."""
    loaded = load_kernels(REPOSITORY / "kernels")
    shape: dict[str, AxisValue] = {"seq": 2048, "head_dim": 64, "heads": 32}
    kernel = loaded["attention_tiled_sgemm"].kernel
    looped = make_case(kernel, shape, axes={"tile": 64, "block": "32x32x16"})
    assert len(kernel.passes(looped)) == 3 * 32 + 1
    texts = {p.glsl for p in render_case(loaded["attention_tiled_sgemm"], looped).passes}
    assert Work.of(kernel, looped).programs == len(texts)
    naive = loaded["attention_naive"].kernel
    assert Work.of(naive, make_case(naive, shape)).programs == 3


def test_cases_that_share_data_are_sent_and_prepared_for_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    text = """\
        version: 1
        suites:
          s:
            blocks:
              - kernel: attention_toy
                workloads: [{{seq: {seqs}, kv_seq: 1, head_dim: 64}}]
                axes: {{tile: {tiles}}}
        """

    def planned(seqs: str, tiles: str) -> tuple[float, float]:
        matrix = load(tmp_path_factory.mktemp("m"), text.format(seqs=seqs, tiles=tiles))
        plan = build_plan(matrix, "s", KERNELS, [PHONE], probes=False)
        return plan.prepare_s, plan.devices[0].seconds

    (one_s, _), (two_tiles_s, shared_s), (two_seqs_s, apart_s) = (
        planned("65536", "8x8"),
        planned("65536", "[8x8, 16x16]"),
        planned("[65536, 66560]", "8x8"),
    )
    assert one_s == two_tiles_s > 0
    assert two_seqs_s == pytest.approx(one_s * (1 + 65 / 64), rel=0.05)
    work = Work.of(TOY, case(seq=66560, kv_seq=1))
    assert apart_s - shared_s == pytest.approx(work.sent_bytes / 20e6, rel=0.1)


def test_docs_tell_the_rates_that_are_used() -> None:
    page = (REPOSITORY / "docs" / "matrix.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]

    def row(start: str) -> list[str]:
        (found,) = [line for line in rows if line.startswith(f"| {start}")]
        return [cell.strip() for cell in found.split("|")[2:-1]]

    def number(text: str) -> float:
        value, unit = text.split()
        return (
            float(value)
            * {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "GB/s": 1e9, "MB/s": 1e6, "s": 1, "ns": 1e-9}[unit]
        )

    speeds = (SOFTWARE, estimate.PHONE, DESKTOP)
    executions = [[number(text) for text in cell.split(", ")] for cell in row("an execution")]
    assert executions == [[s.flops_per_s, s.bytes_per_s] for s in speeds]
    assert [number(cell) for cell in row("compiling")] == [s.compile_s for s in speeds]
    comparing = [[number(text) for text in cell.split(", ")] for cell in row("comparing")]
    assert np.allclose(comparing, [[s.check_s, s.same_s] for s in speeds])
    assert [math.inf if cell == "–" else number(cell) for cell in row("sending")] == [
        s.push_bytes_per_s for s in speeds
    ]
    assert f"{PREPARE_S_PER_FLOP * 1e9:g} ns for each of the device's flops" in page
    assert f"and {PREPARE_S_PER_ELEMENT * 1e9:g} ns an element" in page
