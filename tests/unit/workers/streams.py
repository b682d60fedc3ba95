"""Result streams as the runner writes them (docs/wire-formats.md), made by hand."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence

from orchestrator.domain.digest import sha256_hex

RENDERER, VERSION = "Fake GPU 1", "OpenGL ES 3.2 fake"
DRIVER = f"{RENDERER}; {VERSION}"


def line(kind: str, **fields: object) -> bytes:
    """One record with its LF; numbers that JSON lacks are words."""
    return json.dumps(_plain({"type": kind, **fields}), separators=(",", ":")).encode("ascii") + b"\n"


def _plain(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- JSON of any shape
        case _:
            return value


def hello(run: str = "run-1", number: int = 1) -> bytes:
    return line("hello", format=number, run=run, runner="0.1.0", pid=4711)


def driver() -> bytes:
    return line("driver", api="gles", vendor="Fake", renderer=RENDERER, version=VERSION, glsl="", library="")


def start(case: str, index: int) -> bytes:
    return line("start", case=case, index=index)


def end(case: str, index: int, status: str, **fields: object) -> bytes:
    return line("end", case=case, index=index, status=status, **fields)


def ok(case: str, index: int, outputs: Sequence[dict[str, object]]) -> bytes:
    sensors = {"gpu_hz": [], "temp_mc": [41_000, 41_500], "throttled": None}
    return end(case, index, "ok", timing=TIMING, sensors=sensors, outputs=list(outputs))


def final(before: Iterable[bytes], **lies: object) -> bytes:
    """The final record of these lines; ``lies`` replace what it says."""
    text = b"".join(before)
    cases = sum(b'"type":"end"' in one for one in text.splitlines())
    digest = hashlib.sha256(text).hexdigest()
    said: dict[str, object] = {"cases": cases, "bytes": len(text), "sha256": digest}
    return line("final", **(said | lies))


def whole(*lines: bytes) -> bytes:
    return b"".join(lines) + final(lines)


TIMING: dict[str, object] = {
    "compile_ns": [31_000_000],
    "reused": 0,
    "first_ns": 2_000_000,
    "wall_ns": [1_000_000, 1_000_500],
    "gpu_ns": [],
    "slope_ns": 1_000_100,
    "slope_n": 10,
    "gpu_timer": "absent",
}


def output(**changes: object) -> dict[str, object]:
    """Of a check that passes; ``changes`` make it fail."""
    digest = sha256_hex(b"output")
    passing: dict[str, object] = {
        "buffer": "o", "dtype": "f32", "count": 4, "hash": digest, "hashes": {digest: 2}, "guard": "ok",
        "unwritten": 0, "nan": 0, "inf": 0, "nonfinite_mismatch": 0, "max_abs": 1e-7, "mean_abs": 1e-8,
        "p99_abs": 1e-7, "max_rel": 1e-7, "mean_rel": 1e-8, "p99_rel": 1e-7, "ulp_max": 1.0, "ulp_p50": 0.0,
        "ulp_p99": 1.0, "nmse": 1e-14, "cosine": 1.0, "ref_absmax": 2.0, "failing": 0, "kept": False,
    }  # fmt: skip
    return passing | changes
