"""What attention templates need to know about a case (kernels/_shared/attention.glsl.j2 uses all of it).

A *word* is what buffers and tiles are moved by: ``unit`` consecutive elements of one row.

| precision | vector | word | unit | value in arithmetic |
| --- | --- | --- | --- | --- |
| fp32 | 1 | float | 1 | float |
| fp32 | 4 | vec4 | 4 | vec4 |
| fp16_storage | 1 | uint (packHalf2x16) | 2 | vec2 |
| fp16_storage | 4 | uvec2 | 4 | vec4 |

A row that is not a whole number of words ends in a word padded with zeros; in buffers rows follow each
other without padding, so such rows are read and written element by element (``aligned`` is False).
"""

from dataclasses import dataclass

from orchestrator.domain.case import Case
from orchestrator.ops.attention import is_half
from orchestrator.ops.attention_shape import AttentionShape

_WORDS = {(False, 1): "float", (False, 4): "vec4", (True, 1): "uint", (True, 4): "uvec2"}
_VALUES = {(False, 1): "float", (False, 4): "vec4", (True, 1): "vec2", (True, 4): "vec4"}


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
    value: str
    half: bool

    @classmethod
    def of(cls, case: Case) -> "Words":
        half, vector = is_half(case), int(case.axes["vector"])
        unit = 4 if vector == 4 else 2 if half else 1
        units = ceil_div(AttentionShape.of(case).head_dim, unit)
        nbytes = unit * (2 if half else 4)
        return cls(unit, units, nbytes, _WORDS[half, vector], _VALUES[half, vector], half)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def shader_context(case: Case) -> dict[str, object]:
    """Constants of a case for the templates; sizes are numbers, also where the case holds a word."""
    shape, words = AttentionShape.of(case), Words.of(case)
    return {
        "seq": shape.seq,
        "kv_seq": shape.kv_seq,
        "head_dim": shape.head_dim,
        "heads": shape.heads,
        "group": shape.group,
        "causal": shape.causal,
        "diagonal": shape.diagonal,
        "scale": f"{shape.scale:.9g}" if "." in f"{shape.scale:.9g}" else f"{shape.scale:.1f}",
        "unit": words.unit,
        "units": words.units,
        "word": words.word,
        "value": words.value,
        "half": words.half,
        "aligned": shape.head_dim % words.unit == 0,
        "unrolled": case.axes["vector"] == 4,
        "low": case.axes["hint"],
    }
