"""Points of an API that a device lacks are counted apart from what it cannot do."""

from orchestrator.analysis.other_api import of_other_api, other_apis
from orchestrator.analysis.summary import count
from orchestrator.domain.results import Pruned
from orchestrator.domain.verdict import Verdict


def dropped(case_id: str, reason: str) -> Pruned:
    return Pruned("local-1", case_id, Verdict.UNSUPPORTED, [reason])


def test_a_missing_api_is_no_limit() -> None:
    assert of_other_api(dropped("a", "lacks api vulkan"))
    assert not of_other_api(dropped("a", "lacks float16"))
    assert other_apis([dropped("a", "lacks api vulkan"), dropped("b", "lacks float16")]) == ("vulkan",)


def test_counts_keep_them_out_of_unsupported_whether_probe_or_variant() -> None:
    pruned = [
        dropped("a", "lacks api vulkan"),
        dropped("probe", "lacks api vulkan"),
        dropped("b", "shared_bytes 36864 > 16384"),
        dropped("probe-2", "lacks float16"),
    ]
    counts = count([], pruned=pruned, missing=[], probes={"probe", "probe-2"})
    assert (counts.other_api, counts.pruned, counts.probes_unsupported) == (2, 1, 1)
    assert counts.row[-1] == 1
    assert counts.planned == 4
