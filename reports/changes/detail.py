"""One finding in full: history with events, samples before and after, tiles, roofline, errors, commands."""

import math
from collections.abc import Mapping, Sequence

from orchestrator.domain.finding import EVERYTHING, Finding, Findings, PhoneChange
from orchestrator.domain.results import RunResults
from reports.changes import places, samples
from reports.changes.events import Event, events
from reports.changes.evidence import Night, Row, against_baseline, nights, nmse_history, phones
from reports.changes.facts import facts
from reports.changes.model import Chart, Detail, Entry, Numbers, Phone, Turns
from reports.changes.words import chance, long_night, night, readable
from reports.findings import repro_command
from reports.numbers import plain, significant, units
from reports.svg.history import Line, history_chart, lettered
from reports.text import shell_word

MAX_NIGHTS = 90
"""Of a chart's time axis; the newest ones."""
MAX_LINES = 6
"""Phones of one chart; those with the largest change."""
MAX_TOLD = 3
"""Missing nights that the list beside the chart names."""


class Details:
    """Looks up once what every finding's detail needs."""

    def __init__(
        self,
        results: RunResults,
        found: Findings,
        series: Mapping[str, Sequence[Row]],
        names: Mapping[str, str],
    ) -> None:
        """``names``: device id → its name."""
        self._results, self._found, self._series = results, found, series
        self._names = dict(names)
        self._records = {d.device_id: d for d in results.devices}
        self._places = places.Places(results, found)

    def of(self, entry: Entry) -> Detail:
        finding = entry.finding
        seen = nights(self._series.get(finding.finding_id, ()))
        runs = self._axis(seen)
        told = events(seen, runs, self._names) if seen else ()
        lead = self._lead(finding, seen)
        drawn = [self._line(finding, seen, runs, device) for device in self._shown(finding, seen)]
        if finding.case_id == EVERYTHING:
            runs, drawn = self._found.nights, self._shifts(finding)
        lines = [line for line in drawn if any(math.isfinite(v) for v in line.values)]
        return Detail(
            entry=entry,
            sentence=readable(finding.detail, self._found.nights, self._names),
            facts=facts(entry),
            phones=tuple(Phone(self._names.get(p.device_id, p.device_id), p) for p in finding.phones),
            duels=tuple(
                Turns(self._names.get(d.device_id, d.device_id), d, chance(d.p)) for d in finding.duels
            ),
            history=self._history(entry, lines, runs, told),
            lines=tuple(line.name for line in lines),
            events=self._events(runs, told),
            strips=samples.strips(
                entry.anchor, seen, lead, self._found.run_id, finding.since, self._ceiling_c, self._names
            ),
            tiles=self._places.tiles(entry),
            roof=self._places.roof(entry, lead),
            errors=self._places.errors(entry, lead) if finding.kind == "numerics" else None,
            numbers=self._numbers(finding, seen, lead),
            repro=self._repro(finding, lead),
            duel=self._duel(finding, lead),
        )

    @property
    def _ceiling_c(self) -> float:
        value = self._found.method.get("die_ceiling_mc", math.nan)
        return value / 1000

    def _axis(self, seen: Sequence[Night]) -> list[str]:
        """Runs of the findings and of the trials; run ids sort by time."""
        every = {*self._found.nights, *(n.run_id for n in seen)}
        return sorted(every)[-MAX_NIGHTS:]

    def _lead(self, finding: Finding, seen: Sequence[Night]) -> str:
        """The phone that shows it most, of those with trials if there are any: whose samples are drawn and
        whose id the commands name."""
        if finding.device_id:
            return finding.device_id
        here = [n.device_id for n in seen if n.run_id == self._found.run_id]
        showing = [p for p in finding.phones if p.device_id in here] or finding.phones
        if showing:
            return max(showing, key=_size).device_id
        if here:
            return here[0]
        trials = [t.device_id for t in self._results.trials if t.case_id == finding.case_id]
        own = [i for i in trials if self._records[i].soc.name == finding.soc]
        return own[0] if own else ""

    def _history(
        self, entry: Entry, lines: Sequence[Line], runs: Sequence[str], told: Sequence[Event]
    ) -> Chart | None:
        finding = entry.finding
        speed = finding.kind == "speed"
        if not lines:
            return None
        unit = "latency" if speed else "NMSE"
        title = f"History of {entry.label}"
        picture = history_chart(f"{entry.anchor}-h", title, runs, lines, told, finding.since, unit)
        what = (
            "Change of latency against each phone's own baseline" if speed else "NMSE, times the baseline's"
        )
        return Chart(f"{what}; shaded since {night(finding.since)}" if finding.since else what, picture)

    def _shown(self, finding: Finding, seen: Sequence[Night]) -> list[str]:
        sizes = {p.device_id: _size(p) for p in finding.phones}
        return sorted(phones(seen), key=lambda d: -sizes.get(d, 0.0))[:MAX_LINES]

    def _line(self, finding: Finding, seen: Sequence[Night], runs: Sequence[str], device: str) -> Line:
        if finding.kind == "speed":
            own = {
                n.run_id: math.log(n.latency_ns) for n in seen if n.device_id == device and n.latency_ns > 0
            }
            values = against_baseline(finding, own, runs)
        else:
            values = nmse_history(finding, seen, runs, device)
        return Line(self._names.get(device, device), tuple(values))

    def _shifts(self, finding: Finding) -> list[Line]:
        """What all variants of a phone did together, of the finding's phones."""
        only = {finding.device_id} if finding.device_id else {p.device_id for p in finding.phones}
        count = len(self._found.nights)
        return [
            Line(self._names.get(d.device_id, d.device_id), (*[math.nan] * (count - len(d.shift)), *d.shift))
            for d in self._found.devices
            if d.device_id in only
        ][:MAX_LINES]

    def _events(self, runs: Sequence[str], told: Sequence[Event]) -> tuple[tuple[str, str, str], ...]:
        made = [(letter, long_night(runs[e.at]), e.text) for letter, e in lettered(told)]
        missing = [night(runs[e.at]) for e in told if e.kind == "missing"]
        if missing:
            more = f" and {len(missing) - MAX_TOLD} more" if len(missing) > MAX_TOLD else ""
            made.append(("×", ", ".join(missing[:MAX_TOLD]) + more, "not measured"))
        return tuple(made)

    def _numbers(self, finding: Finding, seen: Sequence[Night], lead: str) -> Numbers | None:
        own = [n for n in seen if n.device_id == lead]
        if finding.kind != "numerics" or not own:
            return None
        after = own[-1]
        earlier = [n for n in own if n.run_id in finding.baseline] or own[:-1]
        if not earlier:
            return None
        before = earlier[-1]
        return Numbers(
            self._names.get(lead, lead),
            (
                ("NMSE", significant(before.nmse), significant(after.nmse)),
                ("Max absolute error", significant(before.max_abs), significant(after.max_abs)),
                ("ULP max", units(before.ulp_max), units(after.ulp_max)),
                ("Cosine", plain(before.cosine), plain(after.cosine)),
                ("Output hash", before.hash[:16] or "–", after.hash[:16] or "–"),
                ("Distinct outputs over replays", str(before.hashes), str(after.hashes)),
                ("Verdict", before.verdict or "–", after.verdict or "–"),
            ),
        )

    def _repro(self, finding: Finding, lead: str) -> str:
        record = self._records.get(lead) if finding.case_id != EVERYTHING else None
        return "" if record is None else repro_command(self._results.run, finding.case_id, record)

    def _duel(self, finding: Finding, lead: str) -> str:
        """Both runs' code measured in turns on one phone; nothing where they ran the same code."""
        if finding.kind != "speed" or not finding.baseline or not lead:
            return ""
        if finding.code_before == finding.code_after:
            return ""
        words = [finding.baseline[-1], self._found.run_id, "--case", finding.case_id, "--device", lead]
        return "tilefarm duel " + " ".join(w if w.startswith("--") else shell_word(w) for w in words)


def _size(phone: PhoneChange) -> float:
    return abs(phone.effect) if math.isfinite(phone.effect) else 0.0
