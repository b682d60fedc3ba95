"""What attention templates need to know about a case (kernels/_shared/attention.glsl.j2 uses all of it).

A *word* is what buffers and tiles are moved by: ``unit`` consecutive elements of one row. A *value* is what
sums and accumulators of a word are held in; an *operand* is what products of it are computed in.

| storage | halves | vector | word | unit | fp32 value |
| --- | --- | --- | --- | --- | --- |
| fp32 | | 1 | float | 1 | float |
| fp32 | | 4 | vec4 | 4 | vec4 |
| 16 bits | packed | 1 | uint (packHalf2x16) | 2 | vec2 |
| 16 bits | packed | 4 | uvec2 | 4 | vec4 |
| 16 bits | native | 1 | float16_t | 1 | float |
| 16 bits | native | 4 | f16vec4 | 4 | vec4 |

A row that is not a whole number of words ends in a word padded with zeros; in buffers rows follow each
other without padding, so such rows are read and written element by element (``aligned`` is False).
"""

from dataclasses import dataclass

from orchestrator.domain.case import Case
from orchestrator.ops.attention import sums_in_half
from orchestrator.ops.attention_shape import AttentionShape, ceil_div
from orchestrator.ops.halves import computes_in_half, is_half, is_native

_PACKED = {2: "uint", 4: "uvec2"}
_FLOATS = {1: "float", 2: "vec2", 4: "vec4"}
_HALVES = {1: "float16_t", 2: "f16vec2", 4: "f16vec4"}


@dataclass(frozen=True, slots=True)
class Words:
    """How a case moves rows of head_dim elements."""

    unit: int
    """Elements in a word."""
    units: int
    """Words in a row, the padded one included."""
    nbytes: int
    """Bytes of a word."""
    word: str
    half: bool
    native: bool

    @classmethod
    def of(cls, case: Case) -> "Words":
        half, native = is_half(case), is_native(case)
        unit = 4 if case.axes["vector"] == 4 else 2 if half and not native else 1
        units = ceil_div(AttentionShape.of(case).head_dim, unit)
        word = (_HALVES if native else _PACKED if half else _FLOATS)[unit]
        return cls(unit, units, unit * (2 if half else 4), word, half, native)


def shape_constants(case: Case) -> dict[str, int]:
    """What a module for Vulkan is specialised by."""
    shape = AttentionShape.of(case)
    rows = {} if shape.allocated == shape.kv_seq else {"KV_ROWS": shape.allocated}
    return {"SEQ": shape.seq, "KV_SEQ": shape.kv_seq, **rows}


def shader_context(case: Case) -> dict[str, object]:
    """Constants of a case for the templates; sizes are numbers, also where the case holds a word."""
    shape, words = AttentionShape.of(case), Words.of(case)
    low_arithmetic, low_sums = computes_in_half(case), sums_in_half(case)
    hint = str(case.axes["hint"])
    low = "highp" if hint == "precise" else hint
    return {
        "head_dim": shape.head_dim,
        "heads": shape.heads,
        "group": shape.group,
        "causal": shape.causal,
        "diagonal": _diagonal(case, shape),
        "window": shape.window,
        "mask": shape.mask,
        "kv_heads": shape.kv_heads,
        "kv_rows": "KV_SEQ" if shape.allocated == shape.kv_seq else "KV_ROWS",
        "kv_order": shape.kv_order,
        "scale": f"{shape.scale:.9g}" if "." in f"{shape.scale:.9g}" else f"{shape.scale:.1f}",
        "unit": words.unit,
        "units": words.units,
        "word": words.word,
        "half": words.half,
        "native": words.native,
        "aligned": shape.head_dim % words.unit == 0,
        "unrolled": case.axes["vector"] == 4,
        "low": low,
        "exact": "precise " if hint == "precise" else "",
        "low_arithmetic": low_arithmetic,
        "low_sums": low_sums,
        "late_scale": words.half and not low_arithmetic,
        **_types(words, low_arithmetic=low_arithmetic, low_sums=low_sums),
    }


def _diagonal(case: Case, shape: AttentionShape) -> int | str:
    """A number, or of constants by which a module is specialised."""
    if case.axes["api"] == "gles" or shape.align == "top_left":
        return shape.diagonal
    return "KV_SEQ - SEQ"


def mask_binding(case: Case) -> tuple[str, ...]:
    """The buffer of the mask as the last one of a pass, where there is one."""
    return () if AttentionShape.of(case).mask == "none" else ("mask",)


def _types(words: Words, *, low_arithmetic: bool, low_sums: bool) -> dict[str, str]:
    """Names of types as the templates spell them; only fp32 types take the hint (LOW)."""
    wide, narrow = _FLOATS[words.unit], _HALVES[words.unit]
    return {
        "value": narrow if low_sums else wide,
        "wide_value": wide,
        "operand": narrow,
        "operand_type": "HALF" if low_arithmetic else "LOW VALUE",
        "scalar": "float16_t" if low_sums else "float",
        "stored": "WIDE" if low_sums else "VALUE",
        "tile_word": "WORD" if words.native else "highp WORD" if words.half else "LOW WORD",
    }
