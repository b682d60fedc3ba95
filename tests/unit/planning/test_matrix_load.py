"""A right matrix.yaml: what it means once it is read."""

from datetime import date
from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.matrix import Sampling
from tests.unit.planning.toy import load

FULL = """\
    version: 1
    suites:
      smoke:
        description: minutes
        repeats: 5
        warmup: 2
        warmup_ms: 300
        replays: 3
        deadline_s: 20
        budget: {minutes: 1.5}
        blocks:
          - name: main
            kernel: attention_toy
            workloads:
              - {seq: [128, 256], head_dim: 64}
              - {seq: 9, causal: [false, true]}
            axes:
              tile: [16x16, 32x16]
              precision: fp16_storage
            inputs: [normal, n1_logit_151]
            seeds: [1, 2]
            excludes:
              - {when: seq=256 and tile=16x16, reason: too slow, owner: kernels, expires: 2027-01-31}
          - kernel: copy_probe
    excludes:
      - when: "attention_*  and seq=9"
        reason: not now
        owner: kernels
        expires: 2027-02-28
    expectations:
      - when: vector=1
        verdict: mismatch
        soc: "*"
        driver: "*llvmpipe*"
        reason: loop limit
        owner: kernels
        expires: 2027-06-30
    """


def test_everything_that_the_file_says_is_in_the_matrix(tmp_path: Path):
    matrix = load(tmp_path, FULL)
    suite = matrix.suite("smoke")
    assert suite.description == "minutes"
    assert (suite.sampling.repeats, suite.sampling.warmup, suite.sampling.replays) == (5, 2, 3)
    assert (suite.sampling.deadline_s, suite.budget_s, suite.sampling.warmup_ms) == (20, 90.0, 300)
    main, probe = suite.blocks
    assert main.name == "main"
    assert (main.kernel, main.op, main.line) == ("attention_toy", "attention", 12)
    assert main.inputs == ("normal", "n1_logit_151")
    assert main.seeds == (1, 2)
    assert main.excludes[0].expires == date(2027, 1, 31)
    assert probe.workloads == ({},)
    assert matrix.excludes[0].when == "attention_* and seq=9"
    (expectation,) = matrix.expectations
    assert expectation.verdict is Verdict.MISMATCH
    assert expectation.line == 31
    assert expectation.covers_device("SM8650", "llvmpipe (LLVM 15)") is True
    assert expectation.covers_device("SM8650", "Adreno 750") is False
    assert matrix.warnings == ()


def test_defaults_are_filled_in_the_kernel_order(tmp_path: Path):
    block = load(tmp_path, FULL).suite("smoke").blocks[0]
    assert list(block.workloads[1].items()) == [
        ("seq", (9,)),
        ("kv_seq", ("seq",)),
        ("head_dim", (64,)),
        ("heads", (1,)),
        ("kv_heads", ("heads",)),
        ("causal", (False, True)),
    ]
    assert list(block.axes) == ["api", "precision", "tile", "vector"]
    assert block.axes["vector"] == (4,)
    assert block.linked == {"kv_seq", "kv_heads"}


def test_without_numbers_a_suite_has_the_documented_defaults(tmp_path: Path):
    text = "version: 1\nsuites: {s: {blocks: [{kernel: copy_probe}]}}\n"
    suite = load(tmp_path, text).suite("s")
    assert suite.sampling == Sampling(10, 1, 1, 0, 0, deadline_s=30)
    assert suite.budget_s is None
    assert (suite.blocks[0].inputs, suite.blocks[0].seeds) == (("normal",), (1,))


def test_a_block_may_say_from_what_size_a_change_matters(tmp_path: Path):
    blocks = "[{kernel: copy_probe}, {kernel: copy_probe, min_effect: 5%}]"
    text = f"version: 1\nsuites: {{s: {{min_effect: 3 %, blocks: {blocks}}}}}\n"
    suite = load(tmp_path, text).suite("s")
    assert [suite.sampling_of(block).min_effect for block in suite.blocks] == [0.03, 0.05]


def test_an_anchor_may_stand_for_a_whole_value(tmp_path: Path):
    text = """\
        version: 1
        suites:
          a:
            blocks:
              - {kernel: attention_toy, workloads: [{seq: 8}], axes: &axes {tile: [8x8, 16x16]}}
          b:
            blocks:
              - {kernel: attention_toy, workloads: [{seq: 16}], axes: *axes}
        """
    assert load(tmp_path, text).suite("b").blocks[0].axes["tile"] == ("8x8", "16x16")


def test_expired_excludes_and_expectations_are_out_of_force_and_reported(tmp_path: Path):
    matrix = load(tmp_path, FULL, today=date(2027, 7, 1))
    assert matrix.excludes == ()
    assert matrix.expectations == ()
    assert matrix.suite("smoke").blocks[0].excludes == ()
    assert matrix.warnings == (
        "matrix.yaml:23: suites.smoke.blocks.0.excludes.0: expired on 2027-01-31; its points run again. "
        'Remove it, or have "kernels" set a new date',
        "matrix.yaml:29: excludes.0: expired on 2027-02-28; its points run again. "
        'Remove it, or have "kernels" set a new date',
        "matrix.yaml:37: expectations.0: expired on 2027-06-30; a failure counts as one again. "
        'Remove it, or have "kernels" set a new date',
    )


def test_the_last_day_still_counts(tmp_path: Path):
    matrix = load(tmp_path, FULL, today=date(2027, 2, 28))
    assert len(matrix.excludes) == 1
    assert len(matrix.warnings) == 1


def test_an_unknown_suite_names_its_neighbours(tmp_path: Path):
    with pytest.raises(UsageError, match=r'there is no suite "smok"\. Did you mean "smoke"\?'):
        load(tmp_path, FULL).suite("smok")


def test_an_expectation_is_a_failure_a_flake_or_a_slowness(tmp_path: Path):
    notes = 'soc: "*", driver: "*", reason: r, owner: o, expires: 2027-06-30'
    matrix = load(
        tmp_path,
        f"""
version: 1
suites: {{s: {{blocks: [{{kernel: copy_probe}}]}}}}
expectations:
  - {{when: copy_probe, verdict: hung, {notes}}}
  - {{when: copy_probe, flakes: {{}}, {notes}}}
  - {{when: copy_probe, flakes: {{replays: 12, nights: 5}}, {notes}}}
  - {{when: copy_probe, slow: 1.10, {notes}}}
""",
    )
    assert [(e.kind, e.verdict.value, e.replays, e.nights, e.slower) for e in matrix.expectations] == [
        ("fails", "hung", 0, 0, 0.0),
        ("flakes", "nondeterministic", 59, 14, 0.0),
        ("flakes", "nondeterministic", 12, 5, 0.0),
        ("slow", "pass", 0, 0, 1.1),
    ]
