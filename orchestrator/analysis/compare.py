"""Two runs side by side, per (device, case). Provisional by name: two runs are no verdict on speed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isfinite, log, nan
from typing import Literal

from orchestrator.analysis.clocks import trial_clock
from orchestrator.analysis.one_sided import Absences, OneSided
from orchestrator.analysis.outcome import device_driver, trial_driver
from orchestrator.analysis.stats import TimingStats, timing_stats
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.results import CaseInfo, RunInfo, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict

PROVISIONAL = "provisional: two runs only, not a verdict"
MOVED_FLOOR = 0.05
"""A ratio within 5 % is never pointed out, however small the spreads."""


@dataclass(frozen=True, slots=True)
class EpochChange:
    """A fact of a device that opens a new epoch: times before and after it measure different machines."""

    device_id: str
    what: str
    """e.g. ``gles driver``, ``gles library``, ``OS build``."""
    before: str
    after: str
    kind: Literal["driver", "device"]
    """``driver``: its version or loaded library; ``device``: everything else."""


@dataclass(frozen=True, slots=True)
class Change:
    """One case on one device in both runs."""

    device_id: str
    case_id: str
    label: str
    verdict_before: Verdict
    verdict_after: Verdict
    before: TimingStats | None
    after: TimingStats | None
    hash_changed: bool | None
    """Output bits differ; None when either run has no output, or when they cannot be compared."""
    code_changed: bool
    """The rendered shader or its numeric contract, or the compiler that made its SPIR-V."""
    driver_changed: bool
    """The driver that executed the case, or the device's driver or driver library."""
    device_changed: bool
    """The device's OS build, adapter, limits, features or subgroup size."""
    probe: bool = False
    """It measured the device: no variant became slower, and its time bounds nothing."""
    replays: tuple[str, str] = ("", "")
    """Verified executions before and after where they differ, e.g. ``12``, ``59 + 8 after a rest``.

    Steadiness seen in a few says nothing about many, so such runs are not compared for it."""
    clock_states: bool = False
    """In either run its samples fall in two clock states: no single number stands for them (G4-05)."""

    @property
    def new_epoch(self) -> bool:
        """The runs measured different machines."""
        return self.driver_changed or self.device_changed

    @property
    def steadiness_skipped(self) -> bool:
        """Steady in one run, nondeterministic in the other, and another number of executions."""
        found = {self.verdict_before, self.verdict_after}
        return any(self.replays) and found == {Verdict.PASS, Verdict.NONDETERMINISTIC}

    @property
    def verdict_changed(self) -> bool:
        return self.verdict_before is not self.verdict_after and not self.steadiness_skipped

    @property
    def not_comparable(self) -> str:
        """Why there is no ratio; empty when there is one."""
        if self.before is None or self.after is None:
            return "not timed in both runs"
        if self.steadiness_skipped:
            return f"executions changed: {self.replays[0]} → {self.replays[1]}; steadiness is not compared"
        if self.verdict_before is not Verdict.PASS or self.verdict_after is not Verdict.PASS:
            return "not correct in both runs"
        if self.before.clock != self.after.clock:
            return f"clock changed: {self.before.clock} → {self.after.clock}"
        if self.clock_states:
            return "times in two modes in one run or both"
        return ""

    @property
    def ratio(self) -> float | None:
        """Median after ÷ median before; above 1 is slower."""
        if self.before is None or self.after is None or self.not_comparable:
            return None
        return self.after.median_ns / self.before.median_ns

    @property
    def effect(self) -> float:
        """Log of the ratio: 0.05 is 5 % slower; NaN without one."""
        return log(self.ratio) if self.ratio else nan

    @property
    def moved(self) -> bool:
        """Worth a look: more than 5 % and more than both spreads."""
        if self.ratio is None or self.before is None or self.after is None:
            return False
        noise = max(MOVED_FLOOR, self.before.spread, self.after.spread)
        return not 1 / (1 + noise) <= self.ratio <= 1 + noise

    @property
    def blamed(self) -> bool:
        """Another verdict about the kernel: lost infrastructure says nothing about it."""
        return self.verdict_changed and Verdict.INFRA not in (self.verdict_before, self.verdict_after)

    @property
    def became_wrong(self) -> bool:
        return self.blamed and self.verdict_after.blames_kernel and not self.verdict_before.blames_kernel

    @property
    def other_bits(self) -> bool:
        """From the same code."""
        return self.hash_changed is True and not self.code_changed

    @property
    def notable(self) -> bool:
        """Worth a line: another verdict about the kernel, a moved time, or other bits from the same code."""
        if self.probe:
            return self.blamed
        return self.blamed or self.moved or self.other_bits

    @property
    def cause(self) -> Literal["code", "driver", "device", "environment", "none"]:
        """Where to look first: the shader, the driver, the device's software, or (all the same) the night.

        ``none`` when neither verdict nor bits changed and the time did not move.
        """
        if not (self.verdict_changed or self.moved or self.hash_changed):
            return "none"
        if self.code_changed:
            return "code"
        if self.driver_changed:
            return "driver"
        return "device" if self.device_changed else "environment"


@dataclass(frozen=True, slots=True)
class Comparison:
    before: RunInfo
    after: RunInfo
    epochs: tuple[EpochChange, ...]
    changes: tuple[Change, ...]
    """What is worth a look first: another verdict (worse, then as bad, then better), other bits from the same
    code, then the largest change of time, either way."""
    new: tuple[OneSided, ...]
    missing: tuple[OneSided, ...]
    compiler_changed: bool = False
    """Another compiler or other options made SPIR-V: Vulkan cases run other code than before."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the comparison as a whole, in sentences."""
        found: list[str] = []
        if self.compiler_changed:
            found.append(
                f"SPIR-V compiler changed: {self.before.compiler} → {self.after.compiler}; "
                "Vulkan cases run other code than before"
            )
        counts = [c.replays for c in self.changes if any(c.replays)]
        if counts:
            some = "case was" if len(counts) == 1 else "cases were"
            kinds = list(dict.fromkeys(counts))
            named = ", ".join(f"{a} → {b}" for a, b in kinds[:3]) + (", …" if len(kinds) > 3 else "")
            found.append(
                f"{len(counts)} {some} executed another number of "
                f"times ({named}): whether results are steady is not compared there"
            )
        return tuple(found)

    def slowdowns(self, bound: float) -> tuple[Change, ...]:
        """Changes of variants whose ratio is above ``bound`` (1.10: ten percent slower) within one epoch."""
        return tuple(
            c
            for c in self.changes
            if not c.probe and not c.new_epoch and c.ratio is not None and c.ratio > bound
        )


def compare(before: RunResults, after: RunResults) -> Comparison:
    """Everything that can be said about two runs. Devices and cases are matched by id."""
    old_devices = {d.device_id: d for d in before.devices}
    new_devices = {d.device_id: d for d in after.devices}
    shared = [new_devices[i] for i in new_devices if i in old_devices]
    epochs = [e for d in shared for e in epoch_changes(old_devices[d.device_id], d)]
    broken = {(e.device_id, e.kind) for e in epochs}
    old_trials = {(t.device_id, t.case_id): t for t in before.trials}
    new_trials = {(t.device_id, t.case_id): t for t in after.trials}
    changes: list[Change] = []
    for key, trial in new_trials.items():
        old = old_trials.get(key)
        if old is not None:
            changes.append(_change(before, after, old, trial, old_devices, new_devices, broken))
    return Comparison(
        before=before.run,
        after=after.run,
        epochs=tuple(epochs),
        changes=tuple(sorted(changes, key=_order)),
        new=Absences(after, before).of(k for k in new_trials if k not in old_trials),
        missing=Absences(before, after).of(k for k in old_trials if k not in new_trials),
        compiler_changed=_compiler_changed(before.run, after.run),
    )


def epoch_changes(before: DeviceRecord, after: DeviceRecord) -> list[EpochChange]:
    """Driver, its library, OS build, adapter, limits, features and subgroup size (field case G1-24).

    A feature that only one of the runs knows of was not won or lost: another version asked for it.
    """
    found: list[EpochChange] = []

    def note(kind: Literal["driver", "device"], what: str, old: str, new: str) -> None:
        if old != new:
            found.append(EpochChange(after.device_id, what, old, new, kind))

    note("device", "OS build", before.os_build, after.os_build)
    for new in after.profiles:
        old = before.profile(new.api)
        if old is None:
            continue
        note("driver", f"{new.api} driver", device_driver(before, new.api), device_driver(after, new.api))
        note("driver", f"{new.api} library", old.library, new.library)
        for name in sorted(old.limits.keys() | new.limits.keys()):
            limits = (str(p.limits.get(name, "")) for p in (old, new))
            note("device", f"{new.api} limit {name}", *limits)
        note("device", f"{new.api} adapter", old.adapter, new.adapter)
        for name in sorted(old.features.keys() & new.features.keys()):
            proven = ("yes" if p.features[name] else "no" for p in (old, new))
            note("device", f"{new.api} feature {name}", *proven)
        for what in ("advertised", "measured"):
            sizes = (str(getattr(p.subgroup, what) or "") for p in (old, new))
            note("device", f"{new.api} subgroup size ({what})", *sizes)
    return found


def _change(
    before: RunResults,
    after: RunResults,
    old: Trial,
    new: Trial,
    old_devices: Mapping[str, DeviceRecord],
    new_devices: Mapping[str, DeviceRecord],
    broken: Collection[tuple[str, str]],
) -> Change:
    case = after.cases[new.case_id].case
    old_driver = trial_driver(old, old_devices[old.device_id], before.cases[old.case_id].case)
    new_driver = trial_driver(new, new_devices[new.device_id], case)
    old_hashes, new_hashes = _hashes(old), _hashes(new)
    counts = _replays(before.cases[old.case_id]), _replays(after.cases[new.case_id])
    replays = counts if counts[0] != counts[1] else ("", "")
    comparable = not any(replays) or Verdict.NONDETERMINISTIC not in (old.verdict, new.verdict)
    return Change(
        device_id=new.device_id,
        case_id=new.case_id,
        label=case.label,
        verdict_before=old.verdict,
        verdict_after=new.verdict,
        before=timing_stats(old.timing),
        after=timing_stats(new.timing),
        hash_changed=old_hashes != new_hashes if comparable and old_hashes and new_hashes else None,
        code_changed=old.code_hash != new.code_hash
        or (case.axes.get("api") == "vulkan" and _compiler_changed(before.run, after.run)),
        driver_changed=(new.device_id, "driver") in broken or old_driver != new_driver,
        device_changed=(new.device_id, "device") in broken,
        probe=after.cases[new.case_id].role != "op",
        replays=replays,
        clock_states=any(trial_clock(t).states for t in (old, new)),
    )


def _order(change: Change) -> tuple[bool, int, float]:
    bad_before, bad_after = _badness(change.verdict_before), _badness(change.verdict_after)
    if change.blamed:
        kind = 0 if bad_after > bad_before else 1 if bad_after == bad_before else 2
    else:
        kind = 3 if change.other_bits else 4
    return not change.notable, kind, -abs(change.effect) if isfinite(change.effect) else 0.0


def _badness(verdict: Verdict) -> int:
    """Right, refused with a reason, wrong."""
    return 0 if verdict is Verdict.PASS else 2 if verdict.blames_kernel else 1


def _compiler_changed(before: RunInfo, after: RunInfo) -> bool:
    """False where either run does not know its compiler."""
    return bool(before.compiler and after.compiler) and before.compiler != after.compiler


def _replays(info: CaseInfo) -> str:
    """Verified executions as a person reads them."""
    return f"{info.replays} + {info.idle_replays} after a rest" if info.idle_replays else str(info.replays)


def _hashes(trial: Trial) -> dict[str, str]:
    return {o.buffer: o.hash for o in trial.outputs}
