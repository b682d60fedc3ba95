"""Faults as text, and where they strike."""

import pytest

from orchestrator.domain.errors import UsageError
from workers.virtual.faults import Fault, FaultBox, parse_fault


def test_text_form():
    assert parse_fault(r"drop:on=runner run\, now,after=600,times=2") == Fault(
        kind="drop", on="runner run, now", after=600, times=2
    )
    assert parse_fault("unauthorized") == Fault(kind="unauthorized")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("explode", "kind"),
        ("drop:after=x", "after"),
        ("drop:after=-1", "after"),
        ("drop:when=x", "when"),
        ("drop:on=(", "regular expression"),
        ("", "kind"),
    ],
)
def test_errors_name_the_part_and_the_keys(text: str, said: str):
    with pytest.raises(UsageError, match=said) as e:
        parse_fault(text)
    assert "Keys: on, after" in str(e.value)


@pytest.mark.parametrize(
    ("fault", "sent", "data", "passes"),
    [
        ("drop:after=5", b"", b"abc", None),
        ("drop:after=5", b"abc", b"defg", 2),
        ("drop:after=5", b"abcde", b"f", 0),
        ("drop:after=3", b"", b"abc", None),
        ("drop", b"", b"a", 0),
        ("drop:after_text=cd", b"", b"abcdef", 4),
        ("drop:after_text=cd", b"abc", b"def", 1),
        ("drop:after_text=cd", b"abcd", b"xx", None),
        ("drop:after_text=zz", b"abc", b"def", None),
        ("drop:at=exit", b"abc", b"def", None),
    ],
)
def test_how_much_passes(fault: str, sent: bytes, data: bytes, passes: int | None):
    assert parse_fault(fault).passes(sent, data) == passes


def test_a_fault_that_fired_often_enough_is_over():
    box = FaultBox([parse_fault("drop:times=2")])
    for _ in range(2):
        fault = box.find({"drop"}, "any")
        assert fault is not None
        box.fired(fault)
    assert box.find({"drop"}, "any") is None


def test_only_matching_kinds_and_labels_are_found():
    box = FaultBox([parse_fault("drop:on=^sync SEND")])
    assert box.find({"drop"}, "sync SEND /x")
    assert box.find({"drop"}, "shell:echo") is None
    assert box.find({"stall"}, "sync SEND /x") is None
    box.clear()
    assert box.find({"drop"}, "sync SEND /x") is None
