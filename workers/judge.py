"""From an end record to a verdict and the first thing a person must know about it.

Written so that NaN fails: every limit is tested as ``not (value <= limit)``.
"""

from collections.abc import Mapping
from typing import assert_never

from orchestrator.domain.job import CaseJob, CheckJob
from orchestrator.domain.trial import Numerics
from orchestrator.domain.verdict import Verdict
from workers.result_stream import EndRecord


def judge(end: EndRecord, case: CaseJob) -> tuple[Verdict, str]:
    """Verdict and reason (empty for a pass) of one case."""
    match end.status:
        case "ok":
            return _judge_outputs(end, case)
        case "compile_failed":
            return Verdict.COMPILE_FAILED, f"{end.stage} failed; see the driver's log"
        case "unsupported":
            return Verdict.UNSUPPORTED, end.reason
        case "crashed":
            how = f"signal {end.signal}" if end.signal is not None else f"exit code {end.exit_code}"
            if end.stage == "context":
                return Verdict.INFRA, f"the driver died while a context was opened ({how})"
            if end.reason:  # the context was lost, or the process wrote garbage: it was ended for that
                return Verdict.CRASHED, f"{end.stage}: {end.reason}"
            return Verdict.CRASHED, f"the runner's process died in {end.stage}: {how}"
        case "hung":
            if end.stage == "context":
                return Verdict.INFRA, f"no context within {end.deadline_ms} ms"
            return Verdict.HUNG, f"still in {end.stage} after {end.deadline_ms} ms"
        case "error":
            return Verdict.INFRA, f"{end.stage}: {end.reason}"
    assert_never(end.status)


def _judge_outputs(end: EndRecord, case: CaseJob) -> tuple[Verdict, str]:
    checks: Mapping[str, CheckJob] = {c.buffer: c for c in case.checks}
    asked = [(b.name, b.dtype, b.count) for b in case.buffers if b.name in checks]
    if sorted((o.buffer, o.dtype, o.count) for o in end.outputs) != sorted(asked):
        return Verdict.INFRA, "the runner checked other buffers than the job asked for"
    for o in end.outputs:
        if (verified := sum(o.hashes.values())) < case.replays:
            return Verdict.INFRA, f"{o.buffer}: {verified} executions were verified, {case.replays} asked for"
    wrong = [text for o in end.outputs if (text := _mismatch(o, checks[o.buffer]))]
    unsteady = [_nondeterministic(o) for o in end.outputs if len(o.hashes) != 1]
    if unsteady:  # also when the first execution happened to be the wrong one
        return Verdict.NONDETERMINISTIC, "; ".join(unsteady + wrong)
    if wrong:
        return Verdict.MISMATCH, "; ".join(wrong)
    return Verdict.PASS, ""


def _mismatch(o: Numerics, check: CheckJob) -> str:
    facts: list[str] = []
    if o.guard != "ok":
        facts.append("wrote outside its buffer (guard band damaged)")
    if o.unwritten:
        facts.append(f"{o.unwritten} of {o.count} elements never written, first {o.unwritten_first}")
    if o.nonfinite_mismatch:
        facts.append(f"{o.nonfinite_mismatch} elements finite on one side only ({o.nan} NaN, {o.inf} inf)")
    if o.failing:
        facts.append(f"{o.failing} of {o.count} elements outside tolerance, max error {o.max_abs:.3g}")
    if not (o.nmse <= check.nmse):
        facts.append(f"NMSE {o.nmse:.3g} > {check.nmse:.3g}")
    return f"{o.buffer}: " + ", ".join(facts) if facts else ""


def _nondeterministic(o: Numerics) -> str:
    runs = sum(o.hashes.values())
    odd = runs - max(o.hashes.values())
    text = f"{o.buffer}: {len(o.hashes)} different results in {runs} executions, {odd} unlike the commonest"
    if o.differs:
        text += f"; {o.differs.count} elements between {o.differs.first} and {o.differs.last}"
    return text
