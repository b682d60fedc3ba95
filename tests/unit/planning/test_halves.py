"""Where a tile fits in 16 bits and not in 32, the plan says so, with the numbers."""

from pathlib import Path

from orchestrator.planning.plan import build_plan
from tests.unit.planning.toy import KERNELS, PHONE_LIMITS, device, load, profile

TEXT = """\
    version: 1
    suites:
      s:
        blocks:
          - kernel: attention_toy
            workloads: [{seq: [64, 128], head_dim: 64}]
            axes: {tile: [8x8, 32x16, 128x16], precision: [fp32, fp16_storage]}
            inputs: [normal, n1_logit_151]
          - kernel: copy_probe
    """


def sentences(folder: Path, text: str = TEXT, **limits: int) -> list[str]:
    target = device("d", profile(limits=PHONE_LIMITS | limits))
    (plan,) = build_plan(load(folder, text), "s", KERNELS, [target]).devices
    return [f"{f.sentence}; {f.points}" for f in plan.half_fits]


def test_the_tile_that_only_halves_fit_is_named_with_all_numbers(tmp_path: Path):
    assert sentences(tmp_path, shared_bytes=20_480) == [
        "attention_toy (gles) tile 128x16: fp16_storage fits (20480 of 20480 shared_bytes), "
        "fp32 does not (40960); 4"
    ]


def test_nothing_is_said_where_both_fit_or_neither_does(tmp_path: Path):
    assert sentences(tmp_path, shared_bytes=40_960) == []
    assert sentences(tmp_path, shared_bytes=2_048) == []


def test_halves_that_something_else_forbids_do_not_fit(tmp_path: Path):
    assert sentences(tmp_path, shared_bytes=20_480, invocations=64) == []


def test_without_its_fp32_twin_a_tile_is_not_compared(tmp_path: Path):
    only_half = TEXT.replace("precision: [fp32, fp16_storage]", "precision: fp16_storage")
    assert sentences(tmp_path, only_half, shared_bytes=20_480) == []
