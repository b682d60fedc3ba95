"""Debian's chromium, driven by playwright, on report pages opened from files."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from orchestrator.domain.trial import Sensors
from orchestrator.domain.verdict import Verdict
from reports.write import write_reports
from tests.browser.visits import Reader
from tests.probes_fixture import calculated, copied, copy_case, fma_case, probe_info
from tests.results_fixture import (
    TODAY,
    case,
    elements,
    hardware,
    info,
    numerics,
    passing,
    results,
    run_info,
    timing,
    trial,
)
from tests.unit.reports.hostile import hostile, hostile_previous
from tests.unit.reports.hostile_findings import hostile_findings
from tests.unit.reports.sample import sample, sample_previous
from tests.unit.reports.sample_apis import sample_apis
from tests.unit.reports.sample_findings import sample_findings
from tests.unit.reports.sample_many import many

WIDE = "local-h200"

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One a module: while it lives, playwright's event loop blocks ``asyncio.run`` in other tests."""
    path = shutil.which("chromium")
    assert path is not None, "chromium is not installed: apt-get install chromium"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    """Opens pages; at the end none of them may have complained, asked for anything or run anything."""
    made = Reader(browser)
    yield made
    for visit in made.opened.values():
        visit.page.context.close()
    assert [c for v in made.opened.values() for c in v.complaints] == []


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_reports(sample(), sample_previous(), folder, TODAY, max_slowdown=1.1)
    return folder


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    write_reports(hostile(), hostile_previous(), folder, TODAY, max_slowdown=0.5)
    return folder


@pytest.fixture(scope="session")
def wide_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table where every axis of the shipped kernels varies, with the longest values and verdicts."""
    points = [
        case(api=a, precision=p, tile=t, layout=layout, vector=v, rows=r, halves=halves, hint=h)
        for a in ("gles", "vulkan")
        for p, t in (("fp32", "16x16"), ("fp16_storage", "128x16"))
        for layout in ("row", "column") for v in (1, 4) for r in (1, 4)
        for halves, h in (("packed", "highp"), ("native", "mediump"))
    ]  # fmt: skip
    points += [
        case("attention_naive", precision=p, tile="16x16", layout="column", vector=4, halves="packed")
        for p in ("fp32", "fp16_storage")
    ]
    trials = [
        passing(p, WIDE, timing(round(16e6 * 1.1**i), spread=0.3, compile_ns=3_123_000_000))
        for i, p in enumerate(points[1:])
    ]
    states = replace(timing(), wall_ns=[21_200_000] * 4 + [11_900_000] * 16)
    hz = Sensors(gpu_hz=[1_155_000_000] * 4 + [1_980_000_000] * 17)
    trials[0] = replace(trials[0], timing=states, sensors=hz)
    wrong = [numerics(elements(points[0]), max_abs=1.13e-4)]
    trials.append(trial(points[0], WIDE, Verdict.NONDETERMINISTIC, time=timing(), outputs=wrong))
    probes = [copy_case(2**26, a) for a in ("gles", "vulkan")] + [fma_case(a) for a in ("gles", "vulkan")]
    trials += [copied(2**26, WIDE, 14.7, a) for a in ("gles", "vulkan")]
    trials += [calculated(WIDE, 61.2, a) for a in ("gles", "vulkan")]
    infos = [*(info(p) for p in points), *(probe_info(p) for p in probes)]
    folder = tmp_path_factory.mktemp("wide")
    write_reports(results(trials=trials, infos=infos, devices=[hardware(WIDE)]), None, folder, TODAY)
    return folder


@pytest.fixture(scope="session")
def apis_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both APIs, probes, precision, canary."""
    folder = tmp_path_factory.mktemp("apis")
    write_reports(sample_apis(), None, folder, TODAY)
    return folder


@pytest.fixture(scope="session")
def changes_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two SoCs against their history, every kind of finding."""
    folder, sample = tmp_path_factory.mktemp("changes"), sample_findings()
    write_reports(sample.results, None, folder, TODAY, findings=sample.findings, series=sample.series)
    return folder


@pytest.fixture(scope="session")
def many_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One SoC with 10,000 series."""
    folder = tmp_path_factory.mktemp("many")
    infos, findings = many(10_000)
    run = results(infos=list(infos.values()), run=run_info(findings.run_id, suite="nightly"))
    write_reports(run, None, folder, TODAY, findings=findings)
    return folder


@pytest.fixture(scope="session")
def hostile_changes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every text an attack, every number NaN or infinite."""
    folder, sample = tmp_path_factory.mktemp("hostile-changes"), hostile_findings()
    write_reports(sample.results, None, folder, TODAY, findings=sample.findings, series=sample.series)
    return folder
