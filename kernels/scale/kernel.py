"""scale: o = a · o in place, the smallest kernel with 16-bit numbers: all it does is move bytes.

Axes:

- ``precision``: fp32; fp16_storage: 16 bits in memory, the product is fp32; fp16: a 16-bit product.
- ``halves``: packed two to a word (packHalf2x16), or native 16-bit types.
- ``vector``: words an invocation moves at once, 1 or 4. A word is one fp32, two packed halves or one native
  half. Counts that are no multiple of it are moved word by word: a buffer must not be read past its end.
- ``language``: glsl, or slang, which slangc compiles (Vulkan only; docs/kernels.md says what to install).
  Slang has no packed halves here: its ``half`` is the native type, and needs float16 and uniform16 as well.

An odd count of packed halves ends in half a word. Its other half is nobody's, and is left as it was.
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance
from orchestrator.ops import scale
from orchestrator.ops.halves import computes_in_half, element_bytes, is_half, is_native, storage_dtype

MOST_GROUPS = 32_768
"""In one dimension of the grid; 65,535 are all that a device must offer."""


class Scale(Kernel):
    name = "scale"
    op = "scale"
    params = (Axis("n", None), Axis("percent", None, default=150))
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage", "fp16"), default="fp16_storage"),
        Axis("halves", ("packed", "native"), default="packed"),
        Axis("vector", (1, 4), default=4),
        Axis("group", (64, 128, 256), default=64),
        Axis("language", ("glsl", "slang"), default="glsl"),
    )
    distributions = tuple(scale.DISTRIBUTIONS)
    tolerance_version = f"scale-{scale.BUDGET_VERSION}"

    def invalid(self, case: Case) -> str | None:
        api, precision, native = case.axes["api"], case.axes["precision"], is_native(case)
        if native and not is_half(case):
            return "halves native needs a 16-bit precision: fp16_storage or fp16"
        if api != "vulkan" and (native or precision == "fp16"):
            return "16-bit types need api vulkan; GLES has packed halves in fp16_storage"
        if is_slang(case) and api != "vulkan":
            return "language slang needs api vulkan: slangc makes SPIR-V"
        if is_slang(case) and is_half(case) and not native:
            return "language slang needs halves native: packed halves are the GLSL template's"
        return None

    def features(self, case: Case) -> frozenset[str]:
        """16-bit types in buffers need storage16; float16 only where they are computed with."""
        needed: set[str] = set()
        native = is_native(case)
        if is_half(case):
            needed.add("storage16" if native else "pack_half")
        if computes_in_half(case):
            needed.add("float16")
        if is_slang(case) and native:
            needed |= {"float16", "uniform16"}  # slangc declares both wherever there is a half in a buffer
        return frozenset(needed)

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        return (Buffer("o", "inout", storage_dtype(case), int(case.workload["n"])),)

    def passes(self, case: Case) -> tuple[Pass, ...]:
        words, last_is_half = words_of(case)
        vector, group = int(case.axes["vector"]), int(case.axes["group"])
        whole = words % vector == 0 and not last_is_half
        groups = -(-words // (group * vector))
        half, low = is_half(case), computes_in_half(case)
        constants = {"WORDS": words}
        if is_slang(case):
            constants["ROW_GROUPS"] = min(groups, MOST_GROUPS)  # Slang does not tell a shader the grid's size
        only = Pass(
            template="scale.slang.j2" if is_slang(case) else "scale.comp.j2",
            workgroup=(group, 1, 1),
            grid=(min(groups, MOST_GROUPS), -(-groups // MOST_GROUPS), 1),
            shared_bytes=0,
            buffers=("o",),
            context={
                "packed": half and not is_native(case),
                "native": is_native(case),
                "low": low,
                "whole": whole,
                "last_is_half": last_is_half,
                "factor": f"{scale.factor_of(int(case.workload['percent']), half=low):.9g}",
            },
            constants=constants,
        )
        return (only,)

    def data_key(self, case: Case) -> str:
        n, percent, half = case.workload["n"], case.workload["percent"], is_half(case)
        return f"scale-1 {n} {percent} {case.inputs} {case.seed} {half}"

    def inputs(self, case: Case) -> Mapping[str, Array]:
        values = scale.build(case.inputs, int(case.workload["n"]), case.seed)
        with np.errstate(over="ignore"):
            return {"o": values.astype(np.float16 if is_half(case) else np.float32)}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        percent = int(case.workload["percent"])
        return {"o": scale.scale_reference(inputs["o"], percent, half_storage=is_half(case))}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Derivation: orchestrator/ops/scale.py."""
        half, percent = is_half(case), int(case.workload["percent"])
        reference = scale.scale_reference(inputs["o"], percent, half_storage=half)
        return {
            "o": scale.scale_tolerance(
                reference, percent, half_storage=half, half_product=computes_in_half(case)
            )
        }

    def cost(self, case: Case) -> Cost:
        """Every element is read once and written once, in any variant."""
        n = int(case.workload["n"])
        moved = 2 * n * element_bytes(case)
        return Cost(flops=n, bytes_min=moved, bytes_moved=moved)


def is_slang(case: Case) -> bool:
    return case.axes["language"] == "slang"


def words_of(case: Case) -> tuple[int, bool]:
    """Words of the buffer, the last one included, and whether that holds one half only."""
    n = int(case.workload["n"])
    if not is_half(case) or is_native(case):
        return n, False
    return -(-n // 2), n % 2 == 1


kernel = Scale()
