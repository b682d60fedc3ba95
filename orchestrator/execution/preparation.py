"""A run's cases become jobs while its devices work on those that are jobs already."""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from orchestrator.domain.job import CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.execution.manifest import Manifest, Outcome
from orchestrator.execution.run_folder import RunFolder


class Preparation:
    """Prepares in a thread of its own; whoever dispatches takes what is ready, and writes it down first.

    A run that is killed meanwhile has lost nothing that was dispatched: a job is in the run's folder before
    anybody gets it.
    """

    def __init__(
        self, folder: RunFolder, manifest: Manifest, outcomes: Iterable[Outcome], now: Callable[[], str]
    ) -> None:
        """
        Args:
            manifest: the folder's own, with what is unprepared.
            outcomes: of cases of ``manifest.unprepared``; what iterating raises, ``take`` raises.
            now: the time as trials tell it.
        """
        self._folder = folder
        self._manifest = manifest
        self._now = now
        self._ready: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._done = not manifest.unprepared
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="preparation")
        self._all = self._pool.submit(self._prepare, outcomes)
        self._pool.shutdown(wait=False)

    @property
    def done(self) -> bool:
        """Everything was taken, it failed, or ``stop`` was called."""
        return self._done

    def left(self, target: str) -> list[str]:
        """Ids of a target's cases that were not taken yet."""
        return [each.case_id for each in self._manifest.unprepared.get(target, ())]

    def take(self) -> tuple[Mapping[str, list[CaseJob]], list[Trial]]:
        """What is ready since the last call: jobs by target, and trials of cases that no device sees.

        Raises:
            KernelFolderError: a kernel's own code failed or contradicts itself.
        """
        ended = self._all.done()  # asked first: what it put in before that is there
        outcomes = self._drained()
        if not outcomes:
            self._done = self._done or ended
            if ended and not self._stop.is_set():
                self._all.result()
            return {}, []
        before = {target: len(jobs) for target, jobs in self._manifest.wanted.items()}
        refused = list(self._manifest.refused(outcomes, self._now()))
        self._folder.note_prepared(outcomes, refused)
        self._manifest = self._manifest.with_outcomes(outcomes)
        fresh = {target: jobs[before[target] :] for target, jobs in self._manifest.wanted.items()}
        return {target: jobs for target, jobs in fresh.items() if jobs}, refused

    def stop(self) -> None:
        """Nobody wants the rest; what is being prepared just now ends by itself."""
        self._stop.set()
        self._done = True

    def _drained(self) -> list[Outcome]:
        found: list[Outcome] = []
        with suppress(queue.Empty):
            while not self._done:
                found.append(self._ready.get_nowait())
        return found

    def _prepare(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if self._stop.is_set():
                return
            self._ready.put(outcome)
