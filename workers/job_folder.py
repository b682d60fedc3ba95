"""The job file that the runner reads (docs/wire-formats.md, "Job folder")."""

from collections.abc import Sequence

from orchestrator.domain.job import CaseJob


def job_text(run_id: str, cases: Sequence[CaseJob], blobs_dir: str) -> str:
    """``job.txt`` for these cases; ``blobs_dir`` as the device sees it."""
    lines = ["tilefarm-job 1", f"run {run_id}", f"blobs {blobs_dir}", "heartbeat_ms 1000"]
    for case in cases:
        lines += _case_lines(case)
    lines.append(f"end {len(cases)}")
    return "\n".join(lines) + "\n"


def _case_lines(case: CaseJob) -> list[str]:
    lines = [
        f"case {case.case_id}",
        f"api {case.api}",
        f"deadline_ms {case.deadline_ms}",
        f"warmup {case.warmup}",
        f"repeats {case.repeats}",
        f"replays {case.replays}",
    ]
    for b in case.buffers:
        blob = f" {b.blob}" if b.blob else ""
        lines.append(f"buffer {b.name} {b.role} {b.dtype} {b.count}{blob}")
    for p in case.passes:
        x, y, z = p.grid
        lines.append(f"pass {p.shader} {x} {y} {z} {p.shared_bytes} {','.join(p.buffers)}")
    for c in case.checks:
        lines.append(f"check {c.buffer} {c.reference} {c.atol!r} {c.rtol!r} {c.nmse!r}")
        lines.append(f"keep {c.buffer} {c.keep}")
    lines.append("endcase")
    return lines
