"""One night of a made-up farm from measurement to confirmed findings, in a farm's order."""

from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.farm import Farm
from benchmarks.simulation.noise import Noise, draw
from orchestrator.analysis.speed.again import again
from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis, analyse
from orchestrator.analysis.speed.confirm import LOOKS, Interleaved, decide, differences
from orchestrator.analysis.speed.discovery import affordable
from orchestrator.analysis.speed.plan import plan
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed, Turns, Verdicts, verdicts

REGRESSED, IMPROVED = SPEEDS.index(Speed.REGRESSED), SPEEDS.index(Speed.IMPROVED)


@dataclass(frozen=True, slots=True)
class Night:
    analysis: NightAnalysis
    verdicts: Verdicts
    socs: Bools
    """(tests,) regressed or improved: confirmed, or found and beyond what the budget could confirm."""
    phones: Bools
    """(series,) items of one phone, likewise."""
    cost: float
    """Samples of confirmation ÷ samples of the night."""


def measure_in_turns(
    rng: np.random.Generator,
    level: Floats,
    effect: Floats,
    noise: Noise,
    p: Floats | None = None,
    budget: float = np.inf,
) -> tuple[Ints, Floats, Floats]:
    """Of each row: 1 different, 0 unknown, −1 same; the estimated effect; the samples that it took.

    ``p``: by which later looks are chosen where ``budget`` samples do not reach all."""
    rows = len(level)
    rank = np.zeros(rows) if p is None else p
    pattern = np.tile([0.0, 1.0, 1.0, 0.0], LOOKS[-1].pairs // 2)
    answer, found = np.zeros(rows, np.int64), np.full(rows, np.nan)
    used = np.zeros(rows)
    shown = draw(rng, level[:, None] + effect[:, None] * pattern, noise, len(pattern))
    reached = 0
    for number, look in enumerate(LOOKS):
        n = 2 * look.pairs
        cost = np.full(rows, float(n)) - used
        open_ = np.flatnonzero(affordable(rank, (answer == 0) & (used >= reached), cost, budget - used.sum()))
        reached = n
        pairs = differences(
            Interleaved(
                shown.latency_ns[open_, :n],
                shown.gpu_hz[open_, :n],
                shown.temp_mc[open_, :n],
                shown.throttled[open_, :n],
            )
        )
        now = decide(pairs, number)
        answer[open_], found[open_] = now.answer, now.effect
        used[open_] = n
    return answer, found, used


def night(farm: Farm, matrix: Matrix, effect: Floats | None = None) -> Night:
    """``effect``: (series,) log ratio that tonight's code or phone adds; zero where None."""
    added = np.zeros(len(farm.level)) if effect is None else effect
    first = farm.measure(added)
    history = farm.history()
    result = analyse(matrix, history, farm.tonight(first))
    samples = int(first.measured.sum())
    chosen = plan(matrix, result, samples)

    turned = chosen.series & matrix.code_changed[matrix.test]
    at = np.flatnonzero(turned)
    turns = Turns.none(len(added))
    turns.asked[at] = True
    turns.answer[at], turns.effect[at], used = measure_in_turns(
        farm.rng,
        farm.night[at],
        added[at],
        farm.noise,
        result.deltas.p[at],
        RULE.samples_for_confirmation(samples),
    )
    still = chosen.series & ~turned
    second = None
    if still.any():
        second = again(matrix, result, history, np.where(still, farm.again(added).log_ns, np.nan))
    said = verdicts(matrix, result, first.measured > 0, chosen, turns, second)
    farm.keep(first, added == 0)
    moved = (said.tests == REGRESSED) | (said.tests == IMPROVED)
    items = (said.series == REGRESSED) | (said.series == IMPROVED)
    cost = (used.sum() + still.sum() * farm.noise.samples) / samples
    return Night(result, said, moved, items, float(cost))
