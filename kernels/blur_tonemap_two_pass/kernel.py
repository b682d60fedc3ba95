"""blur_tonemap_two_pass: blur into an image of the storage type, then tone-map that: the plain formulation.

Two dispatches, two round trips to memory. In 16 bits the image between them is rounded once more than
``blur_tonemap_fused`` rounds; its error budget knows.
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


class BlurTonemapTwoPass(BlurTonemapKernel):
    name = "blur_tonemap_two_pass"
    stored_mean = True

    def passes(self, case: Case) -> tuple[Pass, ...]:
        def step(template: str, source: str, target: str, shared_bytes: int, **context: object) -> Pass:
            return Pass(
                template=template,
                workgroup=(*tile_of(case), 1),
                grid=grid_of(case),
                shared_bytes=shared_bytes,
                buffers=(source, target),
                context={**shader_context(case), **context},
                constants=constants_of(case),
            )

        blur = step("blur.comp.j2", "image", "blurred", halo_bytes(case))
        return blur, step("tone.comp.j2", "blurred", "o", 0, apart=False)


kernel = BlurTonemapTwoPass()
