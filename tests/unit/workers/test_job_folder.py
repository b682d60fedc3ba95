"""job.txt as docs/wire-formats.md has it, word for word."""

import re
from dataclasses import replace
from pathlib import Path

from orchestrator.domain.job import BufferJob, CaseJob, CheckJob, PassJob
from orchestrator.domain.wire import from_json, to_json
from workers.job_folder import job_text

CASE = CaseJob(
    case_id="case-a",
    attempt=3,
    label="attention_flash[tile=8x8] seq=8 inputs=normal",
    api="vulkan",
    code_hash="c0de",
    buffers=[
        BufferJob("q", "in", "f16", 64, "a" * 64),
        BufferJob("s", "scratch", "u32", 16),
        BufferJob("o", "inout", "f32", 64, "b" * 64),
        BufferJob("raw", "out", "u32", 12),
    ],
    passes=[
        PassJob(
            "c" * 64,
            (4, 2, 1),
            4096,
            ("q", "s", "o"),
            constants=(1500, -1),
            values=(0, 2**32 - 1),
            subgroup=32,
        ),
        PassJob("d" * 64, (1, 1, 1), 0, ("o", "raw")),
    ],
    checks=[CheckJob("o", "e" * 64, 1e-6, 0.0, 2.5e-10, "always", shape=(8, 8))],
    deadline_ms=20_000,
    warmup=1,
    warmup_ms=400,
    repeats=10,
    replays=2,
    idle_replays=50,
    idle_ms=60_000,
    kept=("raw",),
)

TEXT = f"""\
tilefarm-job 1
run run-1
blobs /data/local/tmp/tilefarm/blobs
adapter vulkan 13-0a1b
enable float16,storage16
heartbeat_ms 1000
case case-a
api vulkan
deadline_ms 20000
warmup 1
warmup_ms 400
repeats 10
replays 2
idle_replays 50 60000
buffer q in f16 64 {"a" * 64}
buffer s scratch u32 16
buffer o inout f32 64 {"b" * 64}
buffer raw out u32 12
pass {"c" * 64} 4 2 1 4096 q,s,o
constants 1500,4294967295
values 0,4294967295
subgroup 32
pass {"d" * 64} 1 1 1 0 o,raw
check o {"e" * 64} 1e-06 0.0 2.5e-10
shape o 8,8
keep o always
keep raw always
endcase
end 1
"""


def test_the_text_of_a_job() -> None:
    text = job_text(
        "run-1",
        [CASE],
        "/data/local/tmp/tilefarm/blobs",
        adapter="13-0a1b",
        enable=("float16", "storage16"),
    )
    assert text == TEXT


def test_what_is_not_asked_for_is_not_written() -> None:
    """A runner of the time before Vulkan understands a job for GLES."""
    plain = replace(
        CASE,
        passes=[PassJob("d" * 64, (1, 1, 1), 0, ("o",))],
        checks=[],
        warmup_ms=0,
        idle_replays=0,
        kept=(),
    )
    words = {line.split(" ")[0] for line in job_text("run-1", [plain], "blobs").splitlines()}
    assert not words & {
        "adapter",
        "enable",
        "warmup_ms",
        "idle_replays",
        "constants",
        "values",
        "subgroup",
        "shape",
        "keep",
    }


def test_no_case_is_a_whole_file_too() -> None:
    assert job_text("run-1", [], "blobs").splitlines()[-1] == "end 0"


def test_every_statement_is_documented() -> None:
    """A word that the documentation lacks is a word that the runner refuses."""
    page = Path(__file__).parents[3].joinpath("docs", "wire-formats.md").read_text(encoding="utf-8")
    block = page.split("```")[1]
    documented = {line.split(" ")[0] for line in block.splitlines() if line}
    assert {line.split(" ")[0] for line in TEXT.splitlines()} == documented


def test_tolerances_keep_every_digit() -> None:
    """What the kernel computed is what the runner compares with, after a way through JSON as well."""
    odd = 1.2345678901234567e-7
    made = CaseJob("c", 1, "l", "gles", "h", [], [], [CheckJob("o", "e" * 64, odd, odd, odd)])
    case = from_json(CaseJob, to_json(made), "test")
    line = next(x for x in job_text("r", [case], "b").splitlines() if x.startswith("check"))
    assert [float(w) for w in line.split(" ")[3:]] == [odd] * 3
    assert re.fullmatch(r"[ -~]+", line)
