"""The README's picture: what the example's last night says, drawn from its findings.json.

tilefarm example /tmp/example
python -m benchmarks.picture /tmp/example/latest/findings.json docs/example.svg
"""

import math
import sys
import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path

from orchestrator.domain.finding import EVERYTHING, Findings, Group
from orchestrator.domain.wire import from_json
from reports.svg.sparkline import shapes

WIDTH, ROW, LEFT, TOP = 1150, 34, 20, 34
WRAP = 140
"""Characters of a line of the verdict."""
STYLE = """
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}
.v{font-weight:600;font-size:14px}.m{fill:#59636e}.b{fill:#fff;stroke:#d1d9e0}
.z{stroke:#d1d9e0}.l{fill:none;stroke:#59636e;stroke-width:1.5}.d{stroke:#59636e;stroke-width:6;stroke-linecap:round}
.s{fill:#bc4c00;font-weight:600}.f{fill:#0969da;font-weight:600}.n{fill:#8250df;font-weight:600}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.m{fill:#9198a1}.b{fill:#0d1117;stroke:#3d444d}
.z{stroke:#3d444d}.l,.d{stroke:#9198a1}.s{fill:#ffa657}.f{fill:#79c0ff}.n{fill:#d2a8ff}}
"""
_MARKS = {"regressed": ("▲ slower", "s"), "improved": ("▼ faster", "f")}


def picture(findings: Findings) -> str:
    """An SVG that reads well on light and on dark pages; colour repeats what a word says."""
    lines = textwrap.wrap(f"{findings.sentence.split('; all ')[0]}.", WRAP)
    body: list[str] = []
    y = TOP
    for line in lines:
        body.append(f'<text class="v" x="{LEFT}" y="{y}">{escape(line)}</text>')
        y += 20
    if findings.not_measured:
        missing = "; ".join(findings.not_measured)
        body.append(f'<text class="m" x="{LEFT}" y="{y}">Not measured: {escape(missing)}</text>')
        y += 20
    y += 14
    for group in findings.groups:
        body += _row(group, _history(findings, group), y)
        y += ROW
    height = y - 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(findings.sentence)}">'
        f"<style>{STYLE}</style>"
        f'<rect class="b" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
        + "\n".join(body)
        + "</svg>\n"
    )


def _row(group: Group, history: Sequence[float], y: int) -> list[str]:
    word, style = _MARKS.get(group.what, ("◆ numerics", "n"))
    line, dot = shapes(history)
    drawn = (
        f'<path class="z" d="M0 12H120"/><path class="l" d="{line}"/><path class="d" d="{dot}"/>'
        if line
        else ""
    )
    return [
        f'<text class="{style}" x="{LEFT}" y="{y}">{word}</text>',
        f'<g transform="translate({LEFT + 90},{y - 17})">{drawn}</g>',
        f'<text x="{LEFT + 226}" y="{y}">{escape(group.sentence)}</text>',
    ]


def _history(findings: Findings, group: Group) -> list[float]:
    """Night by night the mean over the group's cases, or the shift of its phones; none of numerics."""
    own = [f for f in findings.findings if f.finding_id in set(group.findings) and f.kind == "speed"]
    whole = {p.device_id for f in own if f.case_id == EVERYTHING for p in f.phones}
    cases = {(f.soc, f.case_id) for f in own}
    rows = [d.shift for d in findings.devices if d.device_id in whole]
    rows += [r.history for r in findings.series if (r.soc, r.case_id) in cases]
    return [_mean(values) for values in zip(*rows, strict=True)]


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if math.isfinite(v)]
    return sum(known) / len(known) if known else math.nan


def main() -> None:
    source, target = map(Path, sys.argv[1:3])
    target.write_text(picture(from_json(Findings, source.read_bytes(), str(source))), encoding="utf-8")


if __name__ == "__main__":
    main()
