"""A precision that was asked for against what came: less is a failure, more is information (G1-13)."""

from collections.abc import Mapping

from orchestrator.analysis.precision import sentence
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial

_MEANS = {"highp": "fp32", "precise": "fp32"}
"""Words that demand a width; the others name what they ask for."""


def asked_and_got(found: Precision) -> str:
    """``asked fp32 (highp), got fp16`` or ``asked mediump, got fp32``."""
    means = _MEANS.get(found.asked)
    asked = f"{means} ({found.asked})" if means else found.asked
    return f"asked {asked}, got {found.delivered}"


def demotion_reason(found: Precision) -> str:
    """With the numbers that show it."""
    if found.delivered == _MEANS.get(found.asked):
        return sentence(found)  # the width came, and something else that was asked for did not
    return f"{asked_and_got(found)}: {found.mantissa_bits} mantissa bits, largest finite {found.largest:g}"


class Demotions:
    """Of one run, looked up by the probe's trial."""

    def __init__(self, results: RunResults) -> None:
        self._found: Mapping[tuple[str, str, str], Precision] = {
            (p.device_id, p.api, p.asked): p for p in results.precision if p.demoted
        }
        self._axes = {
            case_id: (str(info.case.axes.get("api", "")), str(info.case.axes.get("asked", "")))
            for case_id, info in results.cases.items()
            if info.role == "probe"
        }

    def of(self, trial: Trial) -> str:
        """Why this probe is a failure, whatever its own check says; empty when it is none."""
        api, asked = self._axes.get(trial.case_id, ("", ""))
        found = self._found.get((trial.device_id, api, asked))
        return "" if found is None else demotion_reason(found)
