"""attention_flash_lanes: online softmax, rows in registers, no shared memory, no barrier.

Made for drivers that run the invocations of a workgroup as the lanes of a processor's vectors. K and V are
read straight from their buffers, and what is read serves ``rows`` query rows at once. What llvmpipe and
lavapipe make of that (Mesa 22.3, 8 lanes), and why it is so:

- A load from a buffer or from shared memory inside of a loop is itself a loop over the lanes, about 45
  instructions each, also where all lanes read one address: so a load must serve many products.
- Whatever lives across a barrier goes through memory, once for each group of lanes: so there is none.
- A value set in a loop is blended with its old one by the mask of running lanes: the output is touched once
  for BC keys, and there is no branch for a maximum that did not grow.

Axes: ``tile`` BRxBC: BR query rows a workgroup (of BR / ``rows`` invocations), BC keys at a time; ``rows`` of
an invocation; ``subgroup``: 0: every invocation reads every word; N: each of exactly N invocations reads
other words, which they hand each other by shuffles with constant lanes (one permutation of a vector on
lavapipe, where a broadcast is a loop over the lanes again).

The text grows with rows · BC · head_dim, and so does the time to compile it on the processor.
"""

from dataclasses import replace

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Cost, Pass, Subgroups
from orchestrator.ops.attention import AttentionKernel, AttentionShape, tile_of
from orchestrator.ops.attention_glsl import Words, ceil_div, mask_binding, shader_context, shape_constants
from orchestrator.ops.attention_shape import EXTRAS


class AttentionFlashLanes(AttentionKernel):
    name = "attention_flash_lanes"
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage"), default="fp32"),
        Axis("halves", ("packed",), default="packed"),
        Axis("hint", ("highp",), default="highp"),
        Axis(
            "tile",
            ("8x1", "8x4", "16x1", "16x2", "32x1", "32x2", "32x4", "48x1", "48x2", "64x1", "64x2", "128x2"),
            default="32x1",
        ),
        Axis("rows", (1, 2, 4, 6, 8), default=4),
        Axis("subgroup", (0, 4, 8, 16, 32, 64), default=0),
    )
    online = True
    extras = frozenset(EXTRAS)

    def invalid(self, case: Case) -> str | None:
        (br, _), rows = tile_of(case), int(case.axes["rows"])
        invocations, subgroup = _invocations(case), int(case.axes["subgroup"])
        if br % rows:
            return f"rows {rows} does not divide the {br} rows of tile {case.axes['tile']}"
        if subgroup and case.axes["api"] != "vulkan":
            return f"subgroup {subgroup} needs api vulkan; GLSL ES 3.10 has none"
        if subgroup and invocations % subgroup:
            return f"subgroup {subgroup} does not divide {invocations} invocations"
        return super().invalid(case)

    def features(self, case: Case) -> frozenset[str]:
        shuffles = {"subgroup_basic", "subgroup_shuffle"} if case.axes["subgroup"] else set[str]()
        return super().features(case) | shuffles

    def passes(self, case: Case) -> tuple[Pass, ...]:
        by_four = replace(case, axes={**case.axes, "vector": 4})
        shape, words = AttentionShape.of(case), Words.of(by_four)
        br, bc = tile_of(case)
        invocations, subgroup = _invocations(case), int(case.axes["subgroup"])
        context = {
            **shader_context(by_four),
            "br": br,
            "bc": bc,
            "rows": int(case.axes["rows"]),
            "lanes": invocations,
            "subgroup": subgroup,
            "loads": ceil_div(words.units, subgroup) if subgroup else 0,
            "partial": shape.kv_seq % bc != 0,
            "hides": shape.hides(bc),
        }
        return (
            Pass(
                template="lanes.comp.j2",
                workgroup=(invocations, 1, 1),
                grid=(ceil_div(shape.seq, br), shape.heads, 1),
                shared_bytes=0,
                buffers=("q", "k", "v", "o", *mask_binding(case)),
                context=context,
                constants=shape_constants(case),
                subgroups=Subgroups(subgroup, invocations // subgroup) if subgroup else None,
            ),
        )

    def cost(self, case: Case) -> Cost:
        """q is read once. All invocations of a workgroup go through the same keys together, so that a word of
        K or V counts once a block of BR rows, whoever reads it.
        """
        return self.tiled_cost(case, q_elements=AttentionShape.of(case).q_count)


def _invocations(case: Case) -> int:
    """Of a workgroup."""
    return tile_of(case)[0] // int(case.axes["rows"])


kernel = AttentionFlashLanes()
