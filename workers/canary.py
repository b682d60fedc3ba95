"""The canary: a tiny case with a known answer and latency, run before and after each API's cases of a batch.

A device that is throttled, busy or broken answers it too slowly or wrongly. Then nothing that was measured in
between counts: those trials are ``infra`` and are tried again, each in a batch of its own. Two things stand
all the same: outputs that differed between replays, and the case that broke the device (``Vouch.applied``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from orchestrator.domain.job import CanaryJob, CaseJob
from orchestrator.domain.trial import Canary, Timing, Trial
from orchestrator.domain.verdict import Verdict
from workers.judge import judge
from workers.result_stream import CaseRecord

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Latencies:
    """What canaries of this worker's device took when all was well; lives as long as the worker."""

    _found: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])

    def expected(self, key: tuple[str, ...]) -> int:
        """In ns; 0: none yet."""
        return self._found.get(key, 0)

    def learn(self, key: tuple[str, ...], ns: int) -> None:
        """The first good one stays: a device that gets slower little by little is noticed, too."""
        self._found.setdefault(key, ns)


@dataclass(frozen=True, slots=True)
class Vouch:
    """May the results between two canaries be believed?"""

    canary: Canary | None = None
    doubt: str = ""
    """Why not; empty: they may."""
    found: str = ""
    """What of ``doubt`` was seen, without what follows from it."""
    proven: frozenset[str] = frozenset()
    """Case ids whose failure came before what the canary saw, and may be its cause."""

    def applied(self, trial: Trial) -> Trial:
        """The trial as it counts between these canaries.

        Replays that differ do so whatever the device's state: tried again, a lucky pass would hide it. The
        case that broke the device is to blame for that; as ``infra`` nobody would be.
        """
        if not self.doubt:
            return replace(trial, canary=self.canary)
        if trial.verdict is Verdict.NONDETERMINISTIC or trial.case_id in self.proven:
            return replace(trial, reason=f"{trial.reason}; it counts, although the {self.found}")
        return replace(trial, verdict=Verdict.INFRA, reason=self.doubt)


@dataclass(frozen=True, slots=True)
class _Doubt:
    when: When
    found: str
    so: str = ""
    """What follows from it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The cases of one API in a batch, and the canary around them. They run in one runner process."""

    api: str
    cases: Sequence[CaseJob]
    canary: CanaryJob | None

    def jobs(self) -> list[CaseJob]:
        """In the order in which they run."""
        if self.canary is None:
            return list(self.cases)
        job = self.canary.job
        before, after = (replace(job, case_id=canary_id(when, self.api)) for when in ("before", "after"))
        return [before, *self.cases, after]

    def vouch(self, records: Mapping[str, CaseRecord], known: Latencies) -> Vouch:
        """Judge the canary by its records in the runner's output."""
        if self.canary is None:
            return Vouch()
        before, after = (records.get(canary_id(when, self.api)) for when in ("before", "after"))
        doubt = _wrong("before", before, self.canary.job) or _wrong("after", after, self.canary.job)
        if before is None or after is None or doubt:
            return self._doubted(doubt, records, self._suspects(records))
        timed = _in_time(self.canary, before, after, known)
        return Vouch(timed) if isinstance(timed, Canary) else self._doubted(timed, records)

    def _doubted(self, doubt: _Doubt | None, records: Mapping[str, CaseRecord], more: str = "") -> Vouch:
        if doubt is None:
            return Vouch()
        # A device that was unwell before any case ran may have broken them, not they it.
        proven = self._proven(records) if doubt.when == "after" else frozenset[str]()
        return Vouch(doubt=doubt.found + doubt.so + more, found=doubt.found, proven=proven)

    def _proven(self, records: Mapping[str, CaseRecord]) -> frozenset[str]:
        """Cases without a doubt of their own: up to the first that crashed or hung. Later ones ran on what
        that left behind, so that they may be innocent; alone, they get a verdict of their own."""
        found: set[str] = set()
        for case in self.cases:
            record = records.get(case.case_id)
            if record is None:
                continue
            if judge(record.end, case)[0] in (Verdict.COMPILE_FAILED, Verdict.CRASHED, Verdict.HUNG):
                found.add(case.case_id)
            if record.end.status in ("crashed", "hung"):
                break
        return frozenset(found)

    def _suspects(self, records: Mapping[str, CaseRecord]) -> str:
        """Cases that may have left the device in that state."""
        ended = ((c, records[c.case_id].end.status) for c in self.cases if c.case_id in records)
        found = [f"{c.case_id} ({status})" for c, status in ended if status in ("crashed", "hung")]
        return f". In this batch: {', '.join(found)}" if found else ""


def parts(cases: Sequence[CaseJob], canaries: Sequence[CanaryJob]) -> list[Part]:
    """A batch's cases by API, in the order in which the APIs first come."""
    of_api = {c.job.api: c for c in canaries}
    grouped: dict[str, list[CaseJob]] = {}
    for case in cases:
        grouped.setdefault(case.api, []).append(case)
    return [Part(api, found, of_api.get(api)) for api, found in grouped.items()]


def canary_id(when: When, api: str) -> str:
    """Case id in the job file. Ids of cases are hex digits: no case has such a one."""
    return f"canary-{when}-{api}"


def _wrong(when: When, record: CaseRecord | None, job: CaseJob) -> _Doubt | None:
    """Why a canary did not do its work; None when it did."""
    if record is None:
        return _Doubt(when, f"canary {when} the batch: the runner's output has no end record for it")
    verdict, reason = judge(record.end, job)
    if verdict is not Verdict.PASS:
        return _Doubt(
            when,
            f"canary {when} the batch: {verdict.value}: {reason}",
            ". Its answer is known: device or driver were in no state to be believed; their results do not "
            "count",
        )
    if record.end.timing is None or not record.end.timing.wall_ns:
        return _Doubt(when, f"canary {when} the batch was not timed", "; its job needs repeats")
    return None


def _in_time(canary: CanaryJob, before: CaseRecord, after: CaseRecord, known: Latencies) -> Canary | _Doubt:
    timings = [r.end.timing for r in (before, after) if r.end.timing is not None]
    # One clock for both, or a timer that is trusted only once would look like another speed.
    clock: Literal["gpu", "wall"] = "gpu" if all(t.clock == "gpu" for t in timings) else "wall"
    taken: dict[When, int] = {
        "before": _median_ns(timings[0], clock),
        "after": _median_ns(timings[1], clock),
    }
    code_hash = canary.job.code_hash
    key = (before.driver, canary.job.case_id, code_hash, clock)
    expected = canary.expected.of(clock, code_hash) or known.expected(key) or taken["before"]
    least, most = expected / canary.factor, expected * canary.factor
    for when, ns in taken.items():
        if not least <= ns <= most:
            return _Doubt(
                when,
                f"canary {when} the batch took {_ms(ns)}, expected {_ms(least)} to {_ms(most)}",
                ": the device was throttled or disturbed; its results do not count. Let it cool down, and "
                "leave it alone while it measures",
            )
    known.learn(key, expected)
    return Canary(taken["before"], taken["after"], expected, canary.factor, clock, code_hash)


def _median_ns(timing: Timing, clock: str) -> int:
    return round(median(timing.gpu_ns if clock == "gpu" else timing.wall_ns))


def _ms(ns: float) -> str:
    """Three digits, also for a canary of microseconds."""
    return f"{ns / 1e6:.3g} ms"
