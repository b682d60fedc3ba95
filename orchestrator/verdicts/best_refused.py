"""What a run's results say against a variant that its trials in the history do not: known failures, a host
that disagreed with the phone, phones that cannot run it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from orchestrator.analysis.other_api import of_other_api
from orchestrator.analysis.outcome import compile_recorded, device_driver
from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Refused:
    why: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(SoC, case id) → reason."""


def refused_in(results: RunResults) -> Refused:
    """Known failures count until they expire, by the date of the run: one history, one answer."""
    on = date.fromisoformat(results.run.started_at[:10])
    why: dict[tuple[str, str], str] = {}
    soc_of = {d.device_id: d.soc.name for d in results.devices}
    for expectation in results.expectations:
        if expectation.kind == "slow" or expectation.expired(on):
            continue  # what is slow is right, and its times speak for themselves
        selects = compile_recorded(expectation.when)
        cases = [i for i, info in results.cases.items() if info.role == "op" and selects(info.case)]
        for device in results.devices:
            for case_id in cases:
                api = str(results.cases[case_id].case.axes.get("api", ""))
                if expectation.covers_device(device.soc.name, device_driver(device, api)):
                    said = f"expected to fail ({expectation.verdict}): {expectation.reason}"
                    why.setdefault((device.soc.name, case_id), said)
    for trial in results.trials:
        if trial.recheck == "disagreed" and trial.device_id in soc_of:
            said = f"the host compared its tensor of {trial.device_id} again and disagrees"
            why.setdefault((soc_of[trial.device_id], trial.case_id), said)
    for pruned in results.pruned:
        if pruned.verdict is Verdict.UNSUPPORTED and not of_other_api(pruned):
            said = f"{pruned.device_id} cannot run it: {', '.join(pruned.reasons)}"
            why.setdefault((soc_of.get(pruned.device_id, ""), pruned.case_id), said)
    return Refused(why)
