"""Options that are wrong end before a device is opened."""

import pytest

from orchestrator.cli import new_run
from orchestrator.cli import plan as plan_module
from orchestrator.cli.selection import with_cases
from orchestrator.domain.errors import UsageError
from tests.unit.cli.conftest import Invoke


@pytest.mark.parametrize("factor", ["1", "0.5", "-3", "nan", "inf"])
@pytest.mark.parametrize("command", [("run",), ("report",), ("compare", "a", "b")])
def test_a_bound_that_is_no_slowdown_is_refused_alike(
    command: tuple[str, ...], factor: str, invoke: Invoke
) -> None:
    done = invoke(*command, "--max-slowdown", factor)
    assert isinstance(done.exception, UsageError)
    assert "a factor above 1" in str(done.exception)


@pytest.mark.parametrize("words", [("-k", "seq=33"), ("--case", "0" * 16), ("--set", "tile=8x8")])
@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_part_of_a_suite_cannot_fail_on_the_history(
    command: str, words: tuple[str, ...], invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEFARM_BROKER", "redis://127.0.0.1:1/0")
    done = invoke(command, *words, "--fail-on", "regressed")
    assert isinstance(done.exception, UsageError)
    assert "--fail-on regressed: only whole suites" in str(done.exception)


def test_fail_on_takes_three_words(invoke: Invoke) -> None:
    done = invoke("report", "--fail-on", "anything")
    assert done.exit_code == 2
    assert all(word in done.output for word in ("wrong", "regressed", "never"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-k", "sq=33"), 'unknown axis "sq"'),
        (("-k", "seq=33 and seq=34"), "no case that -k"),
        (("--set", "tyle=8x8"), "--set tyle"),
        (("--case", "x) or (seq=33"), "no case id"),
        (("--case", "0123456789ABCDEF"), "no case id"),
        (("--case", "0123456789abcdef"), "no case that -k"),
        (("-k", "seq=33) or (seq=40", "--case", "0123456789abcdef"), "-k: "),
        (("--suite", "smok"), 'Did you mean "smoke"'),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_wrong_selection_opens_no_device(
    command: str, words: tuple[str, ...], said: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a device was opened")

    monkeypatch.setattr(new_run, "open_fleet", opened)
    monkeypatch.setattr(plan_module, "open_fleet", opened)
    done = invoke(command, *words)
    assert isinstance(done.exception, UsageError), done.exception
    assert said in str(done.exception)


def test_case_ids_join_a_selection() -> None:
    one, other = "0" * 16, "f" * 16
    assert with_cases(None, [one, other]) == f"case in ({one}, {other})"
    assert with_cases("a or b", [one]) == f"(a or b) and case in ({one})"
    assert with_cases("a", None) == "a"
