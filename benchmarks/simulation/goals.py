"""The goals of ../shared/statistics.md on made-up farms: how often changes are found, and nothing is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binomtest

from benchmarks.simulation.farm import Farm, Size
from benchmarks.simulation.nights import measure_in_turns, night
from benchmarks.simulation.noise import Noise
from orchestrator.analysis.speed.rows import Floats

WARM_UP = 16
"""Nights before the first one that is judged."""


@dataclass(frozen=True, slots=True)
class Proportion:
    hits: int
    of: int

    def __add__(self, other: "Proportion") -> "Proportion":
        return Proportion(self.hits + other.hits, self.of + other.of)

    @property
    def share(self) -> float:
        return self.hits / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, Clopper and Pearson."""
        if self.of == 0:
            return 0.0, 1.0
        found = binomtest(self.hits, self.of).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    noise: Noise
    phones: int = 3
    swaps: bool = False
    """Some nights ago the first phone of a farm became another one, under the old name."""
    changed: float = 1.0
    """Share of the cases whose code changed tonight. All of them is the worst for the budget."""
    asked: bool = True
    """The goals name it; else it shows what happens beyond them."""

    @property
    def rotation(self) -> int:
        """Nights after which a farm is thrown away, so that results do not hang on one history. A swapped
        phone is new that long."""
        return 3 if self.swaps else 12


BASE = Noise()
SCENARIOS: tuple[Scenario, ...] = (
    Scenario("as assumed", BASE),
    Scenario("one phone a SoC", BASE, phones=1),
    Scenario("AR(1) rho 0.6", replace(BASE, rho=0.6)),
    Scenario("clock states in runs", replace(BASE, slow_run=4.0)),
    Scenario("no clock shown", replace(BASE, clocks=False), asked=False),
    Scenario("15 % of nights missing", replace(BASE, missing=0.15)),
    Scenario("a phone swapped", BASE, swaps=True),
    Scenario("all of these, clocks shown", replace(BASE, rho=0.6, slow_run=4.0, missing=0.15), swaps=True),
    Scenario("no code changed", BASE, changed=0.0, asked=False),
    Scenario("1/4 of night variance own", replace(BASE, night_sd=0.013, own_sd=0.0075), asked=False),
    Scenario("all night variance own", replace(BASE, night_sd=0.0, own_sd=0.015), asked=False),
    Scenario("same, no code changed", replace(BASE, night_sd=0.0, own_sd=0.015), changed=0.0, asked=False),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Of nights with six changed cases in a thousand: two slower by 5 %, one faster by 5 %, two slower by
    3 %, and one slower by 5 % on one phone."""

    five: Proportion
    three: Proportion
    one_phone: Proportion
    false: Proportion
    """Of all findings on SoCs and phones, those of unchanged cases."""
    cost: float
    """Largest share of a night's samples that confirmation took."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nights in which nothing changed."""

    screened: Proportion
    """Tests found before confirmation."""
    below: Proportion
    """Tests with p < 0.0005."""
    alarms: Proportion
    """Nights with any finding, of a SoC or of a phone, after confirmation."""
    cost: float


def made_farm(scenario: Scenario, seed: Sequence[int], variants: int) -> Farm:
    farm = Farm(np.random.default_rng(seed), scenario.noise, Size(1, scenario.phones, variants))
    for count in range(WARM_UP):
        farm.keep(farm.measure())
        if scenario.swaps and count == WARM_UP - 3:
            farm.swap(0)
    return farm


def detection(scenario: Scenario, farms: int, seed: int, variants: int = 1000) -> Found:
    five = three = one = false = Proportion(0, 0)
    cost = 0.0
    for number in range(farms):
        farm = made_farm(scenario, (seed, number), variants)
        matrix = farm.matrix(scenario.changed)
        for _ in range(scenario.rotation):
            cases = farm.rng.permutation(variants - farm.size.sentinels)[:6]
            effect = np.zeros(variants)
            effect[cases[:5]] = np.log([1.05, 1.05, 1 / 1.05, 1.03, 1.03])
            added: Floats = np.tile(effect, scenario.phones)
            last = (scenario.phones - 1) * variants + cases[5]
            added[last] = np.log(1.05)
            said = night(farm, matrix, added)
            if scenario.phones > 1:
                five += _hits(said.socs[cases[:3]])
                three += _hits(said.socs[cases[3:5]])
                one += _hits(said.phones[[last]])
            else:
                one += _hits(said.phones[[*cases[:3], last]])
            wrong = int(said.socs[effect == 0].sum() + said.phones[added == 0].sum())
            false += Proportion(wrong, int(said.socs.sum() + said.phones.sum()))
            cost = max(cost, said.cost)
    return Found(five, three, one, false, cost)


def quiet(scenario: Scenario, nights: int, seed: int, variants: int = 1000) -> Quiet:
    screened = below = alarms = Proportion(0, 0)
    cost, farm, matrix = 0.0, None, None
    for count in range(nights):
        if count % scenario.rotation == 0 or farm is None or matrix is None:
            farm = made_farm(scenario, (seed, 1, count), variants)
            matrix = farm.matrix(scenario.changed)
        said = night(farm, matrix)
        screened += _hits(said.analysis.screened.found)
        below += _hits(said.analysis.pooled.p < 0.0005)
        alarms += _hits(np.array([said.socs.any() or said.phones.any()]))
        cost = max(cost, said.cost)
    return Quiet(screened, below, alarms, cost)


def smallest(scenario: Scenario, seed: int, variants: int = 1000) -> Floats:
    """(tests,) ``NightAnalysis.detectable`` of one night without change."""
    farm = made_farm(scenario, (seed, 2), variants)
    return night(farm, farm.matrix(scenario.changed)).analysis.detectable


@dataclass(frozen=True, slots=True)
class InTurns:
    """Comparisons of two codes on one phone, by true effect."""

    effect: float
    different: Proportion
    same: Proportion
    samples: float
    """Mean."""


def in_turns(noise: Noise, effect: float, rows: int, seed: int) -> InTurns:
    different = same = Proportion(0, 0)
    used, chunk = 0.0, 2_000
    rng = np.random.default_rng((seed, 2))
    for at in range(0, rows, chunk):
        n = min(chunk, rows - at)
        answer, _, samples = measure_in_turns(rng, np.full(n, 16.0), np.full(n, np.log1p(effect)), noise)
        different += _hits(answer == 1)
        same += _hits(answer == -1)
        used += float(samples.sum())
    return InTurns(effect, different, same, used / rows)


def _hits(flags: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Proportion:
    return Proportion(int(np.count_nonzero(flags)), flags.size)
