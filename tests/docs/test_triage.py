"""docs/triage.md: its commands run on a small farm, its file is one, and its errors are the real ones."""

import json
import re
from pathlib import Path

from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import RunFolder
from orchestrator.history.history import History
from orchestrator.triage.folder import TriageFolder, by_finding
from orchestrator.triage.reader import read_decision
from orchestrator.triage.writer import file_text
from tests.docs.pages import blocks, run_script
from tests.farm import REPOSITORY, Farm
from tests.unit.verdicts.small_farm import SLOW, SmallFarm, run_id

PAGE = REPOSITORY / "docs" / "triage.md"
MADE_UP = "4e11d3a3"


def slower(night: int, _phone: str, case_id: str) -> float:
    return 0.08 if case_id == SLOW and night == 10 else 0.0


def test_the_commands_of_the_page_run_one_after_another(farm: Farm, tmp_path: Path) -> None:
    out = Path(farm.env()["TILEFARM_OUT"])
    history = History(f"sqlite:///{out}/tilefarm.db", out / "history")
    small = SmallFarm(history, slower)
    small.nights(1, 9)
    results, folder = small.results(10), RunFolder(out / "runs" / run_id(10))
    folder.path.mkdir(parents=True)
    folder.results_json.write_text(to_json(results))
    told = small.night(10)
    history.close()
    (folder.path / "findings.json").write_text(to_json(told))
    (script,) = blocks(PAGE, "shell")
    (group,) = told.groups
    work = tmp_path / "checkout"
    work.mkdir()
    printed = run_script(script.replace(MADE_UP, group.group_id[:8]), farm, work)
    assert "1 open, 0 decided" in printed
    assert "acknowledged by ana until" in printed
    found = by_finding(TriageFolder(work / "triage", "nightly").load())
    assert [d.link for d, _ in found.values()] == ["https://example.org/issues/7"]


def test_the_file_of_the_page_is_what_the_program_writes() -> None:
    (text,) = blocks(PAGE, "yaml")
    found, problems = read_decision(text.encode())
    assert problems == []
    assert found is not None
    assert file_text("nightly", found) == text


def test_the_errors_of_the_page_are_the_real_ones(tmp_path: Path) -> None:
    (good,) = blocks(PAGE, "yaml")
    (errors,) = (text for text in blocks(PAGE, "") if text.startswith("triage/"))
    names = list(dict.fromkeys(re.findall(r"nightly/(\S+\.yaml):", errors)))
    folder = TriageFolder(tmp_path / "triage", "nightly")
    folder.path.mkdir(parents=True)
    first, second, third = (folder.path / name for name in names)

    def problems() -> list[str]:
        found = folder.load_what_can_be()[1]
        return [line.removeprefix(f"{tmp_path}/") for line in found]

    first.write_text(good.replace("owner: ana", "owner: 7").replace("2027-01-31", "2027-02-31"))
    said = problems()
    first.write_text(good)
    second.write_text("\n".join(good.splitlines()[:11]) + "\n")
    third.write_text(good.replace("owner: ana\n", "<<<<<<< HEAD\nowner: ana\n"))
    said += problems()
    assert said == errors.splitlines(), json.dumps(said, indent=1)
