"""docker-compose.yml without Docker: each service's exact command and health check, as processes here."""

import json
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest
import redis
from celery import Celery

from orchestrator.domain.broker_url import complete
from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import celery_settings
from orchestrator.execution.broker import Broker
from orchestrator.storage.redis_client import RedisClient, connect
from tests.certificates import make
from tests.compose import COMPOSE, TLS, Service, load, place
from tests.farm import ONE_CASE, WAIT_S, Farm, wait_for
from tests.phones import StartPhone, free_port
from workers.transports.adb import AdbServer

SECRET = "correct-horse-battery"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """What ``.env`` says: the ports and addresses of this test."""
    password = tmp_path / "broker_password"
    password.write_text(SECRET + "\n")
    port = str(free_port())
    return {
        "BROKER_PASSWORD_FILE": str(password),
        "REDIS_LISTEN": "127.0.0.1",
        "REDIS_INNER_PORT": port,
        "REDIS_PORT": port,
        "REDIS_MAXMEMORY": "64mb",
        "SERVICES_BROKER": f"redis://127.0.0.1:{port}/0",
        "REPORTS_LISTEN": "127.0.0.1",
        "REPORTS_INNER_PORT": str(free_port()),
        "FLOWER_LISTEN": "127.0.0.1",
        "FLOWER_INNER_PORT": str(free_port()),
    }


@pytest.fixture
def processes() -> Generator[dict[str, "subprocess.Popen[bytes]"]]:
    """By service; what a test leaves running is ended."""
    found: dict[str, subprocess.Popen[bytes]] = {}
    yield found
    for process in reversed(found.values()):
        if process.poll() is None:
            process.terminate()
    for process in found.values():
        process.wait(60)


def machine(tmp_path: Path) -> dict[str, str]:
    """Locks of this test alone; Vulkan under validation."""
    folder = tmp_path / "tmp"
    folder.mkdir(exist_ok=True)
    return {"TMPDIR": str(folder), "TILEFARM_VALIDATE": "1"}


def start(
    services: Mapping[str, Service], name: str, processes: dict[str, "subprocess.Popen[bytes]"]
) -> None:
    """Until its own health check passes."""
    service = services[name]
    processes[name] = process = service.start()
    complaint, deadline = "it does not run", time.monotonic() + WAIT_S
    while process.poll() is None and (complaint := service.complaint()):
        assert time.monotonic() < deadline, f"{complaint}\n{service.log.read_text()}"
    assert process.poll() is None, service.log.read_text()


def stop(services: Mapping[str, Service], name: str, processes: dict[str, "subprocess.Popen[bytes]"]) -> None:
    """As `docker compose stop` does, with all the time it needs; a web server has nothing to finish."""
    process = processes.pop(name)
    process.send_signal(signal.SIGTERM)
    code = process.wait(300)
    assert name == "reports" or code == 0, services[name].log.read_text()


def test_every_service_runs_as_the_compose_files_say(
    tmp_path: Path,
    farm: Farm,
    variables: dict[str, str],
    processes: dict[str, "subprocess.Popen[bytes]"],
    adb_server: AdbServer,
    start_phone: StartPhone,
) -> None:
    """With TLS, a phone on a real adb server, and a submitted run whose report is read over HTTP.

    The password is in no process's words, and in no file but its own.
    """
    made = make(tmp_path / "certificates")
    url = f"rediss://127.0.0.1:{variables['REDIS_PORT']}/0"
    variables |= {
        "SERVICES_BROKER": url,
        "BROKER_CA": str(made.ca),
        "BROKER_CERTIFICATE": str(made.certificate),
        "BROKER_KEY": str(made.key),
        "ANDROID_ADB_SERVER_PORT": str(adb_server.port),
    }
    compose = load(COMPOSE, TLS, variables=variables)
    services = {name: place(compose, name, tmp_path, machine(tmp_path)) for name in compose["services"]}
    assert list(services) == ["redis", "orchestrator", "beat", "agent", "reports", "flower"]
    phone = start_phone("snapdragon-8-gen-3")
    for name in services:
        start(services, name, processes)

    orchestrator = services["orchestrator"].environment
    farm.environment |= {k: v for k, v in orchestrator.items() if "BROKER" in k or k == "TILEFARM_BLOBS"}
    broker = Broker(complete(url, Path(variables["BROKER_PASSWORD_FILE"]), made.ca))
    wait_for(lambda: phone.serial in [r.record.serial for r in broker.registrations().values()], "a worker")
    broker.close()
    assert "of 64 MiB in use" in farm.run("health", "broker").stderr
    assert "orchestrator" in fetched(variables["FLOWER_INNER_PORT"], "/broker"), "a queue of ours"
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(ONE_CASE)
    run_id = farm.json("submit", "--matrix", str(matrix), "--no-probes")["run_id"]
    port = variables["REPORTS_INNER_PORT"]
    wait_for(lambda: fetched(port, f"/runs/{run_id}/index.html") != "", "the report")
    results = json.loads(fetched(port, f"/runs/{run_id}/results.json"))
    assert [t["verdict"] for t in results["trials"]] == ["pass"]

    for process in processes.values():
        for each in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
            assert SECRET not in " ".join(each.cmdline())
    for name in ("flower", "reports", "agent", "beat"):
        stop(services, name, processes)
    assert "no beat lives on" in services["beat"].complaint()
    for name in ("orchestrator", "redis"):
        stop(services, name, processes)
    secret = Path(variables["BROKER_PASSWORD_FILE"])
    files = [f for f in tmp_path.rglob("*") if f.is_file() and not f.is_symlink() and f != secret]
    assert len(files) > 20
    assert [str(f) for f in files if SECRET.encode() in f.read_bytes()] == []


def fetched(port: str, path: str) -> str:
    """Empty where there is nothing (yet)."""
    connection = HTTPConnection("127.0.0.1", int(port), timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read().decode() if answer.status == 200 else ""
    finally:
        connection.close()


def test_redis_keeps_a_farms_word_over_a_kill_and_admits_nobody_without_the_password(
    tmp_path: Path, variables: dict[str, str], processes: dict[str, "subprocess.Popen[bytes]"]
) -> None:
    """Without TLS. A hold is kept by the append-only file alone: no snapshot is ever written."""
    compose = load(COMPOSE, variables=variables)
    services = {"redis": place(compose, "redis", tmp_path, machine(tmp_path))}
    url = variables["SERVICES_BROKER"]
    whole = complete(url, Path(variables["BROKER_PASSWORD_FILE"]), None)
    start(services, "redis", processes)
    with pytest.raises(BrokerUnavailable, match="TILEFARM_BROKER_PASSWORD_FILE"):
        connect(url)
    broker = Broker(whole)
    hold = Hold("phone-1", "anna@desk", "new battery", "2026-12-01T01:00:00+00:00")
    assert broker.hold(hold)
    broker.close()
    processes["redis"].kill()
    processes.pop("redis").wait(60)
    start(services, "redis", processes)
    broker = Broker(whole)
    assert broker.holds() == {"phone-1": hold}
    broker.close()
    stop(services, "redis", processes)

    Path(variables["BROKER_PASSWORD_FILE"]).write_text("\n")
    refused = services["redis"].start()
    assert refused.wait(60) != 0, "an empty file must not mean: no password"
    assert "is empty" in services["redis"].log.read_text()


def test_g3_08_a_full_redis_refuses_writes_and_throws_nothing_away(
    tmp_path: Path, farm: Farm, variables: dict[str, str], processes: dict[str, "subprocess.Popen[bytes]"]
) -> None:
    """G3-08: noeviction, and an alert before it is felt; more memory, and writes go on."""
    compose = load(COMPOSE, variables=variables | {"REDIS_MAXMEMORY": "3mb"})
    services = {"redis": place(compose, "redis", tmp_path, machine(tmp_path))}
    start(services, "redis", processes)
    url = variables["SERVICES_BROKER"]
    farm.environment |= {
        "TILEFARM_BROKER": url,
        "TILEFARM_BROKER_PASSWORD_FILE": variables["BROKER_PASSWORD_FILE"],
    }
    client = connect(complete(url, Path(variables["BROKER_PASSWORD_FILE"]), None))
    written: list[str] = []
    with pytest.raises(redis.OutOfMemoryError):
        write_on(client, written)
    assert len(written) > 100
    assert all(client.exists(name) for name in written)
    assert "takes no results: raise maxmemory" in farm.run("health", "broker", expect=3).stderr
    client.close()
    stop(services, "redis", processes)


def write_on(client: RedisClient, written: list[str]) -> None:
    """For as long as it goes."""
    while True:
        name = f"tilefarm:run:{len(written)}"
        client.set(name, "x" * 1000, ex=3600)
        written.append(name)


def test_no_client_talks_to_a_redis_whose_certificate_it_cannot_check(
    tmp_path: Path, variables: dict[str, str], processes: dict[str, "subprocess.Popen[bytes]"]
) -> None:
    """kombu would, if the URL did not say otherwise; so would whoever stands between a worker and Redis."""
    made, other = make(tmp_path / "certificates"), make(tmp_path / "others")
    url = f"rediss://127.0.0.1:{variables['REDIS_PORT']}/0"
    variables |= {
        "BROKER_CA": str(made.ca),
        "BROKER_CERTIFICATE": str(made.certificate),
        "BROKER_KEY": str(made.key),
    }
    compose = load(COMPOSE, TLS, variables=variables)
    services = {"redis": place(compose, "redis", tmp_path, machine(tmp_path))}
    start(services, "redis", processes)
    password = Path(variables["BROKER_PASSWORD_FILE"])
    trusted, plain = (
        complete(url, password, made.ca),
        complete(url.replace("rediss", "redis"), password, None),
    )
    unknown, foreign = complete(url, password, None), complete(url, password, other.ca)
    connect(trusted).close()
    assert ends(trusted) == ""
    for wrong in (unknown, foreign, plain):
        with pytest.raises(BrokerUnavailable) as caught:
            connect(wrong, answer_s=5)
        assert SECRET not in str(caught.value)
        refusal = ends(wrong)
        assert refusal
        assert SECRET not in refusal
    stop(services, "redis", processes)


def ends(url: str) -> str:
    """What a Celery process says that connects once; empty: it is connected."""
    app = Celery("tilefarm", broker=url)
    app.conf.update(celery_settings())
    connection = app.connection_for_write()
    try:
        connection.connect()
    except redis.RedisError as e:
        return str(e) or repr(e)
    finally:
        connection.release()
        app.close()
    return ""
