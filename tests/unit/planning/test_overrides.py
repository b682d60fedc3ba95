"""``--set``: what is replaced where, and what is refused."""

from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.planning.expand import expand_blocks
from orchestrator.planning.matrix import Suite
from orchestrator.planning.overrides import Override, apply_overrides, parse_override
from tests.unit.planning.toy import KERNELS, load

TEXT = """\
    version: 1
    suites:
      s:
        blocks:
          - kernel: attention_toy
            workloads: [{seq: 8}, {seq: 16, causal: true}]
            axes: {tile: 8x8}
          - kernel: copy_probe
            axes: {vector: 1}
    """


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load(tmp_path, TEXT).suite("s")


def changed(suite: Suite, *texts: str) -> tuple[Suite, list[str]]:
    return apply_overrides(suite, [parse_override(t) for t in texts], KERNELS)


def test_an_axis_is_replaced_in_the_blocks_that_have_it(suite: Suite):
    new, notes = changed(suite, "tile=16x16,32x16")
    assert new.blocks[0].axes["tile"] == ("16x16", "32x16")
    assert new.blocks[1] == suite.blocks[1]
    assert notes == []


def test_a_parameter_is_replaced_in_every_workload(suite: Suite):
    new, _ = changed(suite, "seq=33", "causal=false")
    assert [(w["seq"], w["causal"]) for w in new.blocks[0].workloads] == [((33,), (False,))] * 2
    assert len(list(expand_blocks(new))) == 2, "equal workloads collapse"


def test_inputs_and_seeds_are_replaced(suite: Suite):
    new, _ = changed(suite, "inputs=n1_logit_151,normal", "seed=3,4")
    assert new.blocks[0].inputs == ("n1_logit_151", "normal")
    assert new.blocks[0].seeds == (3, 4)


def test_a_linked_parameter_takes_a_number_or_its_word(suite: Suite):
    new, _ = changed(suite, "kv_seq=5,seq")
    attention = [c for c, _ in expand_blocks(new) if c.kernel == "attention_toy"]
    assert [c.workload["kv_seq"] for c in attention] == [5, 8, 5, 16]


def test_a_block_keeps_the_values_that_its_kernel_allows(suite: Suite):
    new, notes = changed(suite, "vector=1,4")
    assert [b.axes["vector"] for b in new.blocks] == [(1, 4), (1,)]
    assert notes == ["--set vector: copy_probe does not take 4; left out there (suites.s.blocks.1)"]


def test_a_block_whose_kernel_allows_none_of_the_values_is_left_out(suite: Suite):
    new, notes = changed(suite, "vector=4")
    assert [b.kernel for b in new.blocks] == ["attention_toy"]
    assert notes == ["--set vector: copy_probe does not take 4; block left out (suites.s.blocks.1)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tile", '--set "tile": write NAME=VALUE or NAME=VALUE,VALUE, such as --set tile=16x16'),
        ("=8", '--set "=8": write NAME=VALUE or NAME=VALUE,VALUE, such as --set tile=16x16'),
        ("tile=", '--set "tile=": write NAME=VALUE or NAME=VALUE,VALUE, such as --set tile=16x16'),
        ("tile=8x8,", '--set "tile=8x8,": write NAME=VALUE or NAME=VALUE,VALUE, such as --set tile=16x16'),
        ("tile=8x8,8x8", '--set "tile=8x8,8x8": a value is listed twice'),
        ("tiel=8x8", '--set tiel: no block of suite s has it. Did you mean "tile"?'),
        ("tile=8x9", '--set tile: "8x9" is not a value of tile. Did you mean "8x8"?'),
        ("causal=yes", '--set causal: "yes" is text, and causal takes true or false. Did you mean true?'),
        ("vector=3", '--set vector: "3" is not a value of vector. Known: 1, 2, 4.'),
        ("seq=0", '--set seq: "0" is not a whole number from 1 to 2147483647.'),
        ("seq=99999999999", '--set seq: "99999999999" is not a whole number from 1 to 2147483647.'),
        ("inputs=norml", '--set inputs: "norml" is not a value of inputs. Did you mean "normal"?'),
    ],
)
def test_a_wrong_override_is_a_usage_error(suite: Suite, text: str, message: str):
    with pytest.raises(UsageError) as caught:
        changed(suite, text)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


def test_blanks_around_names_and_values_do_not_count():
    assert parse_override(" tile = 8x8 , 16x16 ") == Override("tile", ("8x8", "16x16"))
