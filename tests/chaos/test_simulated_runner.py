"""The simulated runner keeps its promises: the product believes its output, and no overlap escapes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.domain.job import CaseJob
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from tests.chaos.phones import notes_in
from tests.unit.workers.jobs import Stock
from workers.job_folder import job_text
from workers.judge import judge
from workers.result_stream import CaseRecord, ResultStream

PROGRAM = Path(__file__).with_name("simulated_runner.py")


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    settings = tmp_path / "phone" / "settings" / "chaos"
    settings.mkdir(parents=True)
    (settings / "case_ms").write_text("1")
    return tmp_path / "phone"


def prepare(folder: Path, name: str, *jobs: CaseJob) -> Path:
    job = folder / name
    job.mkdir()
    (job / "job.txt").write_text(job_text("run-1", jobs, "../blobs"), "ascii")
    return job


def start(phone: Path, job: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-IS", str(PROGRAM), "run", str(job)],
        env=os.environ | {"PHONE": str(phone)},
        stdout=subprocess.PIPE,
    )


def finish(process: "subprocess.Popen[bytes]") -> list[CaseRecord]:
    stream = ResultStream("simulated", "run-1")
    text, _ = process.communicate(timeout=60)
    for line in text.splitlines(keepends=True):
        stream.feed(line)
    return stream.finish()


def shelve(folder: Path, store: BlobStore, *jobs: CaseJob) -> None:
    """Blobs as a phone has them."""
    (folder / "blobs").mkdir(exist_ok=True)
    for digest in set[str]().union(*(job.blobs() for job in jobs)):
        (folder / "blobs" / digest).write_bytes(store.get(digest))


def test_its_answers_are_right_and_a_damaged_blob_is_none(phone: Path, tmp_path: Path) -> None:
    stock = Stock(BlobStore((tmp_path / "store").as_uri()))
    right, damaged = stock.job("right"), stock.job("damaged", shader=b"another")
    shelve(tmp_path, stock.store, right, damaged)
    shader = damaged.passes[0].shader
    (tmp_path / "blobs" / shader).write_bytes(b"a wrong byte")
    records = finish(start(phone, prepare(tmp_path, "job", right, damaged)))
    verdicts = [judge(r.end, job) for r, job in zip(records, (right, damaged), strict=True)]
    assert verdicts[0] == (Verdict.PASS, "")
    assert verdicts[1] == (Verdict.INFRA, f"buffers: blob {shader} is missing or damaged")
    (execution,) = notes_in(phone).executions.values()
    assert execution.cases == ("right", "damaged")
    assert execution.ended
    assert records[0].end.timing is not None
    assert records[0].end.timing.slope_ns == execution.number


def test_two_at_once_on_one_phone_are_noted_also_when_the_first_is_killed(
    phone: Path, tmp_path: Path
) -> None:
    stock = Stock(BlobStore((tmp_path / "store").as_uri()))
    job = stock.job("case")
    shelve(tmp_path, stock.store, job)
    (phone / "settings" / "chaos" / "case_ms").write_text("600000")
    first = start(phone, prepare(tmp_path, "first", job))
    assert first.stdout is not None
    while b'"start"' not in first.stdout.readline():
        pass
    (phone / "settings" / "chaos" / "case_ms").write_text("1")
    second = prepare(tmp_path, "second", job)
    finish(start(phone, second))
    first.kill()
    first.communicate(timeout=60)
    finish(start(phone, second))
    told = notes_in(phone)
    one, two, three = (told.executions[number] for number in sorted(told.executions))
    assert told.overlaps == [(two.number, one.number)]
    assert [e.ended for e in (one, two, three)] == [False, True, True]
