"""attention_flash_blocked in fp16 with less shared memory: fewer weights lie there at once."""

from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.kernel_folder import load_kernel
from orchestrator.planning.prune import Drop, check
from tests.kernels.harness import KERNELS, make_case

LOADED = load_kernel(KERNELS / "attention_flash_blocked")
HALVES: dict[str, AxisValue] = {"api": "vulkan", "precision": "fp16", "rows": 4, "subgroup": 32}


def _pairs_and_bytes(kernel: Kernel, shared_kib: int, **axes: AxisValue) -> tuple[object, int]:
    workload: dict[str, AxisValue] = {"seq": 512, "head_dim": 64, "heads": 1}
    case = make_case(kernel, workload, axes={**HALVES, "shared_kib": shared_kib, **axes})
    assert not isinstance(check(kernel, case), Drop)
    (only,) = kernel.passes(case)
    return only.context["pairs"], only.shared_bytes


def test_weights_fill_the_shared_memory_that_there_is() -> None:
    big = {kib: _pairs_and_bytes(LOADED.kernel, kib, tile="128x64", chunk=16) for kib in (32, 48)}
    assert big == {32: (2, 29440), 48: (4, 41984)}
    small = {kib: _pairs_and_bytes(LOADED.kernel, kib, tile="32x32", chunk=8) for kib in (16, 48)}
    assert small == {16: (4, 11008), 48: (4, 11008)}


def test_fp32_has_no_such_choice() -> None:
    case = make_case(LOADED.kernel, {"seq": 64, "head_dim": 64, "heads": 1}, axes={"shared_kib": 32})
    found = check(LOADED.kernel, case)
    assert isinstance(found, Drop)
    assert found.reasons == ("shared_kib 32 decides nothing in fp32",)
