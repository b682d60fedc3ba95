"""The probe's raw bits, from the blob store to what the run's results say about each device."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import CaseInfo
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.measured_precision import measured_precision
from orchestrator.ops.probes_precision import evaluate, rows
from orchestrator.storage.blobs import BlobStore
from tests.results_fixture import case as ordinary
from tests.results_fixture import info, passing


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore((tmp_path / "blobs").as_uri())


def probe(asked: str) -> Case:
    axes: dict[str, AxisValue] = {"api": "gles", "precision": "asked", "asked": asked}
    return Case("precision_probe", "precision_probe", {}, axes, "rows")


def infos(*cases: Case) -> dict[str, CaseInfo]:
    return {c.case_id: CaseInfo(c, "h", Cost(1, 1, 1), {}, (64, 1, 1), 0, 1, role="probe") for c in cases}


def trial(case: Case, device_id: str, tensors: Mapping[str, str], verdict: Verdict = Verdict.PASS) -> Trial:
    return Trial("r", device_id, case.case_id, 1, verdict, "", "h", "t", 1, tensors=dict(tensors))


def fp32_bits(asked: str) -> bytes:
    """What a driver sends back that computes everything in fp32 and rounds correctly."""
    with np.errstate(over="ignore"):
        return np.array([evaluate(row) for row in rows(asked)], "<f4").tobytes()


def test_the_bits_of_the_store_become_what_the_device_delivers(store: BlobStore) -> None:
    highp, mediump = probe("highp"), probe("mediump")
    trials = [
        trial(highp, "a", {"raw": store.put(fp32_bits("highp"))}),
        trial(mediump, "b", {"raw": store.put(fp32_bits("mediump"))}, Verdict.MISMATCH),
        passing(ordinary(), "a"),
    ]
    found, unread = measured_precision(
        store, trials, infos(highp, mediump) | {ordinary().case_id: info(ordinary())}
    )
    assert [(p.device_id, p.asked, p.delivered, p.mantissa_bits) for p in found] == [
        ("a", "highp", "fp32", 23),
        ("b", "mediump", "fp32", 23),
    ]
    assert unread == []


def test_bits_that_cannot_be_read_are_missing_and_cost_no_other_device(store: BlobStore) -> None:
    highp = probe("highp")
    there = store.put(fp32_bits("highp"))
    gone = "0" * 64
    trials = [trial(highp, "a", {"raw": gone}), trial(highp, "b", {"raw": there})]
    found, (lost,) = measured_precision(store, trials, infos(highp))
    assert [p.device_id for p in found] == ["b"]
    assert (lost.device_id, lost.case_id) == ("a", highp.case_id)
    assert lost.why.startswith("what the probe found: blob 0000")


def test_a_run_without_probes_measures_nothing(store: BlobStore) -> None:
    kept_failure = replace(passing(ordinary(), "a"), tensors={"raw": "0" * 64})
    assert measured_precision(store, [kept_failure], {ordinary().case_id: info(ordinary())}) == ([], [])
