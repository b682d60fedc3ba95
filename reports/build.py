"""RunResults and its analysis → ReportModel."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

from orchestrator.analysis.alerts import alerts
from orchestrator.analysis.canaries import canary_facts
from orchestrator.analysis.compare import Change, Comparison, compare
from orchestrator.analysis.hints import HintEffect, hint_effects
from orchestrator.analysis.other_api import of_other_api, other_apis
from orchestrator.analysis.outcome import CompileWhen, JudgedTrial, compile_recorded, judge
from orchestrator.analysis.pairs import PairTable, pair_tables
from orchestrator.analysis.roofline import ceilings
from orchestrator.analysis.shared import SharedProcessor, shared_processors
from orchestrator.analysis.subgroups import failures_by_subgroup
from orchestrator.analysis.summary import Counts, bound_of, count, probe_ids, sentence, summarise
from orchestrator.analysis.tiles import tile_grids
from orchestrator.analysis.worse import worse
from orchestrator.domain.best import Best
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.finding import Findings
from orchestrator.domain.gate import FailOn
from orchestrator.domain.results import RunResults
from reports.best.build import build_best
from reports.changes.build import build_changes, socs_of
from reports.changes.evidence import Row
from reports.changes.naming import Names
from reports.clocks import device_notes
from reports.findings import Logs, findings
from reports.labels import Labels
from reports.model import DeviceSection, PrunedGroup, ReportModel, SocPage
from reports.probes import precision_brief, precision_news, precision_tables, unprobed
from reports.roofline import charts, places
from reports.tables import best_groups, variant_tables
from reports.text import file_stem

MAX_LISTED = 50
"""Pruned points named per reason; the others are counted."""


def build_report(
    results: RunResults,
    previous: RunResults | None,
    today: date,
    *,
    max_slowdown: float | None = None,
    compile_when: CompileWhen = compile_recorded,
    findings: Findings | None = None,
    series: Mapping[str, Sequence[Row]] | None = None,
    best: Best | None = None,
    fail_on: FailOn | None = None,
    judged: bool = True,
) -> ReportModel:
    """Everything the renderers need. ``previous`` is the run to compare with, or None.

    ``best``: which variants to ship; ``findings``: what the history says; ``series``: finding id → trials
    of its case, as it keeps them.

    ``max_slowdown``, ``fail_on``: None takes what the run was started with. ``judged``: False where the
    history could not be asked.

    Raises:
        WireError: results that contradict themselves.
        UsageError: an expectation's ``when`` that is no selection expression.
    """
    bound = bound_of(results, max_slowdown)
    judgement = judge(results, today, compile_when)
    comparison = compare(previous, results) if previous is not None else None
    # Probes have other axes than variants: they take no part in what all cases share.
    labels = Labels([i.case for i in results.cases.values() if i.role == "op"])
    builder = _Builder(results, judgement.trials, comparison, labels)
    known = (previous.cases if previous is not None else {}) | results.cases
    short = {case_id: labels.short(i.case) for case_id, i in known.items()}
    pages = builder.soc_pages(bound)
    changes, against, told = None, worse(findings, today), frozenset[str]()
    if findings is not None:
        results_pages = {p.soc: p.file_name for p in pages}
        every = soc_file_names(dict.fromkeys([*results_pages, *socs_of(findings)]))
        wanted = {soc: every[soc] for soc in socs_of(findings)}
        older = {i: info.case for i, info in known.items()}
        told = frozenset(f.finding_id for f in alerts(findings, today))
        changes = build_changes(results, findings, series or {}, older, results_pages, wanted, told)
    shipped = None
    if best is not None:
        own = {p.soc: p.file_name for p in pages}
        every = soc_file_names(dict.fromkeys([*own, *(soc.soc for soc in best.socs)]))
        names = {d.device_id: d.name for d in results.devices}
        changed = {p.soc: p.file_name for p in changes.socs} if changes is not None else {}
        shipped = build_best(best, names, every, own, changed)
    return ReportModel(
        run=results.run,
        summary=summarise(
            results, judgement.trials, comparison, bound, fail_on=fail_on, against=against, judged=judged
        ),
        socs=pages,
        expectations=judgement.uses,
        excluded=tuple(results.excluded),
        missing=tuple(results.missing),
        comparison=comparison,
        max_slowdown=bound,
        trials=judgement.trials,
        labels=short,
        common=labels.common,
        case_names=Names({i: info.case for i, info in known.items()} if comparison is not None else {}),
        logs=builder.logs.files,
        pairs=builder.pairs,
        shared=builder.shared,
        by_subgroup=failures_by_subgroup(judgement.trials),
        shipped=shipped,
        changes=changes,
        fail_on=results.run.fail_on if fail_on is None else fail_on,
        worse=against,
        told=told,
    )


class _Builder:
    """Groups everything by device once, so that a page costs what it shows."""

    def __init__(
        self,
        results: RunResults,
        trials: Sequence[JudgedTrial],
        comparison: Comparison | None,
        labels: Labels,
    ) -> None:
        self.results = results
        self._labels = labels
        self.logs = Logs()
        self._comparison = comparison
        self._trials: dict[str, list[JudgedTrial]] = defaultdict(list)
        for item in trials:
            self._trials[item.device.device_id].append(item)
        self._hints: dict[str, list[HintEffect]] = defaultdict(list)
        for effect in hint_effects(trials):
            self._hints[effect.device_id].append(effect)
        self._changes: dict[str, list[Change]] = defaultdict(list)
        for change in comparison.changes if comparison is not None else ():
            if not change.probe or change.notable:
                self._changes[change.device_id].append(change)
        self._probe_ids = probe_ids(results)
        self.pairs: tuple[PairTable, ...] = pair_tables(trials, results.devices)
        self.shared: tuple[SharedProcessor, ...] = shared_processors(results.devices)

    def soc_pages(self, max_slowdown: float | None) -> tuple[SocPage, ...]:
        groups: dict[str, list[DeviceRecord]] = defaultdict(list)
        for device in self.results.devices:
            groups[device.soc.name].append(device)
        names = soc_file_names(groups)
        pages: list[SocPage] = []
        for number, (soc, devices) in enumerate(groups.items()):
            sections = tuple(self._section(d, f"d{number}-{i}") for i, d in enumerate(devices))
            trials = [t for d in devices for t in self._trials[d.device_id]]
            counts = self._counts(devices)
            slow = self._slow(devices, max_slowdown)
            pages.append(
                SocPage(
                    soc=soc,
                    file_name=names[soc],
                    sentence=sentence(trials, counts, slow=slow, max_slowdown=max_slowdown),
                    counts=counts,
                    bad=bool(counts.failed or counts.not_obtained or slow or not counts.measured),
                    virtual=all(d.virtual for d in devices),
                    devices=sections,
                )
            )
        return tuple(pages)

    def _slow(self, devices: Sequence[DeviceRecord], bound: float | None) -> tuple[Change, ...]:
        if self._comparison is None or bound is None:
            return ()
        ids = {d.device_id for d in devices}
        return tuple(c for c in self._comparison.slowdowns(bound) if c.device_id in ids)

    def _counts(self, devices: Sequence[DeviceRecord]) -> Counts:
        ids = {d.device_id for d in devices}
        return count(
            (t for i in ids for t in self._trials[i]),
            pruned=[p for p in self.results.pruned if p.device_id in ids],
            missing=[m for m in self.results.missing if m.device_id in ids],
            probes=self._probe_ids,
        )

    def _section(self, device: DeviceRecord, anchor: str) -> DeviceSection:
        results, trials = self.results, self._trials[device.device_id]
        variants = [t for t in trials if not t.probe]
        found = findings(results, trials, self.logs, prefix=anchor)
        anchors = {f.case_id: f.anchor for f in found}
        hints = self._hints[device.device_id]
        counts = self._counts([device])
        precisions = precision_tables(results, device.device_id)
        found_ceilings = ceilings((t.trial for t in trials), results.cases, device.device_id)
        return DeviceSection(
            anchor=anchor,
            device=device,
            sentence=sentence(trials, counts),
            counts=counts,
            warning=device_warning(device),
            findings=found,
            missing=tuple(m for m in results.missing if m.device_id == device.device_id),
            best=best_groups(variants, self._labels),
            tables=variant_tables(variants, anchors, hints, places(found_ceilings, variants)),
            clock_notes=device_notes(trials, canary_facts(trials)),
            grids=tuple(tile_grids(results, trials, device.device_id)),
            hints=tuple(hints),
            pruned=_pruned(results, device.device_id, self._probe_ids),
            other_apis=tuple(other_apis(p for p in results.pruned if p.device_id == device.device_id)),
            changes=tuple(self._changes[device.device_id]),
            pairs=tuple(p for p in self.pairs if device.device_id in (p.gles.device_id, p.vulkan.device_id)),
            rooflines=charts(found_ceilings, variants, self._labels),
            precision=precisions,
            precision_news=precision_news(precisions),
            precision_brief=precision_brief(precisions),
            canaries=canary_facts(trials),
            unprobed=unprobed(results, trials, device.device_id),
            shared=next((s for s in self.shared if device.device_id in s.device_ids), None),
        )


def device_warning(device: DeviceRecord) -> str:
    if not device.virtual:
        return ""
    renderer = device.profiles[0].renderer if device.profiles else "the driver"
    return (
        f"virtual phone: {renderer} of this host under declared limits; "
        f"its times say nothing about {device.soc.name}"
    )


def soc_file_names(socs: Mapping[str, object]) -> dict[str, str]:
    """``soc-NAME.html``; names that differ only in unsafe characters or in case stay apart."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for soc in socs:
        digest = sha256_hex(soc.encode("utf-8", "surrogatepass"))[:6]
        stem = file_stem(soc, digest)
        if stem.lower() in taken:
            stem = f"{stem}-{digest}"
        taken.add(stem.lower())
        names[soc] = f"soc-{stem}.html"
    return names


def _pruned(results: RunResults, device_id: str, probes: frozenset[str]) -> tuple[PrunedGroup, ...]:
    groups: dict[str, list[str]] = defaultdict(list)
    for pruned in results.pruned:
        if pruned.device_id == device_id and pruned.case_id not in probes and not of_other_api(pruned):
            groups["; ".join(pruned.reasons)].append(pruned.case_id)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(PrunedGroup(reason, len(ids), tuple(ids[:MAX_LISTED])) for reason, ids in ordered)
