"""Trials as rows of a Parquet file: what the rules of speed and of numerics read, and the raw samples.

Summaries are worked out once, when a run is stored; the raw samples stay beside them for as long as retention
keeps them. Logs and tensors stay in the run's folder and in the blob store.
"""

from typing import Any

from orchestrator.analysis.speed.night import Nights, summarise
from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.trials import samples_of
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial

COLUMNS = {
    "run_id": "name",
    "device_id": "name",
    "soc": "name",
    "case_id": "text",
    "kernel": "name",
    "role": "name",
    "attempt": "count",
    "planned_for": "name",
    "verdict": "name",
    "reason": "text",
    "code_hash": "name",
    "driver": "name",
    "os_build": "name",
    "started_at": "text",
    "duration_ms": "big",
    # Speed: the night's summary, and what it was made of.
    "clock": "name",
    "log_ns": "real",
    "basis": "small",
    "no_number": "small",
    "clock_hz": "real",
    "measured": "count",
    "throttled": "count",
    "hot": "count",
    "good": "count",
    "used": "count",
    "modes": "flag",
    "samples_ns": "bigs",
    "gpu_hz": "bigs",
    "temp_mc": "counts",
    "battery_mc": "count",
    "compile_ns": "bigs",
    "first_ns": "big",
    # Numerics: the worst of the trial's outputs.
    "outputs": "count",
    "hash": "text",
    "hashes": "count",
    "max_abs": "real",
    "mean_abs": "real",
    "p99_abs": "real",
    "max_rel": "real",
    "p99_rel": "real",
    "ulp_max": "real",
    "ulp_p99": "real",
    "nmse": "real",
    "cosine": "real",
    "failing": "big",
    "nonfinite": "big",
}
"""Column → kind of ``trial_files``."""
SAMPLES = ("samples_ns", "gpu_hz", "temp_mc", "compile_ns")
"""Raw; retention drops these."""
SUMMARY = ("log_ns", "basis", "no_number", "clock_hz", "throttled", "hot", "good", "used", "modes")
"""Worked out from the raw ones when the run was stored, by the rule of then."""


def rows_of(results: RunResults, usual_hz: Floats | None = None) -> list[dict[str, Any]]:
    """One row a trial, sorted by case and device, so that one series is found by a file's statistics alone.

    Args:
        usual_hz: clock of each trial's series in its baseline, NaN where it has none, in the order of
            ``ordered(results)``.
    """
    trials = ordered(results)
    nights = summarise(samples_of(trials), usual_hz)
    devices = {d.device_id: d for d in results.devices}
    return [
        _row(trial, results, devices[trial.device_id].soc.name, devices[trial.device_id].os_build)
        | _summary(nights, number)
        for number, trial in enumerate(trials)
    ]


def ordered(results: RunResults) -> list[Trial]:
    return sorted(results.trials, key=lambda t: (t.case_id, t.device_id))


def _row(trial: Trial, results: RunResults, soc: str, os_build: str) -> dict[str, Any]:
    info = results.cases[trial.case_id]
    timing, sensors = trial.timing, trial.sensors
    worst = max(trial.outputs, key=lambda o: (o.failing, _rank(o.nmse)), default=None)
    return {
        "run_id": trial.run_id,
        "device_id": trial.device_id,
        "soc": soc,
        "case_id": trial.case_id,
        "kernel": info.case.kernel,
        "role": info.role,
        "attempt": trial.attempt,
        "planned_for": trial.planned_for,
        "verdict": trial.verdict.value,
        "reason": trial.reason,
        "code_hash": trial.code_hash,
        "driver": trial.driver,
        "os_build": os_build,
        "started_at": trial.started_at,
        "duration_ms": trial.duration_ms,
        "clock": timing.clock if timing else "",
        "samples_ns": timing.samples_ns if timing else [],
        "gpu_hz": sensors.gpu_hz if sensors else [],
        "temp_mc": sensors.temp_mc if sensors else [],
        "battery_mc": sensors.battery_mc if sensors else None,
        "compile_ns": timing.compile_ns if timing else [],
        "first_ns": timing.first_ns if timing else 0,
        "outputs": len(trial.outputs),
        "hash": worst.hash if worst else "",
        "hashes": max((len(o.hashes) for o in trial.outputs), default=0),
        "failing": sum(o.failing for o in trial.outputs),
        "nonfinite": sum(o.nonfinite_mismatch for o in trial.outputs),
    } | ({name: getattr(worst, name) for name in _ERRORS} if worst else {})


_ERRORS = ("max_abs", "mean_abs", "p99_abs", "max_rel", "p99_rel", "ulp_max", "ulp_p99", "nmse", "cosine")


def _rank(nmse: float) -> float:
    """NaN is the worst of all: no error is known."""
    return nmse if nmse == nmse else float("inf")


def _summary(nights: Nights, number: int) -> dict[str, Any]:
    return {
        "log_ns": float(nights.log_ns[number]),
        "basis": int(nights.basis[number]),
        "no_number": int(nights.reason[number]),
        "clock_hz": float(nights.clock_hz[number]),
        "measured": int(nights.measured[number]),
        "throttled": int(nights.throttled[number]),
        "hot": int(nights.hot[number]),
        "good": int(nights.good[number]),
        "used": int(nights.used[number]),
        "modes": bool(nights.modes.found[number]),
    }
