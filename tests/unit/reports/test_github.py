"""Annotations of GitHub Actions: which, at which level, how many, and that no text leaves its place."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.finding import Findings
from orchestrator.domain.gate import FailOn
from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from reports.build import build_report
from reports.machines.github import MAX_EACH, Annotation, commands
from tests.results_fixture import TODAY, case, device, passing, results, trial
from tests.unit.reports.hostile import hostile, hostile_previous
from tests.unit.reports.one_soc import DRIFT, group, night
from tests.unit.reports.sample import sample, sample_previous
from tests.unit.reports.sample_findings import sample_findings

SAMPLE = sample_findings()
NONE: Mapping[str, str] = {}
COMMAND = re.compile(r"::(error|warning|notice) (?:file=([^:,]*),)?title=([^:,]*)::([^\r\n]*)")


def parsed(lines: list[str]) -> list[tuple[str, str, str, str]]:
    """As the runner reads them: level, file, title, message."""

    def read(line: str) -> tuple[str, str, str, str]:
        found = COMMAND.fullmatch(line)
        assert found is not None, line
        level, *rest = (part or "" for part in found.groups())
        title_and_more = [
            p.replace("%2C", ",")
            .replace("%3A", ":")
            .replace("%0A", "\n")
            .replace("%0D", "\r")
            .replace("%25", "%")
            for p in rest
        ]
        file, title, message = title_and_more
        return level, file, title, message

    return [read(line) for line in lines]


def told(
    run: RunResults,
    found: Findings | None = None,
    gate: FailOn | None = None,
    files: Mapping[str, str] = NONE,
) -> list[tuple[str, str, str, str]]:
    return parsed(commands(build_report(run, None, TODAY, findings=found, fail_on=gate), files))


def test_failures_are_errors_by_kernel_and_verdict_with_the_command() -> None:
    found = parsed(
        commands(build_report(sample(), sample_previous(), TODAY), {"attention_flash": "k/f.comp.j2"})
    )
    errors = [a for a in found if a[0] == "error"]
    assert errors
    assert any(
        title.startswith("attention_flash: ") and "mismatch on llvmpipe" in title for _, _, title, _ in errors
    )
    assert all("Repeat: tilefarm run --suite smoke --case " in message for *_, message in errors)
    assert {file for _, file, title, _ in errors if title.startswith("attention_flash:")} == {"k/f.comp.j2"}
    assert found[-1][0] == "notice"
    assert any("Not obtained: " in title for level, _, title, _ in found if level == "warning")


@pytest.mark.parametrize(
    ("gate", "level"), [("wrong", "warning"), ("regressed", "error"), ("never", "warning")]
)
def test_what_makes_the_job_fail_is_an_error_and_the_rest_is_not(gate: FailOn, level: str) -> None:
    found = told(SAMPLE.results, SAMPLE.findings, gate)
    assert {a[0] for a in found if a[2].startswith("Regressed: ")} == {level}
    assert {a[0] for a in found if a[2].startswith("Improved: ")} == {"notice"}
    assert {a[0] for a in found if a[2].startswith("One phone alone regressed: ")} == {"warning"}
    bad = results(trials=[trial(case(), "local-1", Verdict.MISMATCH)], points=[case()])
    (first, *_) = told(bad, gate=gate)
    assert first[0] == ("warning" if gate == "never" else "error")


def test_only_changed_code_names_a_file() -> None:
    files = {"attention_flash": "kernels/attention_flash/flash.comp.j2", "attention_tiled_sgemm": "t"}
    for _, file, title, _ in told(SAMPLE.results, SAMPLE.findings, files=files):
        if title.startswith(("Regressed: ", "Improved: ")) and file:
            assert title.endswith(", code changed")
    assert any(file for _, file, *_ in told(SAMPLE.results, SAMPLE.findings, files=files))


def test_at_most_ten_of_each_level_and_the_last_says_how_many_more() -> None:
    points = [case(f"kernel_{n}", tile="8x8") for n in range(25)]
    run = results(
        trials=[trial(p, "local-1", Verdict.CRASHED, reason="signal 11") for p in points], points=points
    )
    errors = [a for a in told(run) if a[0] == "error"]
    assert len(errors) == MAX_EACH
    assert errors[-1][2] == "16 more"


def test_a_night_without_anything_is_one_notice() -> None:
    run = results(trials=[passing(case(), "local-1")], points=[case()])
    assert told(run) == [
        ("notice", "", "Tilefarm, smoke", "No unexpected failure: 1 of 1 measured trials passed.")
    ]


def test_g4_07_hostile_texts_stay_in_one_line_each() -> None:
    model = build_report(hostile(), hostile_previous(), TODAY, max_slowdown=0.5)
    lines = commands(model, {})
    assert len(parsed(lines)) >= 3
    assert not any(c in line for line in lines for c in "\x1b\x00\u202e\n\r")
    groups = [replace(g, sentence="x\n::error::y", kernel="a,b::c%0A") for g in SAMPLE.findings.groups]
    assert told(SAMPLE.results, replace(SAMPLE.findings, groups=groups))


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_is_one_command(title: str, message: str) -> None:
    (found,) = parsed([Annotation("error", f"t{title}", message).command()])
    assert found[0] == "error"
    assert found[2].startswith("t")


def test_a_variant_that_fails_on_two_phones_is_one_variant() -> None:
    phones = [device(i, name=f"Phone {i}") for i in ("1", "2")]
    wrong = [trial(case(tile=t), i, Verdict.NONDETERMINISTIC) for t in ("8x8", "16x8") for i in ("1", "2")]
    run = results(trials=wrong, points=[case(tile="8x8"), case(tile="16x8")], devices=phones)
    titles = [title for level, _, title, _ in told(run) if level == "error"]
    assert titles == ["attention_flash: 2 variants nondeterministic on Phone 1, Phone 2"]


def test_slow_drift_is_named_as_such() -> None:
    said = "scale on SM8650 since 20 Nov: 1 of 4 variants 2.4 % slower (a slow drift)"
    drift = parsed(commands(night([DRIFT], [group(said, "drift")]), NONE))
    (title,) = [title for _, _, title, _ in drift if "finding" in title]
    assert title == "Regressed: 1 finding, 2.4 % slower, slow drift, neither code nor driver changed"
    assert not any("drift" in title for _, _, title, _ in told(SAMPLE.results, SAMPLE.findings))
