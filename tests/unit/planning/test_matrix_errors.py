"""A wrong matrix.yaml: every fault with its line and a suggestion, all in one go."""

from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.domain.errors import MatrixError
from orchestrator.planning.matrix_reader import load_matrix
from tests.unit.planning.toy import KERNELS, TODAY, load


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(MatrixError) as caught:
        load(folder, text)
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


def block(text: str) -> str:
    """A matrix whose only block starts on line 5."""
    body = "\n".join("        " + line for line in dedent(text).strip().splitlines())
    return f"version: 1\nsuites:\n  smoke:\n    blocks:\n      -{body[7:]}\n"


GOOD_BLOCK = "kernel: attention_toy\nworkloads: [{seq: 8}]\naxes: {tile: 8x8}\n"
WHERE = "suites.smoke.blocks.0"


def test_all_faults_come_in_one_go_in_the_order_of_lines(tmp_path: Path):
    text = """\
        version: 1
        sutes: {}
        suites:
          smoke:
            repeat: 5
            blocks:
              - kernel: attention_toi
              - kernel: attention_toy
                workloads: [{seq: 0}]
                axes: {tile: 16x61}
        excludes:
          - {when: precison=fp32, owner: me, expires: 2027-02-30}
        """
    assert problems(tmp_path, text) == [
        'matrix.yaml:2: sutes: unknown key. Did you mean "suites"?',
        'matrix.yaml:5: suites.smoke.repeat: unknown key. Did you mean "repeats"?',
        'matrix.yaml:7: suites.smoke.blocks.0.kernel: there is no kernel "attention_toi". '
        'Did you mean "attention_toy"?',
        'matrix.yaml:9: suites.smoke.blocks.1.workloads.0.seq: "0" is not a whole number '
        "from 1 to 2147483647.",
        'matrix.yaml:10: suites.smoke.blocks.1.axes.tile: "16x61" is not a value of tile. '
        'Did you mean "16x16"?',
        'matrix.yaml:12: excludes.0: "reason" is missing',
        'matrix.yaml:12: excludes.0.when: column 1 of the expression: unknown axis "precison". '
        'Did you mean "precision"?',
        'matrix.yaml:12: excludes.0.expires: "2027-02-30" is not a date: day is out of range for month',
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("kernel: attention_toy\nworkloads: []\naxes: {tile: 8x8}", "6: {}.workloads: an empty list; leave"),
        (
            "kernel: attention_toy\nworkloads: [{seq: []}]\naxes: {tile: 8x8}",
            "6: {}.workloads.0.seq: an empty",
        ),
        (
            "kernel: attention_toy\naxes: {tile: 8x8}",
            '5: {}.workloads: parameter "seq" of attention_toy is mi',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8}]",
            '5: {}.axes: axis "tile" of attention_toy is missing.',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8, tile: 8x8}]\naxes: {tile: 8x8}",
            '6: {}.workloads.0.tile: attention_toy has no parameter "tile". It belongs under axes.',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8}]\naxes: {tile: 8x8, vectr: 1}",
            '7: {}.axes.vectr: attention_toy has no axis "vectr". Did you mean "vector"?',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8, causal: yes}]\naxes: {tile: 8x8}",
            '6: {}.workloads.0.causal: "yes" is text, and causal takes true or false. Did you mean true?',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8, causal: 1}]\naxes: {tile: 8x8}",
            '6: {}.workloads.0.causal: "1" is not a value of causal. Known: false, true.',
        ),
        (
            'kernel: attention_toy\nworkloads: [{seq: 8, causal: "true"}]\naxes: {tile: 8x8}',
            '6: {}.workloads.0.causal: "true" is text, and causal takes true or false. Did',
        ),
        (
            'kernel: attention_toy\nworkloads: [{seq: "512"}]\naxes: {tile: 8x8}',
            '6: {}.workloads.0.seq: "512" is not a whole number from 1 to 2147483647. Did you',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: true}]\naxes: {tile: 8x8}",
            '6: {}.workloads.0.seq: "true" is',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8.0}]\naxes: {tile: 8x8}",
            '6: {}.workloads.0.seq: "8.0" is',
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: }]\naxes: {tile: 8x8}",
            "6: {}.workloads.0.seq: nothing is not",
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: 8}]\naxes: {tile: [8x8, 16x16, 8x8]}",
            '7: {}.axes.tile.2: "8x8" is listed twice',
        ),
        (
            "kernel: attention_toy\nworkloads: {seq: 8}\naxes: {tile: 8x8}",
            "6: {}.workloads: must be a list, not a mapping",
        ),
        (
            "kernel: attention_toy\nworkloads: [8]\naxes: {tile: 8x8}",
            "6: {}.workloads.0: must be a mapping such as {{seq: …}}",
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: {a: 1}}]\naxes: {tile: 8x8}",
            "6: {}.workloads.0.seq: must be a value or a list of values, not a mapping",
        ),
        (
            "kernel: attention_toy\nworkloads: [{seq: [[8]]}]\naxes: {tile: 8x8}",
            "6: {}.workloads.0.seq.0: must be a value, not a list",
        ),
        (
            GOOD_BLOCK + "inputs: [normal, n6_one_kex]",
            '8: {}.inputs.1: "n6_one_kex" is not a value of inputs. Did',
        ),
        (GOOD_BLOCK + "seeds: -1", '8: {}.seeds: "-1" is not a whole number'),
        (GOOD_BLOCK + "seed: 1", '8: {}.seed: unknown key. Did you mean "seeds"?'),
        ("kernel: 5", '5: {}.kernel: must be text, not the number 5. Write "5" in quotes.'),
        ("name: x", '5: {}: "kernel" is missing'),
        (GOOD_BLOCK + "excludes: [{}]", '8: {}.excludes.0: "when" is missing'),
        (
            GOOD_BLOCK + 'excludes: [{when: "seq>=", reason: r, owner: o, expires: 2027-01-01}]',
            '8: {}.excludes.0.when: column 6 of the expression: the end where a value for "seq" was expected',
        ),
    ],
)
def test_a_wrong_block(tmp_path: Path, body: str, expected: str):
    found = problems(tmp_path, block(body))
    wanted = "matrix.yaml:" + expected.format(WHERE)
    assert any(p.startswith(wanted) for p in found), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: must be a mapping, not nothing"),
        ("# nothing\n", "1: must be a mapping, not nothing"),
        ("- a\n- b\n", "1: must be a mapping, not a list"),
        ("version: 1\n", '1: "suites" is missing'),
        ("suites: {}\n", '1: "version" is missing'),
        (
            "version: 2\nsuites: {s: {blocks: [{kernel: copy_probe}]}}\n",
            "1: version: version 2; this Tilefarm",
        ),
        ("version: 1\nsuites:\n", "2: suites: must be a mapping of suite names to suites, not nothing"),
        (
            "version: 1\nsuites: {}\n",
            "2: suites: must be a mapping of suite names to suites, not an empty one",
        ),
        ("version: 1\nsuites:\n  s:\n", "3: suites.s: must be a mapping, not nothing"),
        ("version: 1\nsuites:\n  s: {}\n", '3: suites.s: "blocks" is missing'),
        ("version: 1\nsuites:\n  s: {blocks: []}\n", "3: suites.s.blocks: an empty list"),
        (
            "version: 1\nsuites:\n  a/b: {blocks: [{kernel: copy_probe}]}\n",
            '3: suites."a/b": a suite\'s name',
        ),
        ("version: 1\nversion: 1\nsuites: {}\n", "2: version: given twice, first on line 1. Remove one"),
        (
            "version: 1\nsuites:\n  s: {blocks: [{kernel: copy_probe}], repeats: yes}\n",
            '3: suites.s.repeats: must be a whole number from 1 to 10000, not text "yes"',
        ),
        (
            "version: 1\nsuites:\n  s: {blocks: [{kernel: copy_probe}], repeats: true}\n",
            "3: suites.s.repeats: must be a whole number from 1 to 10000, not true",
        ),
        (
            "version: 1\nsuites:\n  s: {blocks: [{kernel: copy_probe}], budget: 3}\n",
            "3: suites.s.budget: must be a mapping, not the number 3",
        ),
        (
            "version: 1\nsuites:\n  s: {blocks: [{kernel: copy_probe}], budget: {minutes: 0}}\n",
            "3: suites.s.budget.minutes: must be a number above 0 and up to 10080, not the number 0",
        ),
        (
            "version: 1\nsuites:\n  s:\n    blocks:\n      - {kernel: copy_probe}\n    blocks: []\n",
            "6: suites.s.blocks: given twice, first on line 4",
        ),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, expected: str):
    found = problems(tmp_path, text)
    assert any(p.startswith(f"matrix.yaml:{expected}") for p in found), found


EXPECTATION = """\
version: 1
suites: {{s: {{blocks: [{{kernel: copy_probe}}]}}}}
expectations:
  - {{soc: "*", driver: "*", {}}}
"""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            "when: copy_probe, verdict: mismatch, owner: o, expires: 2027-01-01",
            '4: expectations.0: "reason" is missing',
        ),
        (
            "when: copy_probe, verdict: mismach, reason: r, owner: o, expires: 2027-01-01",
            '4: expectations.0.verdict: "mismach" is not a known failure. Did you mean "mismatch"?',
        ),
        (
            "when: copy_probe, verdict: pass, reason: r, owner: o, expires: 2027-01-01",
            '4: expectations.0.verdict: "pass" is not a known failure.',
        ),
        (
            'when: copy_probe, verdict: hung, reason: r, owner: "", expires: 2027-01-01',
            "4: expectations.0.owner: must be text, not empty text",
        ),
        (
            "when: copy_probe, verdict: hung, reason: r, owner: o, expires: soon",
            '4: expectations.0.expires: must be a date such as 2027-06-30, not text "soon"',
        ),
        (
            "when: copy_probe, reason: r, owner: o, expires: 2027-01-01",
            "4: expectations.0: say what is expected: verdict, flakes or slow",
        ),
        (
            "when: copy_probe, verdict: hung, slow: 1.1, reason: r, owner: o, expires: 2027-01-01",
            "4: expectations.0.slow: an entry with verdict already says what is expected; write two entries",
        ),
        (
            "when: copy_probe, slow: 0.9, reason: r, owner: o, expires: 2027-01-01",
            "4: expectations.0.slow: must be a number above 1 and up to 10, not the number 0.9",
        ),
        (
            "when: copy_probe, flakes: often, reason: r, owner: o, expires: 2027-01-01",
            '4: expectations.0.flakes: must be a mapping, not text "often"',
        ),
        (
            "when: copy_probe, flakes: {replays: 1}, reason: r, owner: o, expires: 2027-01-01",
            "4: expectations.0.flakes.replays: must be a whole number from 2 to 100000, not the number 1",
        ),
        (
            "when: copy_prob, verdict: hung, reason: r, owner: o, expires: 2027-01-01",
            '4: expectations.0.when: column 1 of the expression: no kernel or input is named "copy_prob".',
        ),
    ],
)
def test_a_wrong_expectation(tmp_path: Path, fields: str, expected: str):
    found = problems(tmp_path, EXPECTATION.format(fields))
    assert any(p.startswith(f"matrix.yaml:{expected}") for p in found), found


def test_a_slip_that_asks_for_billions_of_points_is_refused(tmp_path: Path):
    numbers = ", ".join(map(str, range(1, 301)))
    text = block(
        "kernel: attention_toy\naxes: {tile: 8x8}\n"
        f"workloads: [{{seq: [{numbers}], head_dim: [{numbers}], heads: [{numbers}]}}]\n"
    )
    assert problems(tmp_path, text) == [
        "matrix.yaml:3: suites.smoke: 27000000 points, more than 5000000; "
        "split the suite or list fewer values"
    ]


def test_a_missing_file_says_what_to_do(tmp_path: Path):
    with pytest.raises(MatrixError, match=r"nowhere\.yaml: cannot be read: No such file.*--matrix"):
        load_matrix(tmp_path / "nowhere.yaml", KERNELS, TODAY)


def test_a_folder_instead_of_a_file_is_an_error(tmp_path: Path):
    with pytest.raises(MatrixError, match="cannot be read"):
        load_matrix(tmp_path, KERNELS, TODAY)
