"""Shape of one blur_tonemap workload, and its reference: a box blur, then a tone curve, in float64.

Images are [height, width, 4] in C order: red, green, blue, alpha.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis

PARAMS: tuple[Axis, ...] = (
    Axis("width", None),
    Axis("height", None),
    Axis("radius", None),
    Axis("scrub", (False, True), default=False),
)
"""Workload parameters of the op."""

GAMMA = float(np.float32(1 / 2.2))
"""The power of the tone curve; an fp32 number, as shaders hold it."""

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ImageShape:
    """A width × height image under a box of (2·radius + 1)² texels."""

    width: int
    height: int
    radius: int
    scrub: bool
    """Texel channels that are NaN or infinite count as 0."""

    @classmethod
    def of(cls, case: Case) -> "ImageShape":
        w = case.workload
        return cls(int(w["width"]), int(w["height"]), int(w["radius"]), bool(w.get("scrub", False)))

    @property
    def count(self) -> int:
        """Elements of an image."""
        return 4 * self.width * self.height

    @property
    def box(self) -> int:
        """Texels under the box."""
        return (2 * self.radius + 1) ** 2


def box_mean(image: Array, shape: ImageShape, first: int, stop: int) -> F64:
    """Means of rows ``first`` to ``stop``: clamp to edge, so a box always has (2·radius + 1)² texels.

    No running sums: one NaN would reach to the end of its row.
    """
    r = shape.radius
    rows = np.clip(np.arange(first - r, stop + r), 0, shape.height - 1)
    columns = np.clip(np.arange(-r, shape.width + r), 0, shape.width - 1)
    with np.errstate(invalid="ignore"):
        band = image[rows].astype(np.float64)
        if shape.scrub:
            band = np.where(np.isfinite(band), band, 0.0)
        tall: F64 = np.zeros_like(band[: stop - first])
        wide: F64 = np.zeros_like(tall)
        for k in range(2 * r + 1):
            tall += band[k : k + stop - first]
        for k in range(2 * r + 1):
            wide += tall[:, columns[k : k + shape.width]]
    return wide / shape.box


def tone_curve(x: F64) -> F64:
    """clamp(x, 0), then x/(1 + x) (Reinhard), then the power 1/2.2. What is not finite stays so: NaN."""
    with np.errstate(invalid="ignore"):
        light = np.where(x < 0, 0.0, x)
        return np.power(light / (1 + light), GAMMA)


def blur_tonemap_reference(image: Array, shape: ImageShape, rows: int) -> F64:
    """The whole op, ``rows`` rows at a time. Alpha is blurred and not tone-mapped.

    Returns:
        [height, width, 4]; NaN where the output must not be finite.
    """
    out: F64 = np.empty((shape.height, shape.width, 4))
    for first in range(0, shape.height, rows):
        stop = min(first + rows, shape.height)
        mean = box_mean(image, shape, first, stop)
        out[first:stop, :, :3] = tone_curve(mean[..., :3])
        out[first:stop, :, 3] = mean[..., 3]
    return np.where(np.isinf(out), np.nan, out)
