"""Beat's messages for the orchestrator, read by a Celery worker in a thread of its own."""

import threading
from collections.abc import Callable

import structlog
from celery import Celery
from celery.worker import WorkController, state

from orchestrator.domain.names import NIGHTS_TASK, ORCHESTRATOR_QUEUE, celery_settings
from workers.discovery import host_name

STOP_S = 5.0
log = structlog.get_logger()


class Inbox:
    """One a process: Celery's order to stop is of the whole process."""

    def __init__(self, broker_url: str) -> None:
        self._on_message: Callable[[], None] = lambda: None
        self._app = Celery("tilefarm", broker=broker_url)
        self._app.conf.update(celery_settings())
        self._app.conf.update(timezone="UTC", enable_utc=True, broker_connection_max_retries=None)

        @self._app.task(name=NIGHTS_TASK)
        def nights() -> None:  # pyright: ignore[reportUnusedFunction]
            self._on_message()

        self._thread: threading.Thread | None = None

    def keep_open(self, on_message: Callable[[], None]) -> None:
        """Read, also again where an error has ended it.

        Args:
            on_message: called in the inbox's thread for each message that has not expired.
        """
        self._on_message = on_message
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._read, name="inbox", daemon=True)
            self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            state.should_stop = 0
            self._thread.join(STOP_S)
            state.should_stop = None
        self._app.close()

    def _read(self) -> None:
        worker = WorkController(
            app=self._app,
            pool="solo",
            concurrency=1,
            queues=[ORCHESTRATOR_QUEUE],
            hostname=f"orchestrator@{host_name()}",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        worker.start()
        if worker.exitcode:
            log.warning("Celery ended on an error, which is named above; beat's messages are read again soon")
