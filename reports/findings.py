"""Trials that need words: reason, numbers, worst element, log, and how to run them again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.analysis.canaries import refused_by_canary
from orchestrator.analysis.numerics import ElementError, coordinates, element_error, tolerance_use
from orchestrator.analysis.outcome import JudgedTrial, Outcome
from orchestrator.analysis.replays import box, replays
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.results import CaseInfo, RunInfo, RunResults
from orchestrator.domain.trial import Element, Numerics
from reports.model import Finding, OutputDetail
from reports.scope import override_words
from reports.text import shell_word, visible_block

INLINE_LOG = 3_000
"""Characters of a driver's log that a page shows; a longer log goes to a file of its own."""

MAX_DETAILED = 60
"""Findings of one device and outcome that a page shows with all their numbers; further ones get one line
each, and their logs stay in results.json."""

ORDER = (
    Outcome.FAILURE,
    Outcome.INFRA,
    Outcome.UNEXPECTEDLY_PASSED,
    Outcome.EXPECTED_FAILURE,
    Outcome.UNSUPPORTED,
)
"""Findings by what a person reads first; a plain pass is none."""


@dataclass(slots=True)
class Logs:
    """Files for the logs that are too long for a page, one per content."""

    files: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, log: str) -> str:
        name = f"logs/{sha256_hex(log.encode('utf-8', 'surrogatepass'))[:16]}.txt"
        self.files[name] = visible_block(log, len(log))
        return name


def findings(
    results: RunResults, trials: Sequence[JudgedTrial], logs: Logs, prefix: str
) -> tuple[Finding, ...]:
    """Of one device, most urgent first; anchors are ``PREFIX-fN``.

    What a canary took away comes before other infrastructure, because one fault explains many; a wrong probe
    before wrong variants, because their numbers may hang on it.
    """
    found: list[Finding] = []
    for outcome in ORDER:
        chosen = [t for t in trials if t.outcome is outcome and not _silent(t)]
        chosen.sort(key=lambda t: not (refused_by_canary(t) or t.probe))
        for i, item in enumerate(chosen):
            kept = logs if i < MAX_DETAILED else None
            found.append(_finding(results, item, kept, f"{prefix}-f{len(found)}"))
    return tuple(found)


def _silent(item: JudgedTrial) -> bool:
    """A probe that this device cannot run is told where its answer would stand."""
    return item.probe and item.outcome is Outcome.UNSUPPORTED


def _finding(results: RunResults, item: JudgedTrial, logs: Logs | None, anchor: str) -> Finding:
    trial, case = item.trial, item.info.case
    long = len(trial.log) > INLINE_LOG
    return Finding(
        anchor=anchor,
        device_id=trial.device_id,
        device_name=item.device.name,
        case_id=trial.case_id,
        kernel=case.kernel,
        label=case.label,
        outcome=item.outcome,
        verdict=trial.verdict,
        reason=trial.reason,
        note=item.note,
        outputs=tuple(_detail(item.info, o) for o in trial.outputs),
        driver=trial.driver,
        code_hash=trial.code_hash,
        attempt=trial.attempt,
        log=trial.log[:INLINE_LOG] if long else trial.log,
        log_file=logs.add(trial.log) if long and logs is not None else "",
        repro=repro_command(results.run, trial.case_id, item.device),
        duration_ms=trial.duration_ms,
        uncounted=refused_by_canary(item),
        probe=item.probe,
    )


def repro_command(run: RunInfo, case_id: str, device: DeviceRecord) -> str:
    """Runs exactly this case on exactly this device, from the folder that the run was started in; for bash.

    The device is named by its id: a phone's adb address may be another one tomorrow, and this machine may
    have several drivers.
    """
    words = ["tilefarm", "run"]
    words += ["--suite", shell_word(run.suite)] if run.suite else []
    words += ["--matrix", shell_word(run.matrix)] if run.matrix else []
    words += [word for folder in run.kernels for word in ("--kernels", shell_word(folder))]
    words += override_words(run)
    return " ".join([*words, "--case", shell_word(case_id), "--device", shell_word(device.device_id)])


def _detail(info: CaseInfo, output: Numerics) -> OutputDetail:
    shape = info.output_shape.get(output.buffer, [])
    tolerance = info.tolerance.get(output.buffer)

    def explain(element: Element | None) -> ElementError | None:
        return None if element is None or tolerance is None else element_error(element, shape, tolerance)

    def at(index: int | None) -> tuple[int, ...] | None:
        return None if index is None else coordinates(index, shape)

    differs = output.differs
    return OutputDetail(
        numerics=output,
        tolerance=tolerance,
        use=None if tolerance is None else tolerance_use(output, tolerance),
        worst=explain(output.worst),
        first_bad=explain(output.first_bad),
        unwritten_at=at(output.unwritten_first),
        differs_at=(None, None) if differs is None else (at(differs.first), at(differs.last)),
        replays=replays(output, tolerance),
        box=box(differs),
    )
