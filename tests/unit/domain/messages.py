"""One full value of every kind of message, with every number that JSON cannot say."""

import math
from dataclasses import replace

from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import Batch, BufferJob, CaseJob, CheckJob, PassJob
from orchestrator.domain.results import Excluded, Missing, Pruned
from orchestrator.domain.submission import Service, Submission
from orchestrator.domain.trial import Difference, Element, Sensors
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run_folder import Manifest
from tests.results_fixture import case, device, expectation, mismatching, results, timing, trial

NAN, INF = math.nan, math.inf

JOB = CaseJob(
    case_id="c" * 16,
    attempt=2,
    label="attention_flash[tile=8x8] seq=8 inputs=normal",
    api="gles",
    code_hash="d" * 16,
    buffers=[BufferJob("q", "in", "f16", 64, "a" * 64), BufferJob("o", "out", "f32", 64)],
    passes=[PassJob("b" * 64, (4, 2, 1), 4096, ("q", "o"))],
    checks=[CheckJob("o", "e" * 64, 1e-6, 0.0, INF)],
)
BATCH = Batch("run-1", "b1", "local-1", "memory://blobs", [JOB])
NUMERICS = replace(
    mismatching(64, index=9, got=NAN, ref=-INF, failing=3),
    max_abs=NAN,
    nmse=INF,
    max_rel=-INF,
    ulp_max=412.0,
    ulp_p50=1.0,
    ulp_p99=9.0,
    differs=Difference(3, 4, 40),
    unwritten=2,
    unwritten_first=5,
    first_bad=Element(4, INF, 1.0),
)
TRIAL = replace(
    trial(
        case(),
        "local-1",
        Verdict.MISMATCH,
        reason='<script> \x1b \u202e "é"',
        time=timing(),
        outputs=[NUMERICS],
        log="0:1: \\u00ff",
        recheck="agreed",
    ),
    sensors=Sensors([500_000_000], [41_000], throttled=True),
    tensors={"o": "f" * 64},
)
DEVICE = device(health={"battery": "80 %"}, serial="adb-XXXX (2)._adb-tls-connect._tcp")
RESULTS = replace(
    results(points=[case()], trials=[TRIAL], devices=[DEVICE], expectations=[expectation()]),
    pruned=[Pruned("local-1", "c" * 16, Verdict.UNSUPPORTED, ["shared_bytes 36864 > 16384"])],
    excluded=[Excluded("tile=8x8", 3, "slow", "kernels", "2027-01-01")],
    missing=[Missing("pixel", "", "unauthorized")],
    previous_run="earlier",
)

MESSAGES: list[object] = [
    BATCH,
    TRIAL,
    Registration(DEVICE, "w1", "2026-12-01T01:00:00+00:00", 4711),
    Progress("local-1", "started", "c" * 16, "b1"),
    RESULTS,
    Submission(
        "20261201T010203Z-smoke-4c1f", "smoke", "ann@desk", "nightly", "now", "desk", "s3://b", "a" * 64
    ),
    Service("orchestrator", "host", 4711, "2026-12-01T01:00:00+00:00", "/out"),
    Manifest(RESULTS, {"local-1": [JOB]}, "file:///blobs", "nightly"),
]
