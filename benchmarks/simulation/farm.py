"""A made-up farm, night after night: histories for ``analysis.speed``, and phones that measure again."""

from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.simulation.noise import Noise, draw
from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.analyse import Matrix
from orchestrator.analysis.speed.baseline import History, Tonight
from orchestrator.analysis.speed.night import Basis, Nights, summarise
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE


@dataclass(frozen=True, slots=True)
class Size:
    socs: int = 1
    phones: int = 3
    """Of each SoC."""
    variants: int = 1000
    sentinels: int = 8


@dataclass(slots=True)
class Farm:
    """Series are ordered by device, then variant."""

    rng: np.random.Generator
    noise: Noise
    size: Size
    level: Floats = field(init=False)
    """(series,) log ns in a usual night."""
    epoch: Ints = field(init=False)
    """(devices,)"""
    device: Ints = field(init=False)
    test: Ints = field(init=False)
    soc: Ints = field(init=False)
    night: Floats = field(init=False)
    """(series,) level of the last night, without any effect: what a second measurement finds again."""
    _past: list[tuple[Nights, Ints, Bools]] = field(default_factory=list[tuple[Nights, Ints, Bools]])

    def __post_init__(self) -> None:
        devices, variants = self.size.socs * self.size.phones, self.size.variants
        self.device = np.repeat(np.arange(devices, dtype=np.int64), variants)
        self.soc = np.arange(devices, dtype=np.int64) // self.size.phones
        self.test = self.soc[self.device] * variants + np.tile(np.arange(variants, dtype=np.int64), devices)
        self.epoch = np.zeros(devices, np.int64)
        variant = self.rng.uniform(np.log(2e5), np.log(5e7), self.size.socs * variants)
        phone = self.rng.normal(0, 0.07, devices)
        self.level = variant[self.test] + phone[self.device] + self.rng.normal(0, 0.03, len(self.test))
        self.night = self.level

    def matrix(self, changed_share: float = 1.0) -> Matrix:
        """All codes changed is the worst for the budget."""
        tests = self.size.socs * self.size.variants
        sentinel = np.tile(
            np.arange(self.size.variants) >= self.size.variants - self.size.sentinels, len(self.soc)
        )
        return Matrix(
            device=self.device,
            test=self.test,
            soc=self.soc,
            code_changed=self.rng.random(tests) < changed_share,
            threshold=np.full(tests, RULE.threshold),
            sentinel=sentinel,
        )

    def swap(self, device: int) -> None:
        """Another phone under the old name: other times, a new epoch."""
        self.epoch[device] += 1
        self.level = np.where(self.device == device, self.level + self.rng.normal(0, 0.1), self.level)

    def measure(self, effect: Floats | None = None) -> Nights:
        """One night more. ``effect``: (series,) log ratio that this night's code adds."""
        shift = self.rng.normal(0, self.noise.night_sd, len(self.soc))
        own = self.rng.normal(0, self.noise.own_sd, len(self.level)) if self.noise.own_sd else 0.0
        self.night = self.level + shift[self.device] + own
        return self._summary(self.night if effect is None else self.night + effect)

    def again(self, effect: Floats | None = None) -> Nights:
        """The same night measured a second time: its shift stays, its samples are new."""
        return self._summary(self.night if effect is None else self.night + effect)

    def keep(self, night: Nights, accepted: Bools | None = None) -> None:
        ok = np.ones(len(self.level), np.bool_) if accepted is None else accepted
        away = self.rng.random(len(self.soc)) < self.noise.missing
        gone = away[self.device]
        night = replace(night, clock_hz=np.where(gone, np.nan, night.clock_hz))
        self._past.append((night, self.epoch[self.device], ok & ~gone))
        del self._past[:-20]

    def history(self) -> History:
        return History(
            log_ns=np.stack([n.log_ns for n, _, _ in self._past], axis=1),
            accepted=np.stack([ok for _, _, ok in self._past], axis=1),
            basis=np.stack([n.basis for n, _, _ in self._past], axis=1),
            clock_hz=np.stack([n.clock_hz for n, _, _ in self._past], axis=1),
            epoch=np.stack([e for _, e, _ in self._past], axis=1),
        )

    def tonight(self, night: Nights) -> Tonight:
        return Tonight(night.log_ns, night.basis, night.clock_hz, self.epoch[self.device])

    def _summary(self, level: Floats) -> Nights:
        """At the usual clock of the nights before, accepted or not, as ``history/usual.py`` has it."""
        shown = [
            np.where(night.basis == Basis.CLOCK_STATE, night.clock_hz, np.nan)
            for night, _, _ in self._past[-RULE.window :]
        ]
        usual = rows.median(np.stack(shown, axis=1)) if shown else None
        return summarise(draw(self.rng, level, self.noise), usual)
