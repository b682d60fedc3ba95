"""docs/history.md names every column of a trial file with its type."""

import re

from orchestrator.history.trial_rows import COLUMNS
from tests.farm import REPOSITORY

TYPES = {
    "name": "text", "text": "text", "flag": "bool", "small": "int8", "count": "int32", "big": "int64",
    "real": "double", "counts": "list of int32", "bigs": "list of int64",
}  # fmt: skip


def test_every_column_is_in_the_table_with_its_type() -> None:
    text = (REPOSITORY / "docs" / "history.md").read_text()
    section = text[text.index("## Columns of a trial file") :]
    found: dict[str, str] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1].startswith("`"):
            found |= dict.fromkeys(re.findall(r"`(\w+)`", cells[1]), cells[2])
    assert found == {name: TYPES[kind] for name, kind in COLUMNS.items()}
