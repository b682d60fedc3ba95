"""ReportModel → metrics.prom: a run's state in numbers, for alerts and dashboards (docs/ci.md)."""

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import get_args

from orchestrator.analysis.stats import quantile
from orchestrator.domain.finding import Cause, Kind
from reports.changes.words import VERDICTS
from reports.machines.openmetrics import Gauge, exposition
from reports.model import DeviceSection, ReportModel

OUTCOMES = ("failed", "infra", "missing", "unexpected_pass", "known", "passed", "unsupported")
"""As ``Counts.row`` has them."""
SHARES = (0.5, 0.9)
"""Of variants, whose detectable change is told."""


def render_metrics(model: ReportModel) -> str:
    return exposition([*_run(model), *_points(model), *_changes(model)])


def _run(model: ReportModel) -> Iterator[Gauge]:
    run, suite = model.run, model.run.suite
    about = Gauge("tilefarm_run", "The run that this file is of.")
    about.set(1, suite=suite, run_id=run.run_id, night=run.night, commit=run.commit, tilefarm=run.tilefarm)
    yield about
    for name, said, value in (
        ("complete", "1 when the run has ended with all that could be had.", float(bool(run.finished_at))),
        (
            "exit_code",
            "0 all right, 1 wrong or worse as --fail-on says, 3 not obtained.",
            model.summary.exit_code,
        ),
        (
            "degraded",
            "How often a worker took nothing from its queues during the run and was replaced.",
            len(run.degraded),
        ),
        (
            "missed_nights",
            "Nights of the suite before this one that brought no results.",
            len(run.missed_nights),
        ),
    ):
        gauge = Gauge(f"tilefarm_run_{name}", said)
        gauge.set(value, suite=suite)
        yield gauge
    start, end = _time(run.started_at), _time(run.finished_at)
    for name, said, value in (
        ("start_timestamp", "When the run started.", start),
        ("end_timestamp", "When the run ended.", end),
        ("duration", "How long the run took.", end - start),
    ):
        gauge = Gauge(f"tilefarm_run_{name}_seconds", said, "seconds")
        gauge.set(value, suite=suite)
        yield gauge


def _points(model: ReportModel) -> Iterator[Gauge]:
    suite = model.run.suite
    points = Gauge("tilefarm_run_points", "Planned points of variants by outcome.")
    devices = Gauge("tilefarm_run_devices", "Devices: with results, without any, or absent though asked for.")
    canary = Gauge(
        "tilefarm_canary_latency_seconds",
        "A known kernel before and after each batch; lowest and highest far apart: the speed varied.",
        "seconds",
    )
    for soc in model.socs:
        for outcome, number in zip(OUTCOMES, soc.counts.row, strict=True):
            points.set(number, suite=suite, soc=soc.soc, outcome=outcome)
        states = Counter(_state(d) for d in soc.devices)
        for state in ("measured", "without_result"):
            devices.set(states[state], suite=suite, soc=soc.soc, state=state)
        for device in soc.devices:
            for facts in device.canaries:
                bounds = {"expected": facts.expected_ns, "lowest": facts.low_ns, "highest": facts.high_ns}
                for bound, ns in bounds.items():
                    canary.set(
                        ns / 1e9 if ns else math.nan,
                        suite=suite,
                        device=device.device.device_id,
                        api=facts.api,
                        bound=bound,
                    )
    devices.set(model.summary.counts.absent, suite=suite, soc="", state="absent")
    yield from (points, devices, canary)


def _changes(model: ReportModel) -> Iterator[Gauge]:
    """Zeros, too: a rule that compares needs a sample to compare."""
    changes, suite = model.changes, model.run.suite
    if changes is None:
        return
    variants = Gauge("tilefarm_variants", "Variants by their verdict on speed against the history.")
    alerts = Gauge("tilefarm_alerts", "Variants that got slower or less exact, which nobody has dealt with.")
    better = Gauge("tilefarm_improvements", "Variants that got faster, which nobody has accepted.")
    least = Gauge(
        "tilefarm_detectable_change_ratio",
        "Smallest slow-down that would have been found with 80 % power in so large a share of the variants.",
        "ratio",
    )
    worse = Counter((f.soc, f.kind, f.cause) for f in model.worse.findings)
    improved = Counter(
        (e.finding.soc, e.finding.cause)
        for e in changes.entries
        if e.finding.what == "improved" and not e.finding.device_id and e.finding.finding_id in model.told
    )
    for soc in changes.socs:
        for verdict in VERDICTS:
            variants.set(soc.tally(verdict), suite=suite, soc=soc.soc, verdict=verdict)
        for cause in get_args(Cause):
            for kind in get_args(Kind):
                alerts.set(worse[soc.soc, kind, cause], suite=suite, soc=soc.soc, kind=kind, cause=cause)
            better.set(improved[soc.soc, cause], suite=suite, soc=soc.soc, cause=cause)
        known = [math.expm1(min(r.detectable, 20.0)) for r in soc.rows if 0 < r.detectable < math.inf]
        for share in SHARES if known else ():
            least.set(quantile(sorted(known), share), suite=suite, soc=soc.soc, share=f"{share:g}")
    yield from (variants, alerts, better, least)


def _state(device: DeviceSection) -> str:
    return "measured" if device.counts.measured or device.counts.all_probes else "without_result"


def _time(utc: str) -> float:
    """Seconds since 1970; NaN where none is given."""
    try:
        return datetime.fromisoformat(utc).timestamp()
    except ValueError:
        return math.nan
