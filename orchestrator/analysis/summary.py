"""Counts, the verdict in one sentence, and the exit code."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.analysis.compare import Change, Comparison
from orchestrator.analysis.other_api import of_other_api
from orchestrator.analysis.outcome import JudgedTrial, Outcome
from orchestrator.analysis.words import plural
from orchestrator.analysis.worse import Worse
from orchestrator.domain.gate import FailOn
from orchestrator.domain.results import Missing, Pruned, RunResults

EXIT_OK, EXIT_WRONG, EXIT_INFRA = 0, 1, 3
MAX_ABSENT = 3
"""Devices that never came whose reasons the sentence gives; lists below it give all."""
MAX_REASON = 200
"""Characters of such a reason."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Trials by outcome, and points without a trial. Each planned point is counted once."""

    passed: int = 0
    failed: int = 0
    known: int = 0
    """Known failures that failed as expected."""
    unexpected_pass: int = 0
    infra: int = 0
    missing: int = 0
    absent: int = 0
    """Devices that were asked for or listed and never took part: no points, so counted apart."""
    unsupported: int = 0
    """Refused on the device."""
    pruned: int = 0
    """Dropped before dispatch for a limit or a feature, or because no device could run them."""
    other_api: int = 0
    """Points, probes included, of an API that the device does not have: no tests of it."""
    probes: int = 0
    """Probes of the device that passed: in no other number, because a probe is no variant."""
    probes_unsupported: int = 0
    """Probes that the device cannot run, refused or pruned."""
    probes_bad: int = 0
    """Of ``failed``, ``known`` and ``unexpected_pass``, the probes."""

    @property
    def row(self) -> tuple[int, ...]:
        """As the tables have it: failed, infra, missing, unexpected pass, known, passed, unsupported."""
        return (
            self.failed,
            self.infra,
            self.missing,
            self.unexpected_pass,
            self.known,
            self.passed,
            self.unsupported + self.pruned,
        )

    @property
    def measured(self) -> int:
        """Trials that say something about a variant."""
        return self.passed + self.failed + self.known + self.unexpected_pass - self.probes_bad

    @property
    def all_probes(self) -> int:
        """Probes that ran to a result."""
        return self.probes + self.probes_bad

    @property
    def planned(self) -> int:
        """Every point, each once."""
        return sum(self.row) + self.probes + self.probes_unsupported + self.other_api

    @property
    def not_obtained(self) -> int:
        return self.infra + self.missing


@dataclass(frozen=True, slots=True)
class Summary:
    counts: Counts
    sentence: str
    exit_code: int
    bad: bool
    """True when the sentence reports something that a person must act on."""


def count(
    trials: Iterable[JudgedTrial],
    *,
    pruned: Iterable[Pruned],
    missing: Iterable[Missing],
    probes: Container[str] = frozenset(),
) -> Counts:
    """``probes``: case ids of probes. One that went wrong counts as any trial; one that passed, apart."""
    lost = [bool(m.case_id) for m in missing]
    known = list(trials)
    every = list(pruned)
    dropped = [p.case_id in probes for p in every if not of_other_api(p)]
    by = Counter(t.outcome for t in known if not (t.probe and t.outcome in _QUIET))
    quiet = Counter(t.outcome for t in known if t.probe and t.outcome in _QUIET)
    return Counts(
        passed=by[Outcome.PASSED],
        failed=by[Outcome.FAILURE],
        known=by[Outcome.EXPECTED_FAILURE],
        unexpected_pass=by[Outcome.UNEXPECTEDLY_PASSED],
        infra=by[Outcome.INFRA],
        missing=lost.count(True),
        absent=lost.count(False),
        unsupported=by[Outcome.UNSUPPORTED],
        pruned=dropped.count(False),
        other_api=len(every) - len(dropped),
        probes=quiet[Outcome.PASSED],
        probes_unsupported=quiet[Outcome.UNSUPPORTED] + dropped.count(True),
        probes_bad=sum(t.probe and t.outcome in _MEASURED and t.outcome not in _QUIET for t in known),
    )


_QUIET = frozenset({Outcome.PASSED, Outcome.UNSUPPORTED})
"""Outcomes of a probe that nobody must act on."""
_MEASURED = frozenset(
    {Outcome.PASSED, Outcome.FAILURE, Outcome.EXPECTED_FAILURE, Outcome.UNEXPECTEDLY_PASSED}
)


def summarise(
    results: RunResults,
    trials: Sequence[JudgedTrial],
    comparison: Comparison | None,
    max_slowdown: float | None,
    *,
    fail_on: FailOn | None = None,
    against: Worse | None = None,
    judged: bool = True,
) -> Summary:
    """The whole run. ``max_slowdown`` is a ratio (1.10) given by the caller; see :func:`bound_of`.

    Exit code 1 when a kernel is wrong unexpectedly or slower than the bound, and where ``regressed`` makes it
    fail, also when something got worse; else 3 when results or devices are missing, infrastructure failed,
    the run is incomplete or nothing was planned; else 0. With ``never`` there is no 1. It is of this run
    alone: nights that were missed before it are told, and had no run to exit.

    Args:
        fail_on: None takes what the run was started with.
        against: what got worse against the history; None: nothing, or there is none.
        judged: False where the history could not be asked: then ``regressed`` has no answer, which is a 3.
    """
    counts = count(trials, pruned=results.pruned, missing=results.missing, probes=probe_ids(results))
    bound = bound_of(results, max_slowdown)
    slow = comparison.slowdowns(bound) if comparison is not None and bound is not None else ()
    incomplete = not results.run.finished_at
    nothing = counts.planned == 0
    gate = results.run.fail_on if fail_on is None else fail_on
    unanswered = gate == "regressed" and not judged
    wrong = bool(counts.failed or slow)
    if gate != "never" and (wrong or (gate == "regressed" and against)):
        exit_code = EXIT_WRONG
    elif counts.not_obtained or counts.absent or incomplete or nothing or unanswered:
        exit_code = EXIT_INFRA
    else:
        exit_code = EXIT_OK
    return Summary(
        counts=counts,
        sentence=sentence(
            trials,
            counts,
            slow=slow,
            max_slowdown=bound,
            incomplete=incomplete,
            absent=[m for m in results.missing if not m.case_id],
            missed_nights=len(results.run.missed_nights),
            against=against.words if against is not None else (),
            unanswered=unanswered,
        ),
        exit_code=exit_code,
        bad=bool(
            exit_code != EXIT_OK or wrong or against or not counts.measured or results.run.missed_nights
        ),
    )


def probe_ids(results: RunResults) -> frozenset[str]:
    """Cases that measure the device."""
    return frozenset(case_id for case_id, info in results.cases.items() if info.role != "op")


def bound_of(results: RunResults, given: float | None) -> float | None:
    """The bound on slow-downs: what the caller gives, else what the run was started with; None: no bound."""
    return results.run.max_slowdown if given is None else given


def sentence(
    trials: Iterable[JudgedTrial],
    counts: Counts,
    *,
    slow: Sequence[Change] = (),
    max_slowdown: float | None = None,
    incomplete: bool = False,
    absent: Sequence[Missing] = (),
    missed_nights: int = 0,
    against: Sequence[str] = (),
    unanswered: bool = False,
) -> str:
    """What happened, worst news first. It claims success only over what was measured, and only alone.

    Args:
        absent: the devices behind ``counts.absent``, named where nothing was measured.
        missed_nights: nights before this one without results.
        against: what got worse against the history.
        unanswered: whether anything did was asked and could not be said.
    """
    news: list[str] = []
    if counts.failed:
        failures = [t for t in trials if t.outcome is Outcome.FAILURE]
        kinds = Counter((t.trial.verdict.value, t.probe) for t in failures)
        # A pass that the host's re-check contradicts is a failure whose verdict still says pass.
        named = ", ".join(
            f"{n} {'re-check disagreed' if verdict == 'pass' else verdict}{' of a probe' if probe else ''}"
            for (verdict, probe), n in kinds.most_common()
        )
        news.append(f"{plural(counts.failed, 'unexpected failure')} ({named})")
    if slow and max_slowdown is not None:
        news.append(f"{len(slow)} slower than the bound of ×{max_slowdown:.2f}")
    news += against
    if counts.not_obtained:
        parts = [
            f"{counts.infra} infra" if counts.infra else "",
            f"{counts.missing} missing" if counts.missing else "",
        ]
        named = ", ".join(p for p in parts if p)
        news.append(f"{plural(counts.not_obtained, 'result')} not obtained ({named})")
    if counts.absent:
        news.append(f"{plural(counts.absent, 'device')} did not take part")
    if incomplete:
        news.append("the run is not complete")
    if unanswered:
        news.append("the history could not say what regressed")
    if missed_nights:
        news.append(f"{plural(missed_nights, 'night')} before this one brought no results")
    if counts.unexpected_pass:
        news.append(plural(counts.unexpected_pass, "unexpected pass", "unexpected passes"))
    rest = _measured(counts) if counts.measured else _nothing(counts, absent)
    if counts.all_probes:
        rest += f", {counts.probes} of {counts.all_probes} probes passed"
    if news:
        return f"{_capital('; '.join(news))}. {_capital(rest)}."
    return f"No unexpected failure: {rest}." if counts.measured else f"{_capital(rest)}."


def _nothing(counts: Counts, absent: Sequence[Missing]) -> str:
    """That nothing was measured, and why."""
    why = [f"{m.device_id}: {_cut(m.why)}" for m in absent[:MAX_ABSENT]]
    if len(absent) > MAX_ABSENT:
        why.append(f"and {len(absent) - MAX_ABSENT} more")
    dropped = counts.pruned + counts.unsupported
    if dropped:
        why.append(f"{plural(dropped, 'point')} unsupported")
    if counts.other_api:
        why.append(f"{plural(counts.other_api, 'point')} of another API")
    if not why and not counts.not_obtained:
        why.append("no point was planned on any device")
    if counts.all_probes:
        return "no variant was measured"
    return "nothing was measured" + (f" ({'; '.join(why)})" if why else "")


def _measured(counts: Counts) -> str:
    words = [f"{counts.passed} of {counts.measured} measured trials passed"]
    if counts.known:
        words.append(f"{counts.known} failed as known")
    if counts.pruned or counts.unsupported:
        words.append(f"{counts.pruned + counts.unsupported} unsupported by the device")
    return ", ".join(words)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_REASON else text[:MAX_REASON] + "…"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
