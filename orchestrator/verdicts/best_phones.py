"""Phones of the nights that best variants are chosen from, and which driver of each counts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
        there = np.unique(np.nonzero(table.code[[r for a in apis for r in rows[device, a]]] >= 0)[1])
        known = devices[device]
        socs[known.soc].append(
            Measured(
                device_id=device,
                drivers={a: table.drivers[newest[device, a]] for a in apis if (device, a) in newest},
                runs=[table.runs[n] for n in there.tolist()],
                driver_since={a: table.runs[since[device, a]] for a in apis if (device, a) in since},
                virtual=known.virtual,
            )
        )
    vendors = {soc: devices[own[0].device_id].vendor for soc, own in socs.items()}
    return Phones(socs, vendors, newest)


def driver_warnings(phones: Sequence[Measured], dates: Mapping[str, str]) -> list[str]:
    """Drivers that changed within the nights looked at, and those that differ between phones.

    Args:
        dates: run id → date.
    """
    changed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for phone in phones:
        for api, run in phone.driver_since.items():
            changed[dates[run], phone.drivers[api]].append(phone.device_id)
    said = [
        f"the driver of {', '.join(ids)} changed on {date}: of its API only nights with {driver} count"
        for (date, driver), ids in sorted(changed.items())
    ]
    for api in sorted({a for p in phones for a in p.drivers}):
        drivers = sorted({p.drivers[api] for p in phones if api in p.drivers})
        if len(drivers) > 1:
            said.append(f"its phones have {len(drivers)} different drivers of {api}: {', '.join(drivers)}")
    return said


def _driver(table: NightTable, rows: Sequence[int], night: int) -> int:
    """The one of most trials; −1: none named one."""
    named = [d for d in table.driver[list(rows), night].tolist() if d >= 0 and table.drivers[d]]
    return max(sorted(set(named)), key=named.count) if named else -1
