"""Who may do a case when its phone cannot: the other phones of a pool, or those that the plan names."""

from collections import defaultdict

from orchestrator.execution.lanes import Lane
from orchestrator.execution.manifest import Manifest


class StandIns:
    """Of one run. Asks nobody: an outage between two results would leave the others unsettled."""

    def __init__(self, manifest: Manifest) -> None:
        self._able = manifest.able
        devices = [*manifest.planned.devices, *manifest.reserve]
        # A virtual phone never stands in for a real one.
        self._kinds = {d.device_id: (d.soc.name, d.virtual) for d in devices}
        self._own_cases = {d: {job.case_id for job in jobs} for d, jobs in manifest.jobs.items()}
        for target, waiting in manifest.unprepared.items():
            self._own_cases.setdefault(target, set()).update(each.case_id for each in waiting)
        self._tried: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self.there: frozenset[str] = frozenset()
        """Devices with a worker, when it was looked last."""

    def tried(self, target: str, case_id: str, device_id: str) -> None:
        self._tried[target, case_id].add(device_id)

    def of(self, lane: Lane, case_id: str) -> tuple[str, ...]:
        """Phones with a worker that may do a case instead of those that have tried it; empty: nobody."""
        tried = self._tried[lane.target, case_id]
        return tuple(sorted((self._fit(lane, case_id) & self.there) - tried))

    def of_all(self, lane: Lane) -> dict[str, tuple[str, ...]]:
        """For all that is outstanding; empty where somebody is missing for a part of it."""
        if lane.pool or not self._able:
            return {}
        found = {
            key: others for key, job in lane.outstanding.items() if (others := self.of(lane, job.case_id))
        }
        return found if len(found) == len(lane.outstanding) else {}

    def _fit(self, lane: Lane, case_id: str) -> set[str]:
        if lane.pool:
            return set(lane.devices)
        kind = self._kinds.get(lane.target)
        same = {d for d, cases in self._able.items() if self._kinds.get(d) == kind and case_id in cases}
        return {d for d in same if case_id not in self._own_cases.get(d, ())}
