"""A run's second look: questions in, answers out, whatever happens on the way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.confirmation import Confirmation, Wanted
from orchestrator.domain.job import CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution import confirm
from orchestrator.execution.confirm import CUT_OFF, Confirming
from orchestrator.execution.duel_jobs import Manifests
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run_folder import RunFolder
from orchestrator.storage.blobs import BlobStore
from tests.results_fixture import device, results, run_info
from tests.unit.execution.duel_farm import RUN, DuelFarm, canary, failed, job, timed

BEFORE = "20261130T010000Z-nightly-bbbb"
CASE = job().case_id
TURNS = Wanted("phone", CASE, "turns", "old", "new", BEFORE, p=0.001)
AGAIN = Wanted("phone", "00aa", "again", p=0.002)


def stored(made: CaseJob, store: BlobStore) -> CaseJob:
    return replace(
        made,
        passes=[replace(p, shader=store.put(made.code_hash.encode())) for p in made.passes],
        buffers=[replace(b, blob=store.put(b"x")) if b.role == "in" else b for b in made.buffers],
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """With tonight's run, and the one of the baseline."""
    store = BlobStore(f"file://{tmp_path}/blobs")
    for run_id, code in ((RUN, "new"), (BEFORE, "old")):
        jobs = [stored(job(CASE, code), store), *(stored(job(f"00a{n}"), store) for n in "abcdefghijklmnop")]
        planned = results(devices=[device("phone")], run=run_info(run_id))
        manifest = Manifest(planned, {"phone": jobs}, store.url, "nightly", {"phone": [canary()]})
        RunFolder.create(tmp_path, manifest)
    return tmp_path


def faster(each: CaseJob) -> Trial:
    return timed(each, 900_000 if each.code_hash == "new" else 1_000_000)


def farm() -> DuelFarm:
    return DuelFarm(workers={"phone": "worker-1"}, answer=faster)


def asked(
    out: Path, made: DuelFarm, *wanted: Wanted, samples: int = 100_000
) -> tuple[Confirmation, list[Confirmation]]:
    parts: list[Confirmation] = []
    confirming = Confirming(RUN, Manifests(out), made.errands(), parts.append)
    return confirming.carry_out(wanted, samples, 3), parts


def test_codes_take_turns_and_the_rest_is_measured_once_more(out: Path) -> None:
    made = farm()
    found, parts = asked(out, made, TURNS, AGAIN)
    assert [(d.answer, d.pairs, d.why) for d in found.duels] == [("different", 16, "")]
    assert [(t.case_id, t.verdict) for t in found.again] == [("00aa", Verdict.PASS)]
    assert (found.run_id, found.wanted, found.unpaid, found.why) == (RUN, [TURNS, AGAIN], 3, "")
    assert found.samples == 20 + 32
    assert parts[-1] == found
    assert {p.why for p in parts[:-1]} == {CUT_OFF}, "what a killed process leaves says that it was killed"


def test_a_case_is_measured_again_as_it_was_but_for_its_replays(out: Path) -> None:
    made = farm()
    asked(out, made, AGAIN)
    ((batch, lane),) = made.sent
    assert lane == "nightly"
    assert batch.canaries == [canary()]
    (case,) = batch.cases
    assert (case.case_id, case.repeats, case.warmup_ms) == ("00aa", 20, 400)
    assert (case.replays, case.idle_replays) == (1, 0)


def test_many_cases_of_a_phone_are_several_batches(out: Path) -> None:
    made = farm()
    found, _ = asked(out, made, *(replace(AGAIN, case_id=f"00a{n}") for n in "abcdefghijklmnop"))
    assert len(found.again) == 16
    assert len(made.sent) > 1


def test_the_budget_is_a_share_of_the_night(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "RULE", replace(RULE, least_budget=0))
    rng = np.random.default_rng(1)
    made = farm()
    made.answer = lambda each: timed(each, round(1_000_000 * rng.uniform(0.7, 1.4)))
    found, _ = asked(out, made, TURNS, samples=2000)
    assert (found.duels[0].answer, found.duels[0].pairs) == ("unknown", 16), "40 samples: one look"


@pytest.mark.parametrize("what", ["folder", "shader", "code", "case"])
def test_a_baseline_that_is_gone_is_a_reason(out: Path, what: str) -> None:
    wanted, why = TURNS, ""
    manifest = RunFolder(out / "runs" / BEFORE).manifest()
    match what:
        case "folder":
            (out / "runs" / BEFORE / "manifest.json").unlink()
            why = f"the jobs of run {BEFORE} are gone"
        case "shader":
            digest = manifest.jobs["phone"][0].passes[0].shader
            (out / "blobs" / digest[:2] / digest).unlink()
            why = f"its shader {digest[:12]} is no longer in "
        case "code":
            wanted = replace(TURNS, code_before="older")
            why = f"run {BEFORE} has code old of case {CASE}, not older as judged"
        case _:
            wanted = replace(TURNS, case_id="0bad")
            why = "has no job of case 0bad"
    made = farm()
    found, _ = asked(out, made, wanted, AGAIN)
    (duel,) = found.duels
    assert (duel.answer, duel.pairs) == ("unknown", 0)
    assert why in duel.why
    assert len(found.again) == 1, "the other question is asked all the same"


def test_a_phone_that_does_not_come_back_is_a_reason(out: Path) -> None:
    made = farm()
    made.workers.clear()
    found, _ = asked(out, made, TURNS, AGAIN)
    assert found.again == []
    assert sorted((d.wanted.how, d.pairs) for d in found.duels) == [("again", 0), ("turns", 0)]
    assert all(d.why.startswith("no worker for ") for d in found.duels)


def test_an_ended_run_ends_its_second_look(out: Path) -> None:
    made = farm()
    made.ended[RUN] = "the night's deadline of 6 h"
    found, _ = asked(out, made, TURNS, AGAIN)
    assert made.sent == []
    assert found.why == "the night's deadline of 6 h"
    assert {d.why for d in found.duels} == {"the night's deadline of 6 h"}


def test_a_trial_of_infrastructure_is_kept_with_its_reason(out: Path) -> None:
    made = farm()
    made.answer = lambda each: failed(each, Verdict.INFRA, "the link dropped")
    found, _ = asked(out, made, AGAIN)
    assert [(t.verdict, t.reason) for t in found.again] == [(Verdict.INFRA, "the link dropped")]
