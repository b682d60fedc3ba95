"""A farm's Redis as a process that a test kills and starts again."""

import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.execution.private_redis import redis_server_program
from orchestrator.storage.redis_client import connect
from tests.farm import wait_for
from tests.phones import free_port
from workers.lifetime import dies_with_us


@dataclass(slots=True)
class RedisServer:
    """Keeps its data over kill -9, as docs/farm.md asks for."""

    folder: Path
    appendfsync: Literal["everysec", "always"] = "everysec"
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        words = ["--port", str(self.port), "--save", "", "--dir", str(self.folder)]
        words += ["--appendonly", "yes", "--appendfsync", self.appendfsync]
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                dies_with_us([redis_server_program(), *words]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_for(self.answers, "redis-server")

    def answers(self) -> bool:
        with suppress(BrokerUnavailable):
            connect(self.url).close()
            return True
        return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)
