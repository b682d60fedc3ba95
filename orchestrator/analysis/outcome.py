"""Each trial against the known failures that apply to it on a given day."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from typing import assert_never

from orchestrator.analysis.demotion import Demotions
from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import WireError
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.results import CaseInfo, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.select import compile_selection

CompileWhen = Callable[[str], Callable[[Case], bool]]
"""Compiles a selection expression (the language of ``-k``) into a predicate over cases."""


def compile_recorded(text: str) -> Callable[[Case], bool]:
    """A ``when`` as results.json keeps it. Names were checked when the matrix was read."""
    return compile_selection(text, source="results.json: expectations")


class Outcome(StrEnum):
    """What a trial means for the run."""

    PASSED = "pass"
    EXPECTED_FAILURE = "known failure"
    """Ended in the verdict that an unexpired expectation names."""
    UNEXPECTEDLY_PASSED = "unexpected pass"
    """Passed although an unexpired expectation says that it fails; of a flake: in enough executions."""
    FAILURE = "failure"
    """Blames the kernel, and nothing unexpired expected that."""
    INFRA = "infra"
    """Says nothing about the kernel: no result was obtained."""
    UNSUPPORTED = "unsupported"
    """Refused on the device with a named reason (verdicts ``unsupported`` and ``invalid``)."""


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    trial: Trial
    info: CaseInfo
    device: DeviceRecord
    outcome: Outcome
    note: str = ""
    """Why the outcome is not simply the verdict, e.g. the reason of the known failure."""
    expectation: Expectation | None = None
    """The known failure that decided the outcome, or the expired one that no longer did."""

    @property
    def probe(self) -> bool:
        """It measured the device, not a variant: in no table, list or count of variants."""
        return self.info.role != "op"


@dataclass(frozen=True, slots=True)
class ExpectationUse:
    """How one known failure fared in this run."""

    expectation: Expectation
    expired: bool
    matched: int
    """Trials that it covered, whatever their verdict."""


@dataclass(frozen=True, slots=True)
class Judgement:
    trials: tuple[JudgedTrial, ...]
    uses: tuple[ExpectationUse, ...]


def device_driver(device: DeviceRecord, api: str) -> str:
    """Renderer and version that the device was probed with, as trials name them (``renderer; version``).

    Empty for an API that it was not probed for.
    """
    profile = device.profile(api)
    return "" if profile is None else profile.driver_text


def trial_driver(trial: Trial, device: DeviceRecord, case: Case) -> str:
    """The driver that executed the trial; the probed one where the trial died before naming it."""
    return trial.driver or device_driver(device, str(case.axes.get("api", "")))


def judge(results: RunResults, today: date, compile_when: CompileWhen = compile_recorded) -> Judgement:
    """Outcome of every trial, in the order of ``results.trials``.

    A precision probe that ran and found less precision than was asked for counts as a mismatch (field case
    G1-13), so that known failures, counts and exit code treat it as any wrong result.

    Raises:
        WireError: a trial names a device or a case that the results do not describe.
        UsageError: a ``when`` that is not a selection expression.
    """
    devices: Mapping[str, DeviceRecord] = {d.device_id: d for d in results.devices}
    predicates = [compile_when(e.when) for e in results.expectations]
    matched = [0] * len(predicates)
    demotions = Demotions(results)
    judged: list[JudgedTrial] = []
    for recorded in results.trials:
        info, device = _lookup(results, devices, recorded)
        trial = _with_demotion(recorded, demotions)
        driver = trial_driver(trial, device, info.case)
        covering: list[Expectation] = []
        for i, (expectation, predicate) in enumerate(zip(results.expectations, predicates, strict=True)):
            if expectation.covers_device(device.soc.name, driver) and predicate(info.case):
                matched[i] += 1
                if expectation.kind == "slow":
                    continue  # of its speed, which needs the history
                covering.append(expectation)
        judged.append(judge_trial(trial, info, device, covering, today))
    uses = tuple(
        ExpectationUse(e, e.expired(today), n) for e, n in zip(results.expectations, matched, strict=True)
    )
    return Judgement(tuple(judged), uses)


def _with_demotion(trial: Trial, demotions: Demotions) -> Trial:
    demoted = demotions.of(trial)
    if not demoted or trial.verdict not in (Verdict.PASS, Verdict.MISMATCH):
        return trial
    reason = "; ".join(part for part in (demoted, trial.reason) if part)
    return replace(trial, verdict=Verdict.MISMATCH, reason=reason)


def judge_trial(
    trial: Trial, info: CaseInfo, device: DeviceRecord, covering: Sequence[Expectation], today: date
) -> JudgedTrial:
    """One trial against the expectations that cover it, expired ones included."""
    valid = [e for e in covering if not e.expired(today)]
    match trial.verdict:
        case Verdict.INFRA:
            return JudgedTrial(trial, info, device, Outcome.INFRA)
        case Verdict.UNSUPPORTED | Verdict.INVALID:
            return JudgedTrial(trial, info, device, Outcome.UNSUPPORTED)
        case Verdict.PASS:
            if trial.recheck == "disagreed":
                note = "the host compared the pulled tensor again and disagrees with the device's comparison"
                return JudgedTrial(trial, info, device, Outcome.FAILURE, note)
            if not valid:
                return JudgedTrial(trial, info, device, Outcome.PASSED)
            first = valid[0]
            if first.kind == "flakes":
                return _steady(trial, info, device, first)
            note = (
                f"known failure {first.verdict} no longer occurs: {first.reason} "
                f"(owner {first.owner}{_where(first)}); remove the entry if it keeps passing"
            )
            return JudgedTrial(trial, info, device, Outcome.UNEXPECTEDLY_PASSED, note, first)
        case (
            Verdict.MISMATCH
            | Verdict.NONDETERMINISTIC
            | Verdict.COMPILE_FAILED
            | Verdict.CRASHED
            | Verdict.HUNG
        ):
            return _failed(trial, info, device, covering, valid)
        case _:
            assert_never(trial.verdict)


def _steady(trial: Trial, info: CaseInfo, device: DeviceRecord, flake: Expectation) -> JudgedTrial:
    """A known flake's trial that passed: news once it was executed often enough."""
    executions = max((sum(o.hashes.values()) for o in trial.outputs), default=0)
    known = f"{flake.reason} (owner {flake.owner}{_where(flake)})"
    if executions < flake.replays:
        note = (
            f"a known flake that did not show in {executions} executions; {flake.replays} are news: {known}"
        )
        return JudgedTrial(trial, info, device, Outcome.PASSED, note, flake)
    note = (
        f"a known flake did not show in {executions} executions: {known}; remove the entry if it stays away"
    )
    return JudgedTrial(trial, info, device, Outcome.UNEXPECTEDLY_PASSED, note, flake)


def _failed(
    trial: Trial,
    info: CaseInfo,
    device: DeviceRecord,
    covering: Sequence[Expectation],
    valid: Sequence[Expectation],
) -> JudgedTrial:
    for expectation in valid:
        if expectation.verdict is trial.verdict:
            note = (
                f"{expectation.reason} (owner {expectation.owner}, until {expectation.expires.isoformat()})"
            )
            return JudgedTrial(trial, info, device, Outcome.EXPECTED_FAILURE, note, expectation)
    for expectation in covering:
        if expectation.verdict is trial.verdict:
            note = (
                f"known failure expired on {expectation.expires.isoformat()} "
                f"(owner {expectation.owner}{_where(expectation)}): {expectation.reason}"
            )
            return JudgedTrial(trial, info, device, Outcome.FAILURE, note, expectation)
    if valid:
        known = "flake" if valid[0].kind == "flakes" else "failure"
        note = f"a known {known} expects {valid[0].verdict} here, not {trial.verdict}"
        return JudgedTrial(trial, info, device, Outcome.FAILURE, note, valid[0])
    return JudgedTrial(trial, info, device, Outcome.FAILURE)


def _where(expectation: Expectation) -> str:
    return f", matrix.yaml:{expectation.line}" if expectation.line else ""


def _lookup(
    results: RunResults, devices: Mapping[str, DeviceRecord], trial: Trial
) -> tuple[CaseInfo, DeviceRecord]:
    info, device = results.cases.get(trial.case_id), devices.get(trial.device_id)
    if info is None or device is None:
        what = f"device {trial.device_id!r}" if device is None else f"case {trial.case_id!r}"
        raise WireError(
            f"results of run {results.run.run_id}: trial {trial.key}: {what} is not described there; "
            "the file was edited or written by another version: run again"
        )
    return info, device
