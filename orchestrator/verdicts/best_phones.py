"""Phones of the nights that best variants are chosen from, and which driver of each counts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.speed.rows import Bools
from orchestrator.domain.best import Measured
from orchestrator.history.database import KnownCase, KnownDevice
from orchestrator.history.query import NightTable

API = "api"


@dataclass(frozen=True, slots=True)
class Phones:
    socs: Mapping[str, Sequence[Measured]]
    """SoC → its phones, sorted by id."""
    vendors: Mapping[str, str]
    newest: Mapping[tuple[str, str], int]
    """(device, API) → index of the driver that counts in the table's ``drivers``."""

    def of(self, soc: str) -> list[Measured]:
        return list(self.socs[soc])

    def vendor(self, soc: str) -> str:
        return self.vendors[soc]


def phones_of(
    table: NightTable, cases: Mapping[str, KnownCase], devices: Mapping[str, KnownDevice]
) -> Phones:
    """Phones with a trial of a variant. A trial that died before it named its driver names none."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, (device, case_id) in enumerate(table.series):
        if (case := cases.get(case_id)) is not None:
            rows[device, str(case.axes.get(API, ""))].append(row)
    newest: dict[tuple[str, str], int] = {}
    since: dict[tuple[str, str], int] = {}
    for key, own in rows.items():
        by_night = [_driver(table, own, night) for night in range(len(table.runs))]
        named = [n for n, driver in enumerate(by_night) if driver >= 0]
        if not named:
            continue
        newest[key] = by_night[named[-1]]
        others = [n for n in named if by_night[n] != newest[key]]
        if others:
            since[key] = next(n for n in named if n > others[-1])
    socs: dict[str, list[Measured]] = defaultdict(list)
    for device in sorted({d for d, _ in rows}):
        apis = sorted(api for d, api in rows if d == device)
        there = [_ran(table, rows[device, a], newest.get((device, a))) for a in apis]
        known = devices[device]
        socs[known.soc].append(
            Measured(
                device_id=device,
                drivers={a: table.drivers[newest[device, a]] for a in apis if (device, a) in newest},
                runs=[run for run, counts in zip(table.runs, np.any(there, axis=0), strict=True) if counts],
                driver_since={a: table.runs[since[device, a]] for a in apis if (device, a) in since},
                virtual=known.virtual,
            )
        )
    vendors = {soc: devices[own[0].device_id].vendor for soc, own in socs.items()}
    return Phones(socs, vendors, newest)


def driver_warnings(phones: Sequence[Measured], dates: Mapping[str, str]) -> dict[str, list[str]]:
    """API → its drivers that changed within the nights looked at, and those that differ between phones. An
    API without a warning is left out.

    Args:
        dates: run id → date.
    """
    said: dict[str, list[str]] = {}
    for api in sorted({a for p in phones for a in p.drivers}):
        changed: dict[tuple[str, str], list[str]] = defaultdict(list)
        for phone in phones:
            if (run := phone.driver_since.get(api)) is not None:
                changed[dates[run], phone.drivers[api]].append(phone.device_id)
        own = [
            f"the {api} driver of {', '.join(ids)} changed on {date}: only nights with {driver} count"
            for (date, driver), ids in sorted(changed.items())
        ]
        drivers = sorted({p.drivers[api] for p in phones if api in p.drivers})
        if len(drivers) > 1:
            own.append(f"its phones have {len(drivers)} different drivers of {api}: {', '.join(drivers)}")
        if own:
            said[api] = own
    return said


def _ran(table: NightTable, rows: Sequence[int], driver: int | None) -> Bools:
    """(nights,) In which something ran with this driver of one API; None: no trial named one."""
    if driver is None:
        return np.zeros(len(table.runs), np.bool_)
    return (table.driver[list(rows)] == driver).any(axis=0)


def _driver(table: NightTable, rows: Sequence[int], night: int) -> int:
    """The one of most trials; −1: none named one."""
    named = [d for d in table.driver[list(rows), night].tolist() if d >= 0 and table.drivers[d]]
    return max(sorted(set(named)), key=named.count) if named else -1
