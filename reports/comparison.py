"""Two runs side by side as one page: what ``tilefarm compare`` shows in the terminal, and all other cases."""

from orchestrator.analysis.compare import Comparison
from orchestrator.analysis.one_sided import by_reason
from orchestrator.analysis.words import plural
from orchestrator.domain.results import RunInfo
from reports.html import environment, shared_names
from reports.model import ReportModel
from reports.numbers import ratio

Fact = tuple[str, str, str]


def render_comparison(model: ReportModel) -> str:
    """
    Raises:
        ValueError: the model was built without a run to compare with.
    """
    if model.comparison is None:
        raise ValueError("no run to compare with")
    comparison = model.comparison
    own = {
        "sentence": comparison_sentence(model, comparison),
        "wrong": any(c.became_wrong for c in comparison.changes),
        "missing": by_reason(comparison.missing),
        "new": by_reason(comparison.new),
        "shared": model.case_names.shared,
        "facts": _facts(comparison),
    }
    return environment().get_template("compare.html.j2").render(shared_names(model) | own)


def comparison_sentence(model: ReportModel, comparison: Comparison) -> str:
    """The worst first; what only one run measured is never passed over."""
    total = len(comparison.changes)
    notable = sum(c.notable for c in comparison.changes)
    wrong = sum(c.became_wrong for c in comparison.changes)
    told = [f"{wrong} became wrong"] if wrong else []
    if model.max_slowdown is not None:
        told.append(f"{len(model.slow)} above the bound of {ratio(model.max_slowdown)}")
    told.append(f"{notable} worth a look" if notable else "nothing worth a look")
    for count, run in ((len(comparison.missing), "before"), (len(comparison.new), "after")):
        if count:
            told.append(f"{count} only {run}")
    return f"{plural(total, 'case')} in both runs: {', '.join(told)}."


def _facts(comparison: Comparison) -> list[Fact]:
    def of(run: RunInfo) -> tuple[str, ...]:
        names = run.run_id, run.suite, run.started_at, run.commit, run.compiler, run.host, run.tilefarm
        return (*names, run.command)

    heads = ("Run", "Suite", "Started (UTC)", "Commit", "SPIR-V by", "Host", "Tilefarm", "Command")
    pairs = zip(heads, of(comparison.before), of(comparison.after), strict=True)
    return [(name, before, after) for name, before, after in pairs if before or after]
