"""A night against its history, in a terminal: the verdict, what was not measured, a line for each cause."""

from rich.text import Text

from orchestrator.analysis.words import plural
from reports.changes.model import Card, Changes
from reports.changes.words import GLYPHS, KINDS
from reports.text import visible

MAX_CARDS = 12
MAX_UNMEASURED = 5
_STYLES = {"bad": "red", "good": "green", "warn": "yellow"}


def changes_lines(changes: Changes) -> list[Text]:
    """Nothing is cut: sentences stay whole on a narrow terminal and in a file."""
    lines = [Text(visible(changes.sentence), "bold")]
    missing = changes.not_measured
    lines += [Text(f"Not measured: {visible(why)}", "yellow") for why in missing[:MAX_UNMEASURED]]
    if len(missing) > MAX_UNMEASURED:
        lines.append(Text(f"and {plural(len(missing) - MAX_UNMEASURED, 'more reason')} in the report", "dim"))
    lines += [_line(card) for card in changes.cards[:MAX_CARDS]]
    if len(changes.cards) > MAX_CARDS:
        lines.append(
            Text(f"and {plural(len(changes.cards) - MAX_CARDS, 'smaller group')} in the report", "dim")
        )
    return lines


def _line(card: Card) -> Text:
    what = card.group.what
    glyph, style = GLYPHS.get(what, "•"), _STYLES.get(KINDS.get(what, ""), "")
    said = [visible(card.sentence), visible(card.confirmed), "dealt with" if card.settled else ""]
    return Text(f"{glyph} {'; '.join(filter(None, said))}", "dim" if card.settled else style)
