"""A whole farm on one machine: Redis, shelves with an adb server and an agent each, phones, a run.

Every part is a real process (a phone: a real adb transport) and may be killed; all end with the block. The
second shelf is a host whose clock is 15 minutes ahead and whose workers were configured with a visibility
timeout of seconds: what other workers have in hand for longer is delivered again.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from orchestrator.domain.event import Registration
from orchestrator.domain.names import DEVICE_KEY_PREFIX
from orchestrator.domain.wire import unpack
from orchestrator.storage.redis_client import connect
from tests.chaos.phones import install_runner, profile_of
from tests.farm import COMMAND, REPOSITORY, wait_for
from tests.phones import RunningPhone, own_adb_server, running_phone
from tests.redis_server import RedisServer
from workers.lifetime import dies_with_us
from workers.transports.adb import AdbServer

SITE = Path(__file__).with_name("site")
SKEW_S = 15 * 60
VISIBILITY_S = 2
"""Of the second shelf's workers; a batch takes longer than that."""
START_S, END_S = 300.0, 120.0


@dataclass(slots=True)
class Shelf:
    """A host: its agent, its adb server's port, and what is wrong with it."""

    number: int
    folder: Path
    environment: Mapping[str, str]
    server: AdbServer
    agent: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with (self.folder / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                dies_with_us([*COMMAND, "agent", "--no-local"]),
                cwd=REPOSITORY,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()

    def end(self) -> None:
        """In order: its workers end, too."""
        if self.agent is not None:
            self.agent.terminate()
            self.agent.wait(END_S)

    def server_pid(self) -> int:
        """Of the adb server, whoever started it; 0: there is none now."""
        listening = (
            c
            for c in psutil.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN and c.laddr[1:2] == (self.server.port,)
        )
        return next((c.pid for c in listening if c.pid), 0)

    def end_server(self) -> None:
        if pid := self.server_pid():
            os.kill(pid, signal.SIGTERM)


@dataclass(slots=True)
class ChaosFarm:
    folder: Path
    redis: RedisServer
    shelves: list[Shelf]
    phones: list[RunningPhone]

    @property
    def environment(self) -> Mapping[str, str]:
        """Of ``tilefarm run``, which runs on the first shelf's host."""
        return self.shelves[0].environment

    @property
    def out(self) -> Path:
        return Path(self.environment["TILEFARM_OUT"])

    def shelf_of(self, phone: int) -> Shelf:
        return self.shelves[phone % len(self.shelves)]

    def workers(self) -> dict[str, Registration]:
        """By the serial of their phone."""
        client = connect(self.redis.url)
        texts = [(key, client.get(key)) for key in client.scan_iter(match=f"{DEVICE_KEY_PREFIX}*")]
        client.close()
        found = [unpack(Registration, text, key.decode()) for key, text in texts if text]
        return {r.record.serial: r for r in found}

    def redeliveries(self) -> int:
        """Messages that the second shelf's workers took from others and queued again."""
        return sum(len(f.read_text("utf-8").splitlines()) for f in self.folder.glob("shelf*/again.txt"))


@contextmanager
def chaos_farm(folder: Path, *, phones: int, case_ms: int, shelves: int = 2) -> Generator[ChaosFarm]:
    """All of it, until the end of the block; returns once every phone has a worker."""
    with ExitStack() as stack:
        redis = RedisServer(folder / "redis")
        stack.callback(redis.kill)
        redis.start()
        runner_dir = install_runner(folder / "runner")
        farm = ChaosFarm(folder, redis, [], [])
        for number in range(shelves):
            own = folder / f"shelf{number}"
            (own / "tmp").mkdir(parents=True)
            server = stack.enter_context(own_adb_server(own / "home"))
            environment = _environment(number, own, redis.url, server, runner_dir)
            farm.shelves.append(Shelf(number, own, environment, server))
            stack.callback(farm.shelves[-1].end_server)  # the one that its agent started, if ours was killed
        for number in range(phones):
            server, profile = farm.shelf_of(number).server, profile_of(number, case_ms)
            phone = running_phone(server, profile, folder / f"phone{number}")
            farm.phones.append(stack.enter_context(phone))
        for shelf in farm.shelves:
            stack.callback(shelf.end)
            shelf.start()
        wait_for(lambda: len(farm.workers()) == phones, "a worker for each phone", START_S)
        yield farm


def _environment(
    number: int, folder: Path, broker: str, server: AdbServer, runner_dir: Path
) -> dict[str, str]:
    """Nothing of the caller's farm; a host of its own, with its own locks."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TILEFARM_")}
    found = clean | {
        "TILEFARM_BROKER": broker,
        "TILEFARM_OUT": str(folder / "out"),
        "TILEFARM_RUNNER_DIR": str(runner_dir),
        "ANDROID_ADB_SERVER_PORT": str(server.port),
        "ADB_MDNS": "0",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SITE), os.environ.get("PYTHONPATH", "")])),
        "CHAOS_HOST": f"shelf-{number}",
    }
    if number == 1:
        found |= {
            "CHAOS_VISIBILITY_S": str(VISIBILITY_S),
            "CHAOS_AGAIN": str(folder / "again.txt"),
            "LD_PRELOAD": str(wrong_clock(folder)),
            "CHAOS_CLOCK_S": str(SKEW_S),
        }
    return found


def wrong_clock(folder: Path) -> Path:
    """A library that turns the clock of a process."""
    library = folder / "clock.so"
    compiler = shutil.which("cc")
    assert compiler is not None, "cc is not installed: apt install gcc"
    words = [
        compiler,
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(Path(__file__).with_name("clock.c")),
    ]
    subprocess.run(words, check=True, timeout=60)
    return library
