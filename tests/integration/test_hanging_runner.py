"""A runner that hangs: ended by our own deadline, and by its process id, whatever Celery's pool can do."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.health import Failed, Vitals
from orchestrator.domain.names import lease_key
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import RedisClient
from tests.chaos.check import processes_in
from tests.chaos.phones import install_runner, profile_of
from tests.farm import wait_for
from tests.phones import StartPhone
from tests.unit.execution.redis_fixture import client, redis_url
from tests.unit.workers.jobs import Stock
from workers import session
from workers.discovery import Reachable
from workers.news import heard
from workers.opening import open_bench
from workers.tasks import handle
from workers.transports.adb import AdbServer

__all__ = ["client", "redis_url"]
NEVER_MS = 3_600_000


def alone(call: Callable[[], object]) -> None:
    call()


def in_a_thread(call: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


def in_a_child(call: Callable[[], object]) -> None:
    process = multiprocessing.get_context("fork").Process(target=call)
    process.start()
    process.join()
    assert process.exitcode == 0


POOLS = {"solo": alone, "threads": in_a_thread, "prefork": in_a_child}


@pytest.mark.parametrize("pool", POOLS)
def test_g3_05_a_runner_that_hangs_is_ended_on_the_phone_and_the_phone_is_looked_at_before_its_next_batch(
    pool: str,
    start_phone: StartPhone,
    adb_server: AdbServer,
    client: RedisClient,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G3-05: time limits do not work in every pool of Celery; ours hold in a blocking read of any."""
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb_server.port))
    phone = start_phone(profile_of(list(POOLS).index(pool), NEVER_MS))
    settings = Settings(runner_dir=install_runner(tmp_path / "runner"))
    bench = open_bench(Reachable("adb", phone.serial), settings)
    device_id, root = bench.record.device_id, str(phone.phone.root.folder)
    stock, run_id = Stock(BlobStore((tmp_path / "store").as_uri())), f"hangs-{pool}"

    def deliver(attempt: int) -> Trial:
        batch = stock.batch(stock.job("case-1", attempt=attempt), run_id=run_id)
        POOLS[pool](lambda: handle(replace(batch, device_id=device_id), bench, client, "worker-1"))
        broker = Broker(redis_url)
        found = [e for _, e in broker.events(run_id, "0", 1) if isinstance(e, Trial)]
        broker.close()
        return found[-1]

    phone.fault(r"stall:on=tilefarm-runner\S* run,after=300")
    with monkeypatch.context() as quick:
        quick.setattr(session, "IDLE_TIMEOUT_S", 1.0)
        hung = deliver(1)
    assert hung.verdict is Verdict.INFRA
    assert "silent: not done after 1 s" in hung.reason
    wait_for(lambda: not processes_in(root), "the runner's process on the phone to end")
    assert not client.exists(lease_key(device_id))
    phone.fault()
    (phone.phone.root.state / "settings" / "chaos" / "case_ms").write_text("1")
    assert deliver(2).verdict is Verdict.PASS
    assert [type(news) for news in heard(client, device_id)] == [Vitals, Failed, Vitals]
