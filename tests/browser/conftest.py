"""Debian's chromium, driven by playwright, on report pages opened from files."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from reports.write import write_reports
from tests.results_fixture import TODAY
from tests.unit.reports.hostile import hostile, hostile_previous
from tests.unit.reports.sample import sample, sample_previous

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
