"""Named images of blur_tonemap; every builder gives [height, width, 4] fp32, before rounding to storage."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orchestrator.ops.blur_tonemap_shape import ImageShape

Image = NDArray[np.float32]


def _normal(shape: ImageShape, rng: np.random.Generator) -> Image:
    """Light with highlights: absolute values of normal numbers, no two texels or channels alike."""
    return np.abs(rng.standard_normal(_size(shape), dtype=np.float32))


def _dark(shape: ImageShape, rng: np.random.Generator) -> Image:
    """Shadows, 2⁻¹² to 2⁻⁴: where the power of 1/2.2 is steep and its exponent large."""
    return np.exp2(rng.uniform(-12, -4, _size(shape))).astype(np.float32)


def _constant(value: float) -> Callable[[ImageShape, np.random.Generator], Image]:
    def build(shape: ImageShape, rng: np.random.Generator) -> Image:
        del rng
        return np.full(_size(shape), value, np.float32)

    return build


def _one_texel(value: float) -> Callable[[ImageShape, np.random.Generator], Image]:
    def build(shape: ImageShape, rng: np.random.Generator) -> Image:
        image = _constant(0.5)(shape, rng)
        image[middle(shape)] = value
        return image

    return build


def _negative(shape: ImageShape, rng: np.random.Generator) -> Image:
    """Colours of -0.01 in the left half, 0.5 in the right one, alpha 1."""
    image = _constant(0.5)(shape, rng)
    image[:, : (shape.width + 1) // 2] = -0.01
    image[..., 3] = 1.0
    return image


DISTRIBUTIONS: dict[str, Callable[[ImageShape, np.random.Generator], Image]] = {
    "normal": _normal,
    "dark": _dark,
    "constant_1": _constant(1.0),
    "constant_4096": _constant(4096.0),
    "constant_65504": _constant(65504.0),
    "beyond_half": _constant(131072.0),
    "negative": _negative,
    "nan_texel": _one_texel(float("nan")),
    "inf_texel": _one_texel(float("inf")),
    "texel_65504": _one_texel(65504.0),
}


def build(inputs: str, shape: ImageShape, seed: int) -> Image:
    return DISTRIBUTIONS[inputs](shape, np.random.default_rng(seed))


def refusal(inputs: str, *, half_storage: bool) -> str | None:
    """Why a distribution does not fit a precision, or None."""
    if inputs == "beyond_half" and half_storage:
        return "inputs beyond_half holds 131072; fp16 ends at 65504"
    return None


def middle(shape: ImageShape) -> tuple[int, int]:
    """(row, column) of the odd texel: (31, 31) of 64 × 64."""
    return (shape.height - 1) // 2, (shape.width - 1) // 2


def _size(shape: ImageShape) -> tuple[int, int, int]:
    return shape.height, shape.width, 4
