"""blur_tonemap_fused: one dispatch; the blurred texel goes from registers into the tone curve.

The image is read once and written once, if a cache holds the rows under the boxes: half the traffic of
``blur_tonemap_two_pass``. The arithmetic is not free for all that: with ``rows`` 1 every texel is loaded
(2·radius + 1)² times from a cache or from shared memory; ``rows`` 8 at radius 2 loads 7.5 for each output.
"""

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Pass
from orchestrator.ops.blur_tonemap import (
    BlurTonemapKernel,
    constants_of,
    grid_of,
    halo_bytes,
    shader_context,
    tile_of,
)


class BlurTonemapFused(BlurTonemapKernel):
    name = "blur_tonemap_fused"
    stored_mean = False

    def passes(self, case: Case) -> tuple[Pass, ...]:
        fused = Pass(
            template="fused.comp.j2",
            workgroup=(*tile_of(case), 1),
            grid=grid_of(case),
            shared_bytes=halo_bytes(case),
            buffers=("image", "o"),
            context=shader_context(case),
            constants=constants_of(case),
        )
        return (fused,)


kernel = BlurTonemapFused()
