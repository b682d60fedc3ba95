#!/usr/bin/env python3
"""Runs a hand-made job on the machine's real GLES driver and checks every record against the contract.

    python3 tests/gpu_job.py build/linux/tilefarm-runner [--keep DIR]

Standard library only. Exit code 0 when all is as docs/wire-formats.md says.
"""

import array
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Record = dict[str, Any]
COUNT = 4096
HEAD = "#version 310 es\nlayout(local_size_x = 64) in;\n"
BUFFERS = (
    "layout(std430, binding = 0) readonly buffer In { float x[]; } a;\n"
    "layout(std430, binding = 1) writeonly buffer Out { float y[]; } b;\n"
)
INDEX = "    uint i = gl_GlobalInvocationID.x;\n"


def shader(body: str, head: str = HEAD, buffers: str = BUFFERS) -> bytes:
    return (head + buffers + "void main() {\n" + INDEX + body + "}\n").encode()


DOUBLE = shader("    b.y[i] = 2.0 * a.x[i];\n")
WRONG = shader("    b.y[i] = i == 100u ? uintBitsToFloat(0x7fc00001u) : i == 7u ? 3.0 : 2.0 * a.x[i];\n")
HALF_WRITTEN = shader("    if (i < 2048u) b.y[i] = 2.0 * a.x[i];\n")
BROKEN = shader("    b.y[i] = \u00e9 undeclared(a.x[i]);\n")
# Many invocations for llvmpipe, which silently ends the loops of each after 65,535 iterations; many
# iterations for a real GPU, which takes some seconds for them.
ENDLESS = shader(
    "    float s = a.x[0];\n    for (int j = 0; j < 2000; j++)\n"
    "        for (int k = 0; k < 60000; k++) s = s * 1.0000001 + 0.5;\n    b.y[i % 4096u] = s;\n"
)
IN_PLACE = shader(
    "    b.y[i] = b.y[i] + 1.0;\n",
    buffers="layout(std430, binding = 0) buffer InOut { float y[]; } b;\n",
)
HALVES = shader(
    "    if (i < 2048u) y.w[i] = packHalf2x16(2.0 * unpackHalf2x16(x.w[i]));\n",
    buffers="layout(std430, binding = 0) readonly buffer In { uint w[]; } x;\n"
    "layout(std430, binding = 1) writeonly buffer Out { uint w[]; } y;\n",
)
VALUES = "uniform highp uint tilefarm_values[3];\n"
# b = a · (its second value), in place after the first dispatch; the third value is not read.
TIMES = shader("    b.y[i] = float(tilefarm_values[1]) * a.x[i];\n", head=HEAD + VALUES)
UNREAD = shader("    b.y[i] = 2.0 * a.x[i];\n", head=HEAD + VALUES)
SIGNED = shader("    b.y[i] = float(tilefarm_values[0]);\n", head=HEAD + VALUES.replace("uint", "int"))
WIDE = shader(
    "    b.y[i] = 2.0 * a.x[i];\n",
    head="#version 310 es\nlayout(local_size_x = 256) in;\n",
)


class Job:
    def __init__(self, folder: Path, api: str = "gles", header: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.api = api
        self.lines = ["tilefarm-job 1", "run r1", "blobs blobs", *header, "heartbeat_ms 200"]
        self.cases = 0
        (folder / "blobs").mkdir(parents=True, exist_ok=True)

    def blob(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / name).write_bytes(data)
        return name

    def case(self, name: str, lines: list[str], deadline_ms: int = 20000, replays: int = 2) -> None:
        head = [f"case {name}", f"api {self.api}", f"deadline_ms {deadline_ms}", "warmup 1", "warmup_ms 30"]
        self.lines += [*head, "repeats 3", f"replays {replays}", *lines, "endcase"]
        self.cases += 1

    def values_case(self, name: str, source: bytes, values: tuple[str, ...]) -> None:
        """y = 6x by a pass for each entry of ``values``, all with one shader: x → t → y."""
        numbers = array.array("f", (i / 8 for i in range(COUNT)))
        reference = array.array("d", (6 * i / 8 for i in range(COUNT)))
        steps = ["x,t", "t,y"] if len(values) == 2 else ["x,y"]
        lines = [
            f"buffer x in f32 {COUNT} {self.blob(numbers.tobytes())}",
            f"buffer t scratch f32 {COUNT}",
            f"buffer y out f32 {COUNT}",
        ]
        for step, words in zip(steps, values, strict=True):
            lines += [f"pass {self.blob(source)} {COUNT // 64} 1 1 0 {step}", *([words] if words else [])]
        self.case(name, [*lines, f"check y {self.blob(reference.tobytes())} 0 0 0"])

    def scale_case(
        self, name: str, source: bytes, deadline_ms: int = 20000, groups: int = COUNT // 64, shared: int = 0
    ) -> None:
        values = array.array("f", (i / 8 for i in range(COUNT)))
        reference = array.array("d", (i / 4 for i in range(COUNT)))
        self.case(
            name,
            [
                f"buffer x in f32 {COUNT} {self.blob(values.tobytes())}",
                f"buffer y out f32 {COUNT}",
                f"pass {self.blob(source)} {groups} 1 1 {shared} x,y",
                f"check y {self.blob(reference.tobytes())} 1e-6 1e-6 1e-10",
                "keep y failed",
            ],
            deadline_ms,
        )

    def write(self) -> None:
        text = "\n".join([*self.lines, f"end {self.cases}"]) + "\n"
        (self.folder / "job.txt").write_text(text)


def halves(count: int) -> bytes:
    return b"".join(struct.pack("<e", i / 8) for i in range(count))


def build(folder: Path) -> None:
    job = Job(folder)
    job.scale_case("pass", DOUBLE)
    job.scale_case("again", DOUBLE)
    job.scale_case("wrong", WRONG)
    job.scale_case("half-written", HALF_WRITTEN)
    job.scale_case("broken", BROKEN)
    job.scale_case("hung", ENDLESS, deadline_ms=1500, groups=60000)
    job.scale_case("shared", DOUBLE, shared=1 << 30)
    job.scale_case("wide", WIDE, groups=COUNT // 256)
    job.values_case("values", TIMES, ("values 7,2,9", "values 8,3,4294967295"))
    job.values_case("too-few-values", TIMES, ("values 7",))
    job.values_case("no-values", TIMES, ("",))
    job.values_case("unread-values", UNREAD, ("values 7,3,9",))
    job.values_case("signed-values", SIGNED, ("values 7,3,9",))
    values = array.array("f", range(64))
    job.case(
        "in-place",
        [
            f"buffer y inout f32 64 {job.blob(values.tobytes())}",
            f"pass {job.blob(IN_PLACE)} 1 1 1 0 y",
            f"check y {job.blob(array.array('d', range(1, 65)).tobytes())} 0 0 0",
        ],
    )
    job.case(
        "halves",
        [
            f"buffer x in f16 4096 {job.blob(halves(4096))}",
            "buffer y out f16 4096",
            f"pass {job.blob(HALVES)} 64 1 1 0 x,y",
            f"check y {job.blob(array.array('d', (i / 4 for i in range(4096))).tobytes())} 0.5 1e-3 1e-6",
            "keep y always",
        ],
    )
    job.case("no-blob", [f"buffer x in f32 4 {'0' * 64}", f"pass {job.blob(DOUBLE)} 1 1 1 0 x"])
    job.write()


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"gpu_job: {what}")


def check_stream(out: bytes, children: int) -> dict[str, Record]:
    expect(out.isascii() and out.endswith(b"\n"), "stream is not whole ASCII lines")
    lines = out.splitlines(keepends=True)
    records: list[Record] = [json.loads(line) for line in lines]
    final = records[-1]
    body = b"".join(lines[:-1])
    expect(records[0]["type"] == "hello" and final["type"] == "final", "no hello or final record")
    expect(final["bytes"] == len(body), "final record: bytes")
    expect(final["sha256"] == hashlib.sha256(body).hexdigest(), "final record: sha256")
    ends = [r for r in records if r["type"] == "end"]
    starts = [r for r in records if r["type"] == "start"]
    expect(final["cases"] == len(ends) == len(starts), "final record: cases")
    expect([r["index"] for r in ends] == list(range(len(ends))), "order of end records")
    expect(
        sum(r["type"] == "driver" for r in records) == children,
        f"one driver record a child process, {children}: {out.decode()}",
    )
    return {r["case"]: r for r in ends}


def check_records(ends: dict[str, Record], folder: Path) -> None:
    statuses = {name: record["status"] for name, record in ends.items()}
    expect(
        statuses
        == {
            "pass": "ok",
            "again": "ok",
            "wrong": "ok",
            "half-written": "ok",
            "broken": "compile_failed",
            "hung": "hung",
            "shared": "unsupported",
            "wide": "ok",
            "values": "ok",
            "too-few-values": "compile_failed",
            "no-values": "compile_failed",
            "unread-values": "compile_failed",
            "signed-values": "compile_failed",
            "in-place": "ok",
            "halves": "ok",
            "no-blob": "error",
        },
        f"statuses: {statuses}",
    )
    good = ends["pass"]["outputs"][0]
    expect(good["failing"] == 0 and good["max_abs"] == 0 and good["guard"] == "ok", f"pass: {good}")
    expect(good["hashes"] == {good["hash"]: 3} and "differs" not in good, f"pass: {good}")
    timing = ends["pass"]["timing"]
    expect(
        len(timing["wall_ns"]) == 3 and timing["gpu_timer"] in ("trusted", "absent", "disagrees"),
        f"timing: {timing}",
    )
    expect(ends["again"]["timing"]["reused"] == 1, "a shader of the case before is compiled again")
    wrong = ends["wrong"]["outputs"][0]
    expect(wrong["failing"] == 2 and wrong["nan"] == 1, f"wrong: {wrong}")
    expect(wrong["first_bad"] == {"index": 7, "got": 3, "ref": 1.75}, f"wrong: {wrong}")
    expect(wrong["worst"] == {"index": 100, "got": "nan", "ref": 25}, f"wrong: {wrong}")
    kept = (folder / "tensors" / "wrong.y.bin").read_bytes()
    expect(hashlib.sha256(kept).hexdigest() == wrong["hash"] and wrong["kept"], "kept tensor")
    expect(not (folder / "tensors" / "pass.y.bin").exists(), "tensor of a passing case was kept")
    half = ends["half-written"]["outputs"][0]
    expect(half["unwritten"] == 2048 and half["unwritten_first"] == 2048, f"half-written: {half}")
    expect("error" in ends["broken"]["log"], f"compile log: {ends['broken']}")
    expect(ends["hung"]["deadline_ms"] == 1500 and ends["hung"]["stage"] == "dispatch", f"{ends['hung']}")
    expect(ends["shared"]["reason"].startswith("shared_bytes 1073741824 > "), f"{ends['shared']}")
    expect(
        ends["in-place"]["outputs"][0]["hashes"] == {ends["in-place"]["outputs"][0]["hash"]: 2},
        f"{ends['in-place']}",
    )
    values = ends["values"]
    expect(values["outputs"][0]["failing"] == 0, f"values: {values}")
    expect(values["outputs"][0]["hashes"] == {values["outputs"][0]["hash"]: 3}, f"values: {values}")
    expect(len(values["timing"]["compile_ns"]) == 1, f"one program for two dispatches: {values}")
    refusals = {
        "too-few-values": "values, and the pass gives 1",
        "no-values": "values, and the pass gives 0",
        "unread-values": "the shader reads no values, and the pass gives 3",
        "signed-values": "the shader's values are no uint",
    }
    for name, part in refusals.items():
        expect(part in ends[name]["log"] and ends[name]["stage"] == "link", f"{name}: {ends[name]}")
    halves_out = ends["halves"]["outputs"][0]
    expect(halves_out["failing"] == 0 and halves_out["unwritten"] == 0, f"halves: {halves_out}")
    expect(len((folder / "tensors" / "halves.y.bin").read_bytes()) == 8192, "size of a kept f16 tensor")


def main() -> int:
    runner = sys.argv[1]
    probe = subprocess.run([runner, "probe", "--api", "gles"], check=False, capture_output=True, timeout=90)
    expect(
        probe.returncode == 0, f"no GLES driver here (scripts/setup installs one): {probe.stderr.decode()}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[3] if "--keep" in sys.argv else temporary)
        build(folder)
        run = subprocess.run([runner, "run", str(folder)], check=False, capture_output=True, timeout=120)
        if "--keep" in sys.argv:
            sys.stdout.write(run.stdout.decode())
        expect(run.returncode == 0, f"exit code {run.returncode}: {run.stderr.decode()}")
        check_records(check_stream(run.stdout, children=2), folder)
        expect(b'"type":"beat"' in run.stdout, "no heartbeat during the hang")
    limited = {"TILEFARM_IMPOSE": "invocations=128", "PATH": "/usr/bin:/bin"}
    with tempfile.TemporaryDirectory() as temporary:
        job = Job(Path(temporary))
        job.scale_case("wide", WIDE, groups=COUNT // 256)
        job.write()
        run = subprocess.run(
            [runner, "run", temporary], check=False, capture_output=True, timeout=60, env=limited
        )
        reasons: list[str | None] = [json.loads(line).get("reason") for line in run.stdout.splitlines()]
        expect("invocations 256 > 128" in reasons, f"imposed limit: {run.stdout.decode()}")
    print("gpu_job: all records are as documented")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
