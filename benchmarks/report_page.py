"""How large a page of changes is, and how long a browser takes until it can be used, by number of series.

    python -m benchmarks.report_page [--series 10000] [--nights 14] [--repeats 5]

Writes the page of one SoC with that many series and forty findings in full, and opens it in headless Chromium
from a file, each time in a browser of its own. *Usable*: since the navigation began, the page is drawn, its
script has run, and a frame after that is on the screen; beside it the processor time of the page's main
thread, which other work on the machine hardly lengthens. Then a word is typed into the filter and a column
sorted, both until the next frame.
"""

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import Page, sync_playwright

from reports.write import write_reports
from tests.results_fixture import results, run_info
from tests.unit.reports.sample_many import many
from tests.unit.reports.sample_nights import PHONES, rows

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FRAME = "() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
FILTER = """() => new Promise(done => {
  const find = document.querySelector("#find"), start = performance.now();
  find.value = "fp16_storage 64x16";
  find.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
SORT = """() => new Promise(done => {
  const start = performance.now();
  document.querySelector("th[data-key=latency] button").click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


class Asked(Protocol):
    """Chromium behind the page; playwright says nothing of the types of its answers."""

    def send(self, method: str, params: dict[str, Any], /) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Opened:
    usable_ms: float
    processor_ms: float
    """Of the main thread: parsing, script, style, layout and painting."""
    filter_ms: float
    sort_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--nights", type=int, default=14)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page, written_s = _write(Path(folder), options.series, options.nights)
        size = page.stat().st_size
        opened = [_open(page) for _ in range(options.repeats)]
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    print(
        f"{options.series} series, {options.nights} nights: {size / 1e6:.2f} MB, written in {written_s:.1f} s"
    )
    for name, values in (
        ("usable", [o.usable_ms for o in opened]),
        ("processor time until then", [o.processor_ms for o in opened]),
        ("filtered", [o.filter_ms for o in opened]),
        ("sorted", [o.sort_ms for o in opened]),
    ):
        print(f"{name}: median {statistics.median(values):.0f} ms, largest {max(values):.0f} ms")


def _write(folder: Path, series: int, nights: int) -> tuple[Path, float]:
    infos, findings = many(series, nights)
    run = results(infos=list(infos.values()), run=run_info(findings.run_id, suite="nightly"))
    phones = [p for p in PHONES if p.soc == "SM8650"]
    trials = {
        f.finding_id: rows(f.case_id, phones, 7e6, lambda _, night: 0.08 * (night == nights))
        for f in findings.findings[:60]
    }
    start = time.monotonic()
    paths = write_reports(run, None, folder, datetime.now(UTC).date(), findings=findings, series=trials)
    return paths.changes["SM8650"], time.monotonic() - start


def _open(path: Path) -> Opened:
    """In a browser of its own: nothing is cached."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is not on PATH. Install it: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page: Page = browser.new_page(viewport={"width": 1280, "height": 900})
        session = page.context.new_cdp_session(page)
        _count_processor_time(session)
        page.goto(path.as_uri(), wait_until="load")
        usable = page.evaluate(FRAME)
        opened = Opened(usable, _processor_ms(session), page.evaluate(FILTER), page.evaluate(SORT))
        browser.close()
    return opened


def _count_processor_time(session: Asked) -> None:
    session.send("Performance.enable", {"timeDomain": "threadTicks"})


def _processor_ms(session: Asked) -> float:
    metrics = session.send("Performance.getMetrics", {})["metrics"]
    return next(float(m["value"]) for m in metrics if m["name"] == "TaskDuration") * 1000


if __name__ == "__main__":
    main()
