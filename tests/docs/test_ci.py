"""docs/ci.md: its jobs are the files beside it, fit their schemas, and do what they say when they are run."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click
import pytest
import typer.main
from ruamel.yaml import YAML

from orchestrator.cli.app import app
from reports.build import build_report
from reports.machines.metrics import render_metrics
from tests.docs.pages import blocks
from tests.farm import REPOSITORY
from tests.results_fixture import TODAY
from tests.unit.reports.sample_findings import sample_findings

PAGE = REPOSITORY / "docs" / "ci.md"
FOLDER = REPOSITORY / "docs" / "examples" / "ci"
FILES = sorted(FOLDER.iterdir())
SCHEMAS = {
    "github-nightly.yml": "vendor.github-workflows",
    "github-pull-request.yml": "vendor.github-workflows",
    "gitlab-ci.yml": "vendor.gitlab-ci",
}
JENKINS = [f for f in FILES if f.name.startswith("Jenkinsfile")]


def load(name: str) -> Any:
    reader: Any = YAML(typ="safe")
    return reader.load((FOLDER / name).read_text())


def valid(file: Path, schema: str) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode == 0


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_job_fits_its_schema_and_a_broken_one_does_not(name: str, tmp_path: Path) -> None:
    assert valid(FOLDER / name, SCHEMAS[name])
    # GitLab's schema looks into no hidden job: here it is one that is not hidden.
    text = (FOLDER / name).read_text().replace("\n.tilefarm:\n", "\ntilefarm:\n  script: [tilefarm doctor]\n")
    shown = tmp_path / name
    shown.write_text(text)
    assert valid(shown, SCHEMAS[name])
    shown.write_text(text.replace("runs-on:", "runs_on:").replace("when: always", "when: sometimes"))
    assert not valid(shown, SCHEMAS[name])


def test_the_page_shows_exactly_the_files() -> None:
    shown = [*blocks(PAGE, "yaml"), *blocks(PAGE, "groovy")]
    assert {f.name for f in FILES} == {*SCHEMAS, *(f.name for f in JENKINS)}
    for file in FILES:
        assert file.read_text() in shown, file.name


def scripts() -> Iterator[tuple[str, str]]:
    """(where, shell script) of every step that calls tilefarm, as the CI gives it to a shell."""
    for name in ("github-nightly.yml", "github-pull-request.yml"):
        for job in load(name)["jobs"].values():
            for step in job["steps"]:
                if "tilefarm " in step.get("run", ""):
                    yield name, step["run"]
    for name, job in cast(dict[str, Any], load("gitlab-ci.yml")).items():
        if isinstance(job, dict) and "script" in job:
            yield f"gitlab-ci.yml {name}", "\n".join(cast(dict[str, list[str]], job)["script"])
    for file in JENKINS:
        for script in re.findall(r"script: '(tilefarm [^']*)'", file.read_text()):
            yield file.name, script


SCRIPTS = list(scripts())


def test_each_file_measures() -> None:
    assert len(SCRIPTS) == 6


@pytest.mark.parametrize(("where", "script"), SCRIPTS, ids=lambda t: t if "--" not in t else "")
def test_its_command_is_one_of_ours(where: str, script: str) -> None:
    words = shlex.split(re.sub(r"\$\{\w+:\+([^}]*)\}", r"\1", script))
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    command = cast(Any, group).commands[words[1]]
    command.make_context(words[1], words[2:])  # a wrong option raises
    assert "--artifacts report" in script
    assert ("--fail-on regressed" in script) == ("--suite nightly" in script)


@pytest.mark.parametrize("code", [0, 1, 3])
@pytest.mark.parametrize(("where", "script"), SCRIPTS, ids=lambda t: t if "--" not in t else "")
def test_the_exit_code_comes_through_and_a_selection_stays_one_word(
    where: str, script: str, code: int, tmp_path: Path
) -> None:
    stub = tmp_path / "tilefarm"
    stub.write_text(
        f'#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done > "{tmp_path}/words"\nexit {code}\n'
    )
    stub.chmod(0o755)
    nasty = 'tile=8x8 and "$(touch pwned)"; touch pwned'
    for select in ("", nasty):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SELECT": select, "DEVICE": ""},
            timeout=60,
            check=False,
        )
        words = (tmp_path / "words").read_text().splitlines()
        assert done.returncode == code
        assert words[0] == "run"
        assert "" not in words
        if "SELECT" in script:
            assert (nasty in words) == bool(select)
            assert ("-k" in words) == bool(select)
    assert not (tmp_path / "pwned").exists()


def test_comments_are_the_summary_and_no_token_is_on_a_command_line(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "summary.md").write_text("### fine\n")
    for name in ("gh", "curl"):
        stub = tmp_path / name
        stub.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "{name}" "$@" > "{tmp_path}/{name}.words"\ncat > /dev/null\n'
        )
        stub.chmod(0o755)
    steps = load("github-pull-request.yml")["jobs"]["kernels"]["steps"]
    (github,) = [s["run"] for s in steps if "gh pr comment" in s.get("run", "")]
    (gitlab,) = load("gitlab-ci.yml")["kernels"]["after_script"]
    env = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PULL_REQUEST": "https://example/7",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_API_V4_URL": "https://example/api/v4",
        "CI_PROJECT_ID": "1",
        "TILEFARM_COMMENT_TOKEN": "glpat-secret",
    }
    for script in (github, gitlab):
        subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=env, timeout=60, check=True
        )
    said = [(tmp_path / f"{name}.words").read_text() for name in ("gh", "curl")]
    assert "--body-file\nreport/summary.md" in said[0]
    assert "body@report/summary.md" in said[1]
    assert "glpat-secret" not in said[1]


def test_shells_of_workflows_hold_no_expression_of_github() -> None:
    """``${{ inputs.select }}`` in a script would be whatever somebody typed, run by the shell."""
    for name in ("github-nightly.yml", "github-pull-request.yml"):
        for job in load(name)["jobs"].values():
            assert all("${{" not in step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("file", JENKINS, ids=lambda f: f.name)
def test_a_jenkinsfile_is_a_declarative_pipeline(file: Path) -> None:
    """Structure alone: sections at their places, and every bracket and string closed."""
    code = _without_strings(file.read_text())
    depth, path, sections = 0, list[str](), dict[str, int]()
    for token in re.findall(r"[A-Za-z]+(?=[^\n{}]*\{)|[{}]", code):
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            assert depth >= 0
        else:
            sections.setdefault(token, depth)
            path.append(token)
    assert depth == 0
    assert path[0] == "pipeline"
    for section in ("agent", "options", "environment", "stages", "post"):
        assert sections[section] == 1, section
    assert (sections["stage"], sections["steps"], sections["script"], sections["always"]) == (2, 3, 4, 2)
    assert code.count("(") == code.count(")")
    assert "junit testResults: ''" in code


def _without_strings(text: str) -> str:
    """Comments gone, strings empty; one that is not closed in its line raises."""

    def emptied(line: str) -> str:
        kept = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", line)
        kept = re.sub(r"//.*", "", kept)
        assert kept.replace("''", "").count("'") == kept.count('"') == 0, line
        return kept

    return "\n".join(map(emptied, text.splitlines()))


def test_the_table_of_metrics_has_each_and_no_other() -> None:
    sample = sample_findings()
    text = render_metrics(build_report(sample.results, None, TODAY, findings=sample.findings))
    written = set(re.findall(r"^# TYPE (\w+) gauge$", text, re.MULTILINE)) | {
        "tilefarm_canary_latency_seconds"
    }
    page = PAGE.read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `tilefarm_")]
    assert sorted(re.findall(r"`(tilefarm_\w+)`", " ".join(rows))) == sorted(written)
    assert set(re.findall(r"tilefarm_\w+(?=\{)", page)) <= written
