"""The nights of one variant on the phones of one SoC: which count, and what they measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from orchestrator.analysis.speed.night import Basis
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.history.database import KnownCase
from orchestrator.history.query import NightTable
from orchestrator.verdicts.best_phones import API, Phones


@dataclass(frozen=True, slots=True)
class VariantNights:
    """Rows are those of the phones that have the variant."""

    table: NightTable
    case: KnownCase
    phone: Ints
    """(rows,) index of the SoC's phones"""
    series: Ints
    """(rows,) of the table"""
    code: int
    """Of its newest trial on the SoC; −1: none."""
    newest: int
    """Night of that trial; −1: none."""
    counts: Bools
    """(rows, nights)"""

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, object], ...]]:
        """The same for cases that differ in their data's seed only."""
        return self.case.kernel, tuple(sorted(self.case.axes.items()))

    @property
    def devices(self) -> list[str]:
        return [self.table.series[row][0] for row in self.series.tolist()]

    def times(self, phones: int) -> Floats:
        """(phones, nights) log times that count."""
        found = np.full((phones, len(self.table.runs)), np.nan)
        found[self.phone] = np.where(self.counts, self.table.log_ns[self.series], np.nan)
        return found

    def worst(self, name: str) -> float:
        """Largest error of all nights that count; NaN where one of them is not known."""
        seen = self.table.numerics[name][self.series][self.counts]
        return float(seen.max()) if seen.size else nan

    @property
    def clocked(self) -> bool:
        """Each of its numbers is of one clock state: none is a percentile for want of clock readings."""
        return bool((self.table.basis[self.series][self.counts] == int(Basis.CLOCK_STATE)).all())


@dataclass(frozen=True, slots=True)
class Reader:
    """Of one SoC."""

    table: NightTable
    phones: Phones
    devices: Mapping[str, int]
    """Device → index."""
    named: Bools
    """(codes,) that are no empty text: a trial that infrastructure ended may have none."""
    passed: int
    """Code of the verdict; −2: nothing passed."""

    @staticmethod
    def of(table: NightTable, phones: Phones, devices: Sequence[str]) -> "Reader":
        return Reader(
            table,
            phones,
            {device: n for n, device in enumerate(devices)},
            np.array([bool(code) for code in table.codes], np.bool_),
            table.verdicts.index("pass") if "pass" in table.verdicts else -2,
        )

    def read(self, case: KnownCase, rows: Sequence[int]) -> VariantNights:
        """``rows``: series of the table, of one case."""
        table, series = self.table, np.array(rows, np.int64)
        code = table.code[series]
        there = (code >= 0) & (self.named[code] if len(self.named) else False)
        nights = np.flatnonzero(there.any(axis=0))
        night = int(nights[-1]) if len(nights) else -1
        newest = int(code[there[:, night], night].max()) if night >= 0 else -1
        api = str(case.axes.get(API, ""))
        names = [table.series[row][0] for row in rows]
        driver = np.array([self.phones.newest.get((name, api), -2) for name in names], np.int64)
        counts = np.isfinite(table.log_ns[series]) & (table.verdict[series] == self.passed)
        counts &= there & (code == newest) & (table.driver[series] == driver[:, None])
        phone = np.array([self.devices[name] for name in names], np.int64)
        return VariantNights(table, case, phone, series, newest, night, counts)
