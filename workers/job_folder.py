"""The job file that the runner reads (docs/wire-formats.md, "Job folder")."""

from collections.abc import Sequence

from orchestrator.domain.job import CaseJob, CheckJob, PassJob


def job_text(
    run_id: str, cases: Sequence[CaseJob], blobs_dir: str, *, adapter: str = "", enable: Sequence[str] = ()
) -> str:
    """``job.txt`` for these cases; ``blobs_dir`` as the device sees it.

    Args:
        adapter: which of the machine's Vulkan GPUs; empty: the first one.
        enable: features to switch on when its device is created: only proven ones.
    """
    lines = ["tilefarm-job 1", f"run {run_id}", f"blobs {blobs_dir}"]
    if adapter:
        lines.append(f"adapter vulkan {adapter}")
    if enable:
        lines.append(f"enable {','.join(enable)}")
    lines.append("heartbeat_ms 1000")
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
    ]
    if case.warmup_ms:
        lines.append(f"warmup_ms {case.warmup_ms}")
    lines += [f"repeats {case.repeats}", f"replays {case.replays}"]
    if case.idle_replays:
        lines.append(f"idle_replays {case.idle_replays} {case.idle_ms}")
    for b in case.buffers:
        blob = f" {b.blob}" if b.blob else ""
        lines.append(f"buffer {b.name} {b.role} {b.dtype} {b.count}{blob}")
    for p in case.passes:
        lines += _pass_lines(p)
    for c in case.checks:
        lines += _check_lines(c)
    lines += [f"keep {name} always" for name in case.kept]
    lines.append("endcase")
    return lines


def _pass_lines(p: PassJob) -> list[str]:
    x, y, z = p.grid
    lines = [f"pass {p.shader} {x} {y} {z} {p.shared_bytes} {','.join(p.buffers)}"]
    if p.constants:  # 32 bits each; the shader reads them as the int that they are
        lines.append(f"constants {','.join(str(v & 0xFFFFFFFF) for v in p.constants)}")
    if p.values:
        lines.append(f"values {','.join(map(str, p.values))}")
    if p.subgroup:
        lines.append(f"subgroup {p.subgroup}")
    return lines


def _check_lines(c: CheckJob) -> list[str]:
    lines = [f"check {c.buffer} {c.reference} {c.atol!r} {c.rtol!r} {c.nmse!r}"]
    if c.shape:
        lines.append(f"shape {c.buffer} {','.join(map(str, c.shape))}")
    return [*lines, f"keep {c.buffer} {c.keep}"]
