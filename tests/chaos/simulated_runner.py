"""A runner without a GPU: speaks docs/wire-formats.md, takes the time that its phone says, knows all answers.

Installed on virtual phones in place of the real one, so that thousands of cases take minutes. It needs
nothing but Python's standard library, for it is pushed as one file. The answer to a case is its
reference, rounded to the type of the output: right by construction, and another one for each case.

A phone runs one of them at a time; where a second one starts, both are noted. What is noted stands in
``executions.jsonl`` of the phone's ``.phone`` folder:

- ``begin``: ``id`` (monotonic ns; also ``slope_ns`` of every result of this execution), ``run``, ``cases``
- ``overlap``: ``id``, ``other`` (the execution that still ran)
- ``end``: ``id``; missing for one that was killed
"""

import fcntl
import hashlib
import json
import os
import re
import sys
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

PHONE = Path(os.environ.get("PHONE", "."))
LOG = PHONE / "executions.jsonl"
BUSY = PHONE / "busy"
VERSION = "OpenGL ES 3.2 simulated"
BEAT_S = 1.0
_ERRORS = (
    "max_abs", "mean_abs", "p99_abs", "max_rel", "mean_rel", "p99_rel",
    "ulp_max", "ulp_p50", "ulp_p99", "nmse",
)  # fmt: skip


@dataclass
class Buffer:
    dtype: str
    count: int
    blob: str


@dataclass
class Case:
    """What of a job's case the answer depends on."""

    case_id: str
    replays: int = 1
    repeats: int = 0
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    checks: dict[str, str] = field(default_factory=dict[str, str])
    """Buffer → blob of its reference."""
    keep: dict[str, str] = field(default_factory=dict[str, str])
    blobs: set[str] = field(default_factory=set[str])


def setting(name: str, default: str) -> str:
    """Of this phone, from its profile."""
    file = PHONE / "settings" / "chaos" / name
    return file.read_text("utf-8").strip() if file.is_file() else default


class Stream:
    """JSON lines with a proven end. A host that went away ends us, as SIGPIPE ends the real one."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._bytes = 0
        self._ends = 0

    def write(self, kind: str, **fields: object) -> None:
        line = json.dumps({"type": kind, **fields}, separators=(",", ":")).encode("ascii") + b"\n"
        self._digest.update(line)
        self._bytes += len(line)
        self._ends += kind == "end"
        self._put(line)

    def finish(self) -> None:
        said = {"cases": self._ends, "bytes": self._bytes, "sha256": self._digest.hexdigest()}
        self._put(json.dumps({"type": "final", **said}, separators=(",", ":")).encode("ascii") + b"\n")

    @staticmethod
    def _put(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def rounded(reference: bytes, dtype: str) -> bytes:
    """Little-endian float64 as the output's type holds it."""
    values = array("d", reference)
    if dtype == "f32":
        return array("f", values).tobytes()
    raise SystemExit(f"the simulated runner has no answer of type {dtype}")


def parse(text: str) -> tuple[str, str, list[Case]]:
    """Run id, folder of blobs, cases."""
    run, blobs = "", ""
    cases: list[Case] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        words = rest.split(" ")
        match word:
            case "run":
                run = rest
            case "blobs":
                blobs = rest
            case "case":
                cases.append(Case(rest))
            case "replays":
                cases[-1].replays = int(rest)
            case "repeats":
                cases[-1].repeats = int(rest)
            case "buffer":
                name, _role, dtype, count, *blob = words
                cases[-1].buffers[name] = Buffer(dtype, int(count), "".join(blob))
                cases[-1].blobs |= set(blob)
            case "pass":
                cases[-1].blobs.add(words[0])
            case "check":
                cases[-1].checks[words[0]] = words[1]
                cases[-1].blobs.add(words[1])
            case "keep":
                cases[-1].keep[words[0]] = words[1]
            case "end":
                if int(rest) != len(cases):
                    sys.exit("job.txt: another number of cases than its end says")
                return run, blobs, cases
            case _:
                pass
    sys.exit("job.txt: no end")


def output(job: Path, case: Case, name: str, reference: bytes) -> dict[str, object]:
    buffer = case.buffers[name]
    data = rounded(reference, buffer.dtype)
    digest = hashlib.sha256(data).hexdigest()
    kept = case.keep.get(name) == "always"
    if kept:
        tensors = job / "tensors"
        tensors.mkdir(exist_ok=True)
        (tensors / f"{case.case_id}.{name}.bin").write_bytes(data)
    exact = dict.fromkeys(_ERRORS, 0.0)
    return {
        "buffer": name, "dtype": buffer.dtype, "count": buffer.count, "hash": digest,
        "hashes": {digest: case.replays + 1}, "guard": "ok", "unwritten": 0, "nan": 0, "inf": 0,
        "nonfinite_mismatch": 0, "failing": 0, "cosine": 1.0, "ref_absmax": 1.0, "kept": kept, **exact,
    }  # fmt: skip


def answer(job: Path, blobs: Path, case: Case, execution: int) -> dict[str, object]:
    """Fields of an end record."""
    data: dict[str, bytes] = {}
    for digest in sorted(case.blobs):
        file = blobs / digest
        data[digest] = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(data[digest]).hexdigest() != digest:
            return {"status": "error", "stage": "buffers", "reason": f"blob {digest} is missing or damaged"}
    wall_ns = 1_000_000 + int(hashlib.sha256(case.case_id.encode()).hexdigest()[:4], 16)
    timing = {
        "compile_ns": [1_000_000], "reused": 0, "first_ns": 1_000_000, "wall_ns": [wall_ns] * case.repeats,
        "gpu_ns": [wall_ns] * case.repeats, "gpu_timer": "trusted", "slope_ns": execution, "slope_n": 0,
    }  # fmt: skip
    outputs = [output(job, case, name, data[blob]) for name, blob in case.checks.items()]
    sensors: dict[str, object] = {"gpu_hz": [], "temp_mc": [], "throttled": None}
    return {"status": "ok", "timing": timing, "sensors": sensors, "outputs": outputs}


def note(log: TextIO, event: str, **fields: object) -> None:
    log.write(json.dumps({"event": event, **fields}) + "\n")
    log.flush()


def run(job: Path) -> None:
    execution = time.monotonic_ns()
    run_id, blobs, cases = parse((job / "job.txt").read_text("ascii"))
    with LOG.open("a", encoding="utf-8") as log, BUSY.open("a+", encoding="utf-8") as busy:
        note(log, "begin", id=execution, run=run_id, cases=[c.case_id for c in cases])
        try:
            fcntl.flock(busy, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with this process, however that ends
        except BlockingIOError:
            busy.seek(0)
            note(log, "overlap", id=execution, other=int(busy.read() or 0))
        busy.truncate(0)
        busy.write(str(execution))
        busy.flush()
        execute(job, run_id, job / blobs, cases, execution)
        note(log, "end", id=execution)


def execute(job: Path, run_id: str, blobs: Path, cases: list[Case], execution: int) -> None:
    pace_s = float(setting("case_ms", "20")) / 1000
    stream = Stream()
    stream.write("hello", format=1, run=run_id, runner="simulated", pid=os.getpid())
    stream.write("driver", **driver(), library="simulated")
    for index, case in enumerate(cases):
        stream.write("start", case=case.case_id, index=index)
        left = 0.0 if case.case_id.startswith("canary-") else pace_s
        while left > BEAT_S:
            time.sleep(BEAT_S)  # stands for the GPU's work; heartbeats go on
            left -= BEAT_S
            stream.write("beat", uptime_ms=round((time.monotonic_ns() - execution) / 1e6))
        time.sleep(left)  # likewise: what a case takes
        stream.write("end", case=case.case_id, index=index, **answer(job, blobs, case, execution))
    stream.finish()


def driver() -> dict[str, object]:
    """A GPU of its own for each phone: those that share one wait for each other."""
    return {
        "api": "gles", "vendor": "Tilefarm", "renderer": setting("renderer", "Simulated GPU"),
        "version": VERSION, "glsl": "OpenGL ES GLSL ES 3.20",
    }  # fmt: skip


def probe() -> None:
    imposed = re.findall(r"(\w+)=(\d+)", os.environ.get("TILEFARM_IMPOSE", ""))
    limits = {name: int(value) for name, value in imposed} | {
        "count_x": 65_535, "count_y": 65_535, "count_z": 65_535, "storage_bytes": 1 << 27,
        "storage_bindings": 16, "storage_align": 16,
    }  # fmt: skip
    stream = Stream()
    stream.write(
        "profile", format=1, **driver(), library="simulated", limits=limits, features={"pack_half": True}
    )
    stream.finish()


def main() -> int:
    if sys.argv[1:2] == ["probe"]:
        probe()
    else:
        run(Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the host closed the link
        os._exit(1)
