"""From an end record to a verdict and the first thing a person must know about it.

Written so that NaN fails: every limit is tested as ``not (value <= limit)``.
"""

from collections.abc import Mapping
from typing import assert_never

from orchestrator.domain.job import CaseJob, CheckJob
from orchestrator.domain.trial import Numerics
from orchestrator.domain.verdict import Verdict
from workers.result_stream import EndRecord
from workers.unsteady import Output, unsteadiness


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
            if end.stage in ("compile", "link"):
                return Verdict.COMPILE_FAILED, f"the driver died in {end.stage}: {end.reason or how}"
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
    outputs = {o.buffer: o for o in end.outputs} | end.kept
    doubt = _other_outputs(end, case) or next(
        filter(None, (_too_few(n, o, case) for n, o in outputs.items())), ""
    )
    if doubt:
        return Verdict.INFRA, doubt
    faults = {name: _faults(o) for name, o in outputs.items()}
    for o in end.outputs:
        faults[o.buffer] += _errors(o, checks[o.buffer])
    wrong = [f"{name}: {', '.join(facts)}" for name, facts in faults.items() if facts]
    unsteady = [f"{name}: {unsteadiness(o)}" for name, o in outputs.items() if len(o.hashes) != 1]
    if unsteady:  # also when the first execution happened to be the wrong one
        return Verdict.NONDETERMINISTIC, "; ".join(unsteady + wrong)
    if wrong:
        return Verdict.MISMATCH, "; ".join(wrong)
    return Verdict.PASS, ""


def _other_outputs(end: EndRecord, case: CaseJob) -> str:
    checked = {c.buffer for c in case.checks}
    asked = [(b.name, b.dtype, b.count) for b in case.buffers if b.name in checked]
    if sorted((o.buffer, o.dtype, o.count) for o in end.outputs) != sorted(asked):
        return "the runner checked other buffers than the job asked for"
    if sorted(end.kept) != sorted(case.kept):
        return "the runner kept other buffers than the job asked for"
    return ""


def _too_few(name: str, o: Output, case: CaseJob) -> str:
    """Why these executions are not those that were asked for; empty if they are."""
    asked = case.replays + case.idle_replays
    if (verified := sum(o.hashes.values())) < asked:
        return f"{name}: {verified} executions were verified, {asked} asked for"
    if (rested := sum(o.idle_hashes.values())) != case.idle_replays:
        return f"{name}: {rested} executions came after a rest, {case.idle_replays} asked for"
    return ""


def _faults(o: Output) -> list[str]:
    """What is wrong with an output whatever it should hold."""
    facts: list[str] = []
    if o.guard != "ok":
        facts.append("wrote outside its buffer (guard band damaged)")
    if o.unwritten:
        facts.append(f"{o.unwritten} of {o.count} elements never written, first {o.unwritten_first}")
    return facts


def _errors(o: Numerics, check: CheckJob) -> list[str]:
    """What is wrong beside its reference."""
    facts: list[str] = []
    if o.nonfinite_mismatch:
        facts.append(f"{o.nonfinite_mismatch} elements finite on one side only ({o.nan} NaN, {o.inf} inf)")
    if o.failing:
        facts.append(f"{o.failing} of {o.count} elements outside tolerance, max error {o.max_abs:.3g}")
    if not (o.nmse <= check.nmse):
        facts.append(f"NMSE {o.nmse:.3g} > {check.nmse:.3g}")
    return facts
