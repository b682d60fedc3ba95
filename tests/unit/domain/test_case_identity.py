"""``case_id`` is identity and nothing else."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.wire import decode, encode, from_json, to_json
from tests.unit.domain.strategies import axis_values, cases, points, quick


def shuffled(values: dict[str, AxisValue]) -> dict[str, AxisValue]:
    return dict(reversed(values.items()))


@quick
@given(cases)
def test_order_of_keys_does_not_matter(case: Case) -> None:
    other = replace(case, workload=shuffled(case.workload), axes=shuffled(case.axes))
    assert other.case_id == case.case_id
    assert other.workload_id == case.workload_id


@quick
@given(cases)
def test_identity_survives_the_wire(case: Case) -> None:
    """True, 1 and "1" are three values: none may turn into another on its way through JSON."""
    assert from_json(Case, to_json(case), "test").case_id == case.case_id
    assert decode(Case, encode(case), "test").case_id == case.case_id


@quick
@given(cases, st.sampled_from(["workload", "axes"]), axis_values)
def test_every_other_value_is_another_case(case: Case, where: str, value: AxisValue) -> None:
    values: dict[str, AxisValue] = getattr(case, where)
    changed = replace(case, **{where: values | {"extra": value}})
    assert changed.case_id != case.case_id
    assert (changed.workload_id == case.workload_id) == (where == "axes")


@quick
@given(cases, points)
def test_equal_ids_mean_equal_cases(case: Case, axes: dict[str, AxisValue]) -> None:
    """Types count: ``causal: true`` is not ``causal: 1``."""
    other = replace(case, axes=axes)
    same = {k: (type(v), v) for k, v in axes.items()} == {k: (type(v), v) for k, v in case.axes.items()}
    assert (other.case_id == case.case_id) == same


def test_true_one_and_text_differ() -> None:
    ids = {Case("k", "op", {"n": v}, {}).case_id for v in (True, 1, "1", "true", "True")}
    assert len(ids) == 5


def test_each_field_is_identity_and_no_field_is_metadata() -> None:
    """A field that is added later is either hashed or belongs elsewhere: driver, OS, host are not here."""
    case = Case("k", "op", {"n": 1}, {"tile": "8x8"})
    changes: dict[str, object] = {
        "kernel": "other",
        "op": "other",
        "workload": {"n": 2},
        "axes": {"tile": "16x16"},
        "inputs": "other",
        "seed": 2,
    }
    assert {f.name for f in fields(Case)} == set(changes)
    ids = {replace(case, **{name: value}).case_id for name, value in changes.items()}
    assert len(ids) == len(changes)
    assert case.case_id not in ids


def test_ids_stay_what_they_are() -> None:
    """Recorded once: another value here orphans the history of every series."""
    case = Case("attention_flash", "attention", {"seq": 512, "causal": False}, {"tile": "32x16", "vector": 4})
    assert case.case_id == "bbf766ea3790ae2c"


def test_variants_of_a_workload_share_its_id() -> None:
    flash = Case("attention_flash", "attention", {"seq": 512}, {"tile": "32x16"})
    naive = Case("attention_naive", "attention", {"seq": 512}, {"tile": "16x16", "vector": 1})
    assert flash.workload_id == naive.workload_id
    assert replace(flash, inputs="zeros").workload_id != flash.workload_id
    assert replace(flash, seed=2).workload_id != flash.workload_id


def test_the_label_reads_as_in_yaml() -> None:
    case = Case("k", "op", {"seq": 8, "causal": True}, {"tile": "8x8"})
    assert case.label == "k[tile=8x8] seq=8 causal=true inputs=normal"
    assert case.workload_label == "op seq=8 causal=true inputs=normal"
