"""What a phone may be given: words that are words, numbers that fit, and a case that holds together."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.batch_check import answerable, check_batch
from orchestrator.domain.errors import WireError
from orchestrator.domain.job import Batch, BufferJob, CanaryJob, CheckJob, PassJob
from orchestrator.domain.limits import is_word
from tests.unit.domain.messages import BATCH, JOB
from tests.unit.domain.strategies import quick

Q, OUT = JOB.buffers
PASS = JOB.passes[0]
CHECK = JOB.checks[0]
HOSTILE = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "-rf",
    ".hidden",
    "a b",
    "a\nend 1",
    "a\n",
    "$(id)",
    "é",
    "x" * 130,
    "a;b",
]


def test_what_planning_makes_is_taken() -> None:
    check_batch(BATCH, "here")
    canary = CanaryJob(replace(JOB, case_id="canary"), 2.0)
    check_batch(replace(BATCH, canaries=[canary], only_on=["phone-1"], planned_for="pool0-x"), "here")


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("field", ["run_id", "batch_id", "device_id", "planned_for"])
def test_no_name_of_a_batch_is_a_path_or_a_shells_word(field: str, word: str) -> None:
    if word == "" and field in ("device_id", "planned_for"):
        return
    given: dict[str, Any] = {field: word}
    with pytest.raises(WireError, match=rf"^here: {field}"):
        check_batch(replace(BATCH, **given), "here")


@pytest.mark.parametrize("word", HOSTILE)
def test_no_name_of_a_case_is_one(word: str) -> None:
    for job in (
        replace(JOB, case_id=word),
        replace(JOB, code_hash=word),
        replace(JOB, kept=(word,)),
        replace(JOB, buffers=[replace(OUT, name=word)]),
        replace(JOB, passes=[replace(PASS, buffers=(word,))]),
        replace(JOB, checks=[replace(CHECK, buffer=word)]),
        replace(JOB, passes=[replace(PASS, shader=word)]),
        replace(JOB, checks=[replace(CHECK, reference=word)]),
        replace(JOB, buffers=[replace(Q, blob=word)]),
    ):
        with pytest.raises(WireError, match=r"^here: cases\.0"):
            check_batch(replace(BATCH, cases=[job]), "here")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"api": "metal"}, "api"),
        ({"attempt": 0}, "attempt"),
        ({"deadline_ms": 0}, "deadline_ms"),
        ({"deadline_ms": 10**30}, "deadline_ms"),
        ({"repeats": 10_001}, "repeats"),
        ({"replays": 0}, "replays"),
        ({"warmup_ms": 60_001}, "warmup_ms"),
        ({"idle_ms": 3_600_001}, "idle_ms"),
        ({"buffers": []}, "buffers"),
        ({"buffers": [replace(OUT, count=1 << 60)]}, "count"),
        ({"buffers": [replace(OUT, count=0)]}, "count"),
        ({"buffers": [replace(Q, name=f"b{n}") for n in range(257)]}, "buffers"),
        ({"passes": []}, "passes"),
        ({"passes": [replace(PASS, grid=(0, 1, 1))]}, "grid"),
        ({"passes": [replace(PASS, grid=(1, 1, 1 << 32))]}, "grid"),
        ({"passes": [replace(PASS, shared_bytes=-1)]}, "shared_bytes"),
        ({"passes": [replace(PASS, values=(1,) * 33)]}, "values"),
        ({"passes": [replace(PASS, constants=(1 << 32,))]}, "constants"),
        ({"passes": [replace(PASS, subgroup=4096)]}, "subgroup"),
        ({"checks": [replace(CHECK, atol=float("nan"))]}, "atol"),
        ({"checks": [replace(CHECK, rtol=-1.0)]}, "rtol"),
        ({"checks": [replace(CHECK, shape=(1,) * 9)]}, "shape"),
        ({"kept": ("nobody",)}, "no buffer nobody"),
        ({"passes": [replace(PASS, buffers=("q", "s"))]}, "no buffer s"),
        ({"checks": [replace(CHECK, buffer="s")]}, "no buffer s"),
        ({"buffers": [Q, OUT, OUT]}, "a buffer is there twice"),
        ({"buffers": [replace(Q, blob=None), OUT]}, "is in and has no blob"),
        ({"buffers": [Q, replace(OUT, blob="a" * 64)]}, "is out and has a blob"),
    ],
)
def test_a_case_that_no_runner_could_run_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(WireError, match=says):
        check_batch(replace(BATCH, cases=[replace(JOB, **changes)]), "here")


@pytest.mark.parametrize(
    "url", ["", "blobs", "/etc", "ssh://host/x", "simplecache::s3://x", "file://x::github://y", "local://x"]
)
def test_only_plain_stores_are_opened(url: str) -> None:
    with pytest.raises(WireError, match="blob_store"):
        check_batch(replace(BATCH, blob_store=url), "here")


def test_two_cases_of_one_id_could_not_be_told_apart() -> None:
    with pytest.raises(WireError, match="is there twice"):
        check_batch(replace(BATCH, cases=[JOB, JOB]), "here")
    check_batch(replace(BATCH, canaries=[CanaryJob(JOB, 2.0)]), "here")  # it runs under a name of its own


def test_a_batch_without_an_end_is_refused() -> None:
    with pytest.raises(WireError, match="cases"):
        check_batch(replace(BATCH, cases=[JOB] * 1025), "here")


def test_who_may_be_answered() -> None:
    wrong = replace(JOB, api="metal")
    assert answerable(replace(BATCH, cases=[wrong]))
    assert not answerable(replace(BATCH, run_id="../x"))
    assert not answerable(replace(BATCH, cases=[replace(wrong, case_id="a/b")]))


words = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=100), st.from_regex(r"[A-Za-z0-9_][\w.-]{0,90}"))
whole = st.one_of(st.integers(), st.integers(0, 100))


@quick
@given(words, words, words, st.lists(whole, min_size=9, max_size=9), st.floats())
def test_any_batch_is_taken_or_refused_by_name(a: str, b: str, c: str, n: list[int], x: float) -> None:
    job = replace(
        JOB,
        case_id=a,
        attempt=n[0],
        buffers=[BufferJob(b, "in", "f32", n[1], c), BufferJob("o", "out", "f16", n[2])],
        passes=[PassJob(c, (n[3], n[4], 1), n[5], (b, "o"), constants=(n[6],), values=(n[7],))],
        checks=[CheckJob("o", c, x, x, x)],
        deadline_ms=n[8],
    )
    asked = replace(BATCH, run_id=c, cases=[job])
    if problem := refusal(asked):
        assert problem.startswith("here: ")
        assert len(problem) < 500
    else:
        assert all(is_word(word) for word in (a, b, c))


def refusal(batch: Batch) -> str:
    try:
        check_batch(batch, "here")
    except WireError as e:
        return str(e)
    return ""
