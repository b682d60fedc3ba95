"""The selection language: what it selects, and how precisely it complains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.expression import MAX_DEPTH, SelectionError
from orchestrator.planning.select import compile_selection
from orchestrator.planning.vocabulary import Vocabulary
from tests.unit.planning.toy import KERNELS

KNOWN = Vocabulary.of(KERNELS.values())


def case(kernel: str = "attention_toy", *, inputs: str = "normal", **values: AxisValue) -> Case:
    workload: dict[str, AxisValue] = {"seq": 512, "causal": True}
    axes: dict[str, AxisValue] = {"precision": "fp32", "tile": "16x16", "vector": 4}
    for name, value in values.items():
        (workload if name in workload else axes)[name] = value
    return Case(kernel, kernel.split("_")[0], workload, axes, inputs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("attention_toy", True),
        ("copy_probe", False),
        ("attention_*", True),
        ("*_probe", False),
        ("normal", True),
        ("n6_one_key", False),
        ("attention_toy and precision=fp32", True),
        ("attention_toy and precision=fp16_storage", False),
        ("copy_probe or tile=16x16", True),
        ("not copy_probe", True),
        ("not not copy_probe", False),
        ("not (copy_probe or tile=16x16)", False),
        ("not copy_probe and not tile=16x16", False),
        ("copy_probe and tile=16x16 or vector=4", True),
        ("copy_probe and (tile=16x16 or vector=4)", False),
        ("tile==16x16", True),
        ("tile != 16x16", False),
        ("tile!=8x8", True),
        ("tile=16x*", True),
        ("tile!=16x*", False),
        ("tile in (8x8, 16x16)", True),
        ("tile in (8x8,32x16)", False),
        ("tile not in (8x8,32x16)", True),
        ("tile in ('8x8', \"16x16\")", True),
        ("causal=true", True),
        ("causal=false", False),
        ("causal!=false", True),
        ("vector=4", True),
        ("vector=1", False),
        ("vector in (1, 4)", True),
        ("seq>=512", True),
        ("seq>512", False),
        ("seq<=512", True),
        ("seq < 513", True),
        ("seq=512 and seq!=511", True),
        ("kernel=attention_toy and op=attention and inputs=normal and seed=1", True),
        ("seed>1", False),
    ],
)
def test_what_an_expression_selects(text: str, expected: bool):
    assert compile_selection(text, KNOWN)(case()) is expected


def test_a_bracket_is_no_character_class():
    assert compile_selection("tile=[1]*")(case(tile="16x16")) is False
    assert compile_selection("tile=[1]*")(case(tile="[1]6")) is True


def test_a_case_id_selects_that_case():
    assert compile_selection(f"case={case().case_id}", KNOWN)(case()) is True
    assert compile_selection(f"case={case().case_id}", KNOWN)(case(vector=1)) is False


def test_one_and_true_are_different_values():
    assert compile_selection("vector=1")(case(vector=True)) is False
    assert compile_selection("vector=true")(case(vector=1)) is False
    assert compile_selection("vector>0")(case(vector=True)) is False
    assert compile_selection("vector=true")(case(vector=True)) is True


def test_a_name_that_the_case_lacks_is_never_true():
    probe = Case("copy_probe", "copy", {}, {"api": "gles"})
    for text in ("tile=8x8", "tile!=8x8", "tile in (8x8, 16x16)", "seq>0", "seq<=0"):
        assert compile_selection(text, KNOWN)(probe) is False


def test_numbers_that_are_written_as_text_compare_as_text():
    assert compile_selection("lanes=4")(case(lanes="4")) is True
    assert compile_selection("lanes>3")(case(lanes="4")) is False


@pytest.mark.parametrize(
    ("text", "what", "column"),
    [
        ("precison=fp32", 'unknown axis "precison". Did you mean "precision"?', 0),
        ("attention_toy and tile=16x61", '"16x61" is not a value of tile. Did you mean "16x16"?', 23),
        ("tile in (8x8, 9x9)", '"9x9" is not a value of tile. Known: 128x16, 16x16, 32x16, 8x8.', 14),
        ("attention_tou", 'no kernel or input is named "attention_tou". Did you mean "attention_toy"?', 0),
        ("atention_*", 'no kernel is named like "atention_*". Known: attention_toy, copy_probe.', 0),
        ("causal", '"causal" needs a value, such as causal=false', 0),
        ("seq", '"seq" needs a value, such as seq=512', 0),
        ("attention", '"attention" is an op; write op=attention', 0),
        ("tile>8", '"tile" holds no numbers; ">" needs them. Use "=", "!=" or "in"', 0),
        ("seq>=many", '"many" is not a whole number', 5),
        ("seq=007", '"007" is not a whole number.', 4),
        ("seq=", 'the end where a value for "seq" was expected', 4),
        ("seq >= and vector=1", '"and" where a value for "seq" was expected', 7),
        ("", "an empty expression; leave it out to select everything", 0),
        ("   ", "an empty expression; leave it out to select everything", 0),
        ("attention_toy and", "the end where a kernel, an input or an axis was expected", 17),
        ("attention_toy tile=8x8", '"tile" where "and" or "or" was expected', 14),
        ("attention_toy && tile=8x8", '"&&" where "and" or "or" was expected', 14),
        ("attention_toy AND tile=8x8", '"AND" where "and" or "or" was expected', 14),
        ("(attention_toy", '"(" without ")"', 0),
        ("attention_toy)", '")" without "("', 13),
        ("tile in 8x8", '"in" needs a list: in (a, b)', 8),
        ("tile in (8x8", 'the list of "in" has no ")"', 12),
        ("tile in ()", '")" where a value for "tile" was expected', 9),
        ("tile='8x8", "a quote that never ends", 5),
        ("!attention_toy", 'unexpected "!". Write "not".', 0),
        ("attention_toy not copy_probe", '"not" where "and" or "or" was expected', 14),
        ("(" * 200 + "normal", f"nested more than {MAX_DEPTH} deep", MAX_DEPTH),
        ("not " * 200 + "normal", f"nested more than {MAX_DEPTH} deep", 4 * MAX_DEPTH),
        ("x" * 5_000, "5000 characters, more than 4096", 0),
    ],
)
def test_a_wrong_expression_names_the_column(text: str, what: str, column: int):
    with pytest.raises(SelectionError) as caught:
        compile_selection(text, KNOWN)
    assert [(f.what, f.at) for f in caught.value.faults] == [(what, column)]
    assert caught.value.exit_code == 2


def test_all_unknown_words_come_at_once_with_carets():
    with pytest.raises(SelectionError) as caught:
        compile_selection("precison=fp32 and tile=9x9", KNOWN)
    assert str(caught.value) == (
        '-k: unknown axis "precison". Did you mean "precision"?\n'
        "  precison=fp32 and tile=9x9\n"
        "  ^\n"
        '-k: "9x9" is not a value of tile. Known: 128x16, 16x16, 32x16, 8x8.\n'
        "  precison=fp32 and tile=9x9\n"
        "                         ^"
    )


def test_control_characters_are_not_printed():
    with pytest.raises(SelectionError) as caught:
        compile_selection("\x1b[31m\u202e", KNOWN)
    assert all(c == "\n" or c.isprintable() for c in str(caught.value))


def test_without_a_vocabulary_unknown_words_just_select_nothing():
    assert compile_selection("gone_kernel or gone=1")(case()) is False


def test_a_long_chain_is_no_deep_recursion():
    text = " or ".join(["vector=1"] * 300) + " or vector=4"
    assert compile_selection(text)(case()) is True


ATOMS = {
    "vector=1": False,
    "vector=4": True,
    "seq>=512": True,
    "copy_probe": False,
    "tile in (8x8, 16x16)": True,
}
Formula = tuple[str, bool]


def _not(inner: Formula) -> Formula:
    return f"not ({inner[0]})", not inner[1]


def _and(pair: tuple[Formula, Formula]) -> Formula:
    return f"({pair[0][0]}) and ({pair[1][0]})", pair[0][1] and pair[1][1]


def _or(pair: tuple[Formula, Formula]) -> Formula:
    return f"({pair[0][0]}) or ({pair[1][0]})", pair[0][1] or pair[1][1]


def _grown(parts: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    pairs = st.tuples(parts, parts)
    return st.one_of(parts.map(_not), pairs.map(_and), pairs.map(_or))


FORMULAS = st.recursive(st.sampled_from(sorted(ATOMS.items())), _grown, max_leaves=12)


@given(FORMULAS)
def test_logic_is_that_of_python(formula: Formula):
    text, expected = formula
    assert compile_selection(text, KNOWN)(case()) is expected


@given(st.text(alphabet="ab=!<>(), \"'*andorti", max_size=40))
def test_any_text_compiles_or_is_one_selection_error(text: str):
    try:
        result = compile_selection(text)(case())
    except SelectionError:
        result = False
    assert result in (True, False)
