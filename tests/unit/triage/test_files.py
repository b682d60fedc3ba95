"""Files of decisions: what is written is read again, one decision is always the same text, git merges them,
and whatever an editor or a merge left behind is an error with its line."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.finding import TriageState
from orchestrator.triage.decision import Decision, Subject
from orchestrator.triage.folder import TriageError, TriageFolder, by_finding
from orchestrator.triage.reader import MAX_BYTES, read_decision
from orchestrator.triage.writer import file_text

ID = "0c1d2e3f4a5b6c7d"
OTHER = "1111111111111111"
DECIDED = "2026-12-02T09:14:00+00:00"


def subject(
    finding_id: str = ID, soc: str = "SM8650", case: str = "flash fp16 64x16", **more: str
) -> Subject:
    return Subject(
        finding_id=finding_id,
        soc=soc,
        what=more.get("what", "regressed"),
        case_id="a7fb73a0d49e703b",
        case=case,
        device=more.get("device", ""),
        effect="6.1 % slower",
        since="20261128T010000Z-nightly-9a0b",
    )


def decision(*subjects: Subject, state: TriageState = "acknowledged", **more: str) -> Decision:
    return Decision(
        state=state,
        owner="ana",
        about="all fp16 variants on SM8650",
        run="20261201T010000Z-nightly-4c1f",
        decided=more.get("decided", DECIDED),
        subjects=subjects or (subject(),),
        note=more.get("note", ""),
        link=more.get("link", ""),
        expires="2027-01-31" if state in ("acknowledged", "noise") else "",
    )


def read(text: str) -> Decision:
    found, problems = read_decision(text.encode())
    assert problems == []
    assert found is not None
    return replace(found, subjects=tuple(replace(s, line=0) for s in found.subjects))


def problems_of(text: str) -> list[str]:
    _, problems = read_decision(text.encode())
    return [p.render("x.yaml") for p in sorted(problems, key=lambda p: p.line)]


@pytest.mark.parametrize(
    "written",
    [
        decision(note='who said "yes: #1"?', link="https://example.org/7"),
        decision(subject(device="pixel-8-0a1b"), state="accepted"),
        decision(subject(what="nondeterministic"), state="noise"),
        decision(state="fixed"),
        decision(state="new"),
        replace(decision(), expires=""),
    ],
)
def test_what_is_written_is_read_again(written: Decision) -> None:
    assert read(file_text("nightly", written)) == written


@given(st.text(), st.text(), st.text())
def test_any_text_survives_as_one_printable_line(note: str, case: str, soc: str) -> None:
    text = file_text("nightly", decision(subject(case=case, soc=f"SoC {soc}"), note=note))
    found = read(text)
    assert file_text("nightly", found) == text
    assert all(line.isprintable() for line in text.split("\n"))
    assert (found.state, found.subjects[0].finding_id) == ("acknowledged", ID)


@pytest.mark.parametrize(
    "word", ["true", "null", "yes", "1e5", "2026-12-01", "~", "- a", "a: b", "#x", "*a", "a, b", "{a}"]
)
def test_words_that_yaml_would_take_for_something_else_stay_words(word: str) -> None:
    found = read(file_text("nightly", decision(subject(case=word), note=word)))
    assert (found.note, found.subjects[0].case) == (word, word)


def test_the_order_of_findings_changes_no_byte() -> None:
    one, two = subject(ID), subject(OTHER, soc="MT6989")
    assert file_text("nightly", decision(one, two)) == file_text("nightly", decision(two, one))


GOOD = file_text("nightly", decision())
WHERE = f"findings.{ID}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "state: acknowledged",
            "state: acknowleged",
            ':3: state: "acknowleged" is not a state. Did you mean',
        ),
        ("owner: ana\n", "", ':2: "owner" is missing'),
        ("owner: ana\n", "owner: 7\n", ":4: owner: must be text, not the number 7."),
        ("expires: 2027-01-31\n", "", ':2: "expires" is missing: a date, or the word never'),
        ("2027-01-31", "2027-02-31", ':5: expires: "2027-02-31" is not a date'),
        ("expires: 2027-01-31", "expires: soon", ":5: expires: must be a date such as 2027-06-30, not text"),
        ("state: acknowledged", "state: accepted", ":5: expires: what is accepted does not expire. Remove"),
        (f'"{DECIDED}"', "yesterday", ":7: decided: must be a time such as"),
        (f'"{DECIDED}"', '"2026-12-02T09:14:00"', ":7: decided: must be a time such as"),
        (f'"{ID}"', "0C1D", ':10: findings: "0C1D" is no finding\'s id'),
        ("what: regressed", "what: regresed", f':10: {WHERE}.what: "regresed" is nothing that is found'),
        (", case_id: a7fb73a0d49e703b", "", f':10: {WHERE}: "case_id" is missing'),
        ("soc: SM8650", "sok: SM8650", f':10: {WHERE}.sok: unknown key. Did you mean "soc"?'),
        ("version: 1", "version: 2", ":2: version: version 2; this Tilefarm reads 1"),
        ("owner: ana", "owner: !!python/name:os.system ana", ":4: tags are not supported"),
        ("owner: ana", "owner: ana\nowner: ben", ":5: owner: given twice, first on line 4"),
    ],
)
def test_a_slip_of_the_editor_is_an_error_with_its_line(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    found = problems_of(GOOD.replace(old, new))
    assert any(problem.startswith(f"x.yaml{message}") for problem in found), found


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "version: 1\n", "{", "\x00", "findings: {}", GOOD[: GOOD.index("  " + '"0c1d')]]
)
def test_a_file_without_a_decision_is_an_error(text: str) -> None:
    assert problems_of(text)


def test_marks_of_a_merge_are_named_for_what_they_are() -> None:
    text = GOOD.replace("owner: ana\n", "<<<<<<< HEAD\nowner: ana\n=======\nowner: ben\n>>>>>>> b\n")
    assert problems_of(text) == [
        "x.yaml:4: a merge conflict that nobody resolved. Keep one side, remove the marks"
    ]


def test_a_finding_given_twice_in_a_file_is_an_error_with_both_lines() -> None:
    (problem,) = problems_of(GOOD + GOOD.splitlines()[-1])
    assert problem == f"x.yaml:11: {WHERE}: given twice, first on line 10. Remove one"


def test_a_finding_decided_in_two_branches_is_an_error_with_both_places(tmp_path: Path) -> None:
    folder = TriageFolder(tmp_path, "nightly")
    folder.path.mkdir()
    (folder.path / "a.yaml").write_text(GOOD)
    (folder.path / "b.yaml").write_text(GOOD)
    with pytest.raises(TriageError, match=rf"b.yaml:10: {ID}: decided twice, first in a.yaml:10. Remove one"):
        folder.load()
    found, problems = folder.load_what_can_be()
    assert (len(found), len(problems)) == (1, 1)


def test_too_much_text_is_refused_before_it_is_read() -> None:
    (problem,) = problems_of("#" * (MAX_BYTES + 1))
    assert "more than" in problem


def test_putting_again_takes_the_place_of_what_was_decided(tmp_path: Path) -> None:
    folder = TriageFolder(tmp_path, "nightly")
    assert folder.load() == []
    (first,) = folder.put(decision(subject(ID), subject(OTHER)))
    assert first == tmp_path / "nightly" / "20261202T091400Z-0c1d2e3f.yaml"
    second, changed = folder.put(decision(subject(ID), state="fixed"))
    assert changed == first
    assert second != first, "of the same second, and yet another file"
    states = {i: d.state for i, (d, _) in by_finding(folder.load()).items()}
    assert states == {ID: "fixed", OTHER: "acknowledged"}
    third, *_ = folder.put(decision(subject(OTHER), state="accepted", decided="2027-01-04T10:00:00+00:00"))
    assert sorted(folder.path.iterdir()) == sorted([second, third]), "a decision about nothing goes"


def test_nothing_is_written_beside_files_that_are_not_in_order(tmp_path: Path) -> None:
    folder = TriageFolder(tmp_path, "nightly")
    (path,) = folder.put(decision())
    path.write_text(broken := path.read_text().replace("state: acknowledged", "state: gone"))
    with pytest.raises(TriageError, match=rf"{path.name}:3: state"):
        folder.put(decision(subject(OTHER)))
    assert path.read_text() == broken
    assert list(folder.path.iterdir()) == [path]


def test_a_broken_file_costs_only_its_own_decision(tmp_path: Path) -> None:
    folder = TriageFolder(tmp_path, "nightly")
    (path,) = folder.put(decision(subject(ID)))
    folder.put(decision(subject(OTHER), decided="2027-01-03T10:00:00+00:00"))
    path.write_text("version: 1\nfindings: [")
    found, problems = folder.load_what_can_be()
    assert list(by_finding(found)) == [OTHER]
    assert len(problems) == 1
    assert f"{path.name}:2: not YAML" in problems[0]


def git(folder: Path, *words: str) -> None:
    who = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "init.defaultBranch=main", *words]
    subprocess.run(command, cwd=folder, env=os.environ | who, check=True, capture_output=True)


def test_decisions_of_two_branches_are_merged_by_git_alone(tmp_path: Path) -> None:
    """Also where each of them takes a finding out of the same earlier decision."""
    folder = TriageFolder(tmp_path, "nightly")
    ids = [f"{n}" * 16 for n in range(9)]
    git(tmp_path, "init")
    folder.put(decision(*(subject(i, soc=f"S{i}") for i in ids)))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    git(tmp_path, "checkout", "-b", "other")
    folder.put(decision(subject(ids[1], soc="S1"), subject("a" * 16), state="noise"))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "two")
    git(tmp_path, "checkout", "main")
    folder.put(decision(subject(ids[7], soc="S7"), subject("b" * 16), state="accepted"))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "three")
    git(tmp_path, "merge", "other")
    states = {i: d.state for i, (d, _) in by_finding(folder.load()).items()}
    assert {i for i, state in states.items() if state == "noise"} == {ids[1], "a" * 16}
    assert {i for i, state in states.items() if state == "accepted"} == {ids[7], "b" * 16}
    assert len(states) == 11
