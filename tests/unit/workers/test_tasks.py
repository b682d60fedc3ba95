"""The task around a session: each case runs once, and each gets its row whatever happens."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.event import Progress
from orchestrator.domain.health import Failed, Vitals
from orchestrator.domain.names import RUN_BATCH_TASK
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import pack
from orchestrator.execution.broker import Broker
from orchestrator.storage.redis_client import RedisClient
from tests.unit.workers.fake_device import WORKDIR, Act, FakeDevice, bench
from tests.unit.workers.jobs import Stock
from tests.unit.workers.told import events, trials
from workers import locks, run_watch, tasks
from workers.locks import exclusive
from workers.news import heard
from workers.results import ResultSink
from workers.session import infra_trials
from workers.tasks import handle, make_app


@pytest.fixture(autouse=True)
def lock_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Not the one that real workers of this machine use."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(locks, "lock_folder", lambda: folder)
    return folder


def test_a_batch_becomes_trials_and_news(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    batch = stock.batch(stock.job("case-1"), stock.job("case-2"), run_id="task-run")
    handle(batch, bench(phone), client, "worker-1")
    found = events(redis_url, "task-run")
    news = [e.state for e in found if isinstance(e, Progress)]
    assert news == ["batch", "started", "ended", "started", "ended"]
    assert [(t.case_id, t.verdict) for t in trials(redis_url, "task-run")] == [
        ("case-1", Verdict.PASS),
        ("case-2", Verdict.PASS),
    ]


def test_g3_01_a_batch_that_is_delivered_again_does_not_touch_the_phone(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    batch = stock.batch(stock.job("case-1"), run_id="task-again")
    for _ in range(3):
        handle(batch, bench(phone), client, "worker-1")
    assert len(phone.jobs) == 1
    assert len(trials(redis_url, "task-again")) == 1


def test_g3_01_what_a_killed_worker_had_done_is_left_out(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    one, two = stock.job("case-1"), stock.job("case-2")
    handle(stock.batch(one, run_id="task-part"), bench(phone), client, "worker-1")
    handle(stock.batch(one, two, run_id="task-part"), bench(phone), client, "worker-1")
    assert "case case-1" not in phone.jobs[1]
    assert "case case-2" in phone.jobs[1]
    assert [t.case_id for t in trials(redis_url, "task-part")] == ["case-1", "case-2"]


def test_g3_07_what_nobody_thought_of_has_a_name_and_takes_no_other_result(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    """G3-07: a task that raises would leave its run waiting until it gives the whole device up."""
    one, two = stock.job("case-1"), stock.job("case-2")
    handle(stock.batch(one, run_id="task-raises"), bench(phone), client, "worker-1")

    def fails(_text: bytes) -> bytes:
        raise KeyError("no such\x1b key")

    phone.stdout = fails
    handle(stock.batch(one, two, run_id="task-raises"), bench(phone), client, "worker-1")
    found = {t.case_id: (t.verdict, t.reason) for t in trials(redis_url, "task-raises")}
    assert found == {
        "case-1": (Verdict.PASS, ""),
        "case-2": (Verdict.INFRA, "KeyError: 'no such\\x1b key'"),
    }


@pytest.mark.parametrize("lock", ["device-fake-1", "resource-cpu@buildhost"])
def test_a_device_that_never_comes_free_gives_infra_rows(
    phone: FakeDevice,
    stock: Stock,
    client: RedisClient,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    lock: str,
) -> None:
    monkeypatch.setattr(tasks, "RESOURCE_WAIT_S", 0.0)
    run_id = f"task-locked-{lock[:6]}"
    with exclusive(lock, timeout_s=0):
        handle(
            stock.batch(stock.job("case-1"), stock.job("case-2"), run_id=run_id),
            bench(phone),
            client,
            "worker-1",
        )
    found = trials(redis_url, run_id)
    assert [t.verdict for t in found] == [Verdict.INFRA] * 2
    assert all("in use by process" in t.reason for t in found)
    assert phone.jobs == []


def test_waiting_for_a_shared_processor_is_news(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = ResultSink.progress
    with ExitStack() as other:
        other.enter_context(exclusive("resource-cpu@buildhost", timeout_s=0))

        def ends_when_told(sink: ResultSink, news: Progress) -> None:
            tell(sink, news)
            if news.state == "waiting":
                other.close()

        monkeypatch.setattr(ResultSink, "progress", ends_when_told)
        handle(stock.batch(stock.job("case-1"), run_id="task-waits"), bench(phone), client, "worker-1")
    assert events(redis_url, "task-waits")[0] == Progress("fake-1", "waiting", detail="cpu@buildhost")
    assert [t.verdict for t in trials(redis_url, "task-waits")] == [Verdict.PASS]


def test_only_the_devices_own_trouble_is_news_for_its_agent(
    phone: FakeDevice, stock: Stock, client: RedisClient
) -> None:
    """A blob store that is away must not restart a shelf of phones."""
    job, device = stock.job("case-1"), bench(phone)
    list(heard(client, "fake-1"))
    away = replace(stock.batch(job, run_id="news-store"), blob_store="file:///nowhere/at/all")
    handle(away, device, client, "worker-1")
    phone.script["case-1"] = Act(status="error", fields={"stage": "buffers", "reason": "out of memory"})
    handle(stock.batch(job, run_id="news-runner"), device, client, "worker-1")
    phone.exit_code = 1
    handle(stock.batch(job, run_id="news-exit"), device, client, "worker-1")
    phone.capacity = 0
    handle(stock.batch(job, run_id="news-space"), device, client, "worker-1")
    assert [n for n in heard(client, "fake-1") if not isinstance(n, Vitals)] == []
    phone.capacity, phone.link_lasts = None, 60
    handle(stock.batch(job, run_id="news-link"), device, client, "worker-1")
    (told,) = (n for n in heard(client, "fake-1") if isinstance(n, Failed))
    assert "the link dropped after 60 bytes" in told.why


@pytest.mark.parametrize("url", ["nosuch://store", "file:///nowhere/at/all"])
def test_a_blob_store_that_this_worker_cannot_open_gives_infra_rows(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, url: str
) -> None:
    """Not silence: the orchestrator would wait a quarter of an hour for nothing."""
    run_id = f"task-{url[:4]}"
    batch = replace(stock.batch(stock.job("case-1"), run_id=run_id), blob_store=url)
    handle(batch, bench(phone), client, "worker-1")
    (trial,) = trials(redis_url, run_id)
    assert trial.verdict is Verdict.INFRA
    assert "TILEFARM_BLOBS" in trial.reason


def test_the_celery_task_is_a_shell_around_it(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    app = make_app(redis_url, bench(phone), client, "worker-1")
    task = app.tasks[RUN_BATCH_TASK]
    task(pack(stock.batch(stock.job("case-1"), run_id="task-shell")))
    assert [t.verdict for t in trials(redis_url, "task-shell")] == [Verdict.PASS]
    task(pack(Progress("phone", "batch")))  # refused, which is told and is no error of the task's
    assert len(trials(redis_url, "task-shell")) == 1
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"
    app.close()


def test_a_result_of_another_worker_is_not_overwritten(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    """Both had the batch: one was thought dead and was only slow."""
    job = stock.job("case-1")
    (faster,) = infra_trials(bench(phone), "task-race", [job], "the faster one")

    def overtake(text: bytes) -> bytes:
        assert ResultSink(client, "task-race").insert(faster)
        return text

    phone.stdout = overtake
    handle(stock.batch(job, run_id="task-race"), bench(phone), client, "worker-1")
    assert [t.reason for t in trials(redis_url, "task-race")] == ["the faster one"]


def test_a_cancelled_run_leaves_the_phone_clean_and_says_nothing_more(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_watch, "POLL_S", 0.0)
    broker = Broker(redis_url)

    def cancelled(text: bytes) -> bytes:
        assert broker.cancel("task-cancel", "cancelled by anna@desk")
        return text

    phone.stdout = cancelled
    batch = stock.batch(stock.job("case-1"), stock.job("case-2"), run_id="task-cancel")
    handle(batch, bench(phone), client, "worker-1")
    assert trials(redis_url, "task-cancel") == []
    assert f"{WORKDIR}/jobs" in phone.removed
    ran = len(phone.jobs)
    handle(batch, bench(phone), client, "worker-1")
    assert len(phone.jobs) == ran, "what waits in the queue is dropped"
    broker.go_on("task-cancel")
    phone.stdout = lambda text: text
    handle(batch, bench(phone), client, "worker-1")
    assert [t.verdict for t in trials(redis_url, "task-cancel")] == [Verdict.PASS] * 2
    assert not broker.cancel("task-nobody-knows", "x")
    broker.close()
