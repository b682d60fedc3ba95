"""metrics.prom, read by two independent parsers: OpenMetrics' and Prometheus' older one."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client import parser as textfile
from prometheus_client.openmetrics import parser as openmetrics

from orchestrator.domain.finding import Findings, Triage
from orchestrator.domain.results import RunResults
from reports.build import build_report
from reports.machines.metrics import render_metrics
from reports.machines.openmetrics import MAX_LABEL, Gauge, exposition
from reports.text import visible
from tests.results_fixture import TODAY
from tests.unit.reports.hostile import hostile, hostile_previous
from tests.unit.reports.one_soc import WHOLE
from tests.unit.reports.sample import sample, sample_previous
from tests.unit.reports.sample_findings import sample_findings

SAMPLE = sample_findings()
Reader = Callable[[str], Iterator[Metric]]
strict: Reader = vars(openmetrics)["text_string_to_metric_families"]
lenient: Reader = vars(textfile)["text_string_to_metric_families"]
"""The package says of neither what it takes."""


def families(text: str) -> Iterator[Metric]:
    """By the strict parser; what the older one reads must be the same."""
    found = list(strict(text))
    read: dict[str, dict[tuple[tuple[str, str], ...], float]] = {s.name: {} for m in found for s in m.samples}
    for metric in lenient(text):
        assert metric.type == "gauge"
        for s in metric.samples:
            read[s.name][tuple(sorted(s.labels.items()))] = s.value
    for metric in found:
        assert metric.type == "gauge"
        assert metric.documentation
        assert metric.name.endswith(metric.unit)
        for s in metric.samples:
            assert read[s.name][tuple(sorted(s.labels.items()))] == s.value
            assert s.timestamp is None
    yield from found


def values(
    run: RunResults = SAMPLE.results, found: Findings | None = None, **labels: str
) -> dict[str, float]:
    """Sums by name, over samples that have these labels."""
    model = build_report(run, None, TODAY, findings=found)
    sums: dict[str, float] = {}
    for metric in families(render_metrics(model)):
        for s in metric.samples:
            if labels.items() <= s.labels.items():
                sums[s.name] = sums.get(s.name, 0.0) + s.value
    return sums


def test_a_run_without_history_tells_its_own_results() -> None:
    text = render_metrics(build_report(sample(), sample_previous(), TODAY))
    assert text.endswith("\n# EOF\n")
    names = {m.name for m in families(text)}
    assert {"tilefarm_run", "tilefarm_run_points", "tilefarm_run_devices", "tilefarm_run_exit_code"} <= names
    assert "tilefarm_alerts" not in names
    told = values(sample(), outcome="failed")
    assert told == {"tilefarm_run_points": 6}
    assert values(sample())["tilefarm_run_duration_seconds"] == 131
    assert values(sample())["tilefarm_run_exit_code"] == 1


def test_every_soc_has_every_verdict_and_cause_zeros_among_them() -> None:
    model = build_report(SAMPLE.results, None, TODAY, findings=SAMPLE.findings)
    found = {m.name: m.samples for m in families(render_metrics(model))}
    socs = {s.labels["soc"] for s in found["tilefarm_variants"]}
    assert socs == {"SM8650", "Tensor-G4"}
    assert len(found["tilefarm_variants"]) == 6 * len(socs)
    assert len(found["tilefarm_alerts"]) == 2 * 4 * len(socs)
    assert {s.labels["share"] for s in found["tilefarm_detectable_change_ratio"]} == {"0.5", "0.9"}
    assert all(0.01 < s.value < 0.05 for s in found["tilefarm_detectable_change_ratio"])


def test_numbers_are_those_of_the_findings() -> None:
    found = SAMPLE.findings
    for verdict in ("regressed", "improved", "inconclusive", "missing", "new", "same"):
        told = values(found=found, verdict=verdict)["tilefarm_variants"]
        assert told == found.counts[verdict]


def test_an_alert_ends_with_its_decision() -> None:
    found = SAMPLE.findings
    before = values(found=found)["tilefarm_alerts"]
    assert before > 0
    done = [replace(f, triage=Triage("acknowledged")) for f in found.findings]
    after = values(found=replace(found, findings=done))
    assert after["tilefarm_alerts"] == 0
    assert after["tilefarm_improvements"] == 0
    found = replace(found, findings=[*done, WHOLE])
    assert values(found=found, soc="SM8650", cause="environment", kind="speed")["tilefarm_alerts"] == 1


def test_g4_07_hostile_names_stay_labels() -> None:
    text = render_metrics(build_report(hostile(), hostile_previous(), TODAY))
    assert not any(c in text for c in "\x1b\x00\u202e")
    (run,) = [s for m in families(text) if m.name == "tilefarm_run" for s in m.samples]
    assert "<img" in run.labels["suite"]


@given(st.text(max_size=300), st.floats())
@example("\\n", 1.0)
@example('"\\', math.nan)
def test_any_label_and_number_can_be_read(label: str, value: float) -> None:
    gauge = Gauge("tilefarm_x_seconds", 'Help with a "quote", a \\ and\na line.', "seconds")
    gauge.set(value, name=f"the {label}")
    gauge.set(1.0, name="other")
    text = exposition([gauge])
    (metric,) = strict(text)
    wanted = {visible(f"the {label}", MAX_LABEL): value} if math.isfinite(value) else {}
    assert {s.labels["name"]: s.value for s in metric.samples} == wanted | {"other": 1.0}
    assert len(list(lenient(text))) == 1


def test_two_names_that_are_cut_alike_are_one_sample() -> None:
    gauge = Gauge("tilefarm_x", "Help.")
    for value, end in ((3.0, "a"), (5.0, "b")):
        gauge.set(value, name="x" * 300 + end)
    (metric,) = strict(exposition([gauge]))
    assert [s.value for s in metric.samples] == [5.0]


def test_the_strict_parser_would_notice() -> None:
    with pytest.raises(ValueError, match="EOF"):
        list(strict(exposition([]).removesuffix("# EOF\n") + "x 1\n"))
