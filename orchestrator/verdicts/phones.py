"""What each phone did in a night as a whole: its common shift, and whatever its keeper should hear."""

from math import isfinite, nan

import numpy as np

from orchestrator.analysis.speed.discovery import q_values
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.finding import DeviceNight, Group, SpeedWord
from orchestrator.verdicts.rows import SHOWN
from orchestrator.verdicts.speed import Judged


def device_night(judged: Judged, device: int) -> DeviceNight:
    nights = judged.nights
    name = judged.devices[device]
    own = np.flatnonzero(judged.matrix.device == device).tolist()
    total = nights.table.log_ns.shape[1]
    columns = np.flatnonzero(np.append(judged.night.baseline.any(axis=0), np.True_))
    shift, frozen = np.full(total, nan), np.full(total, nan)
    shift[columns] = judged.night.shifts.all[device]
    frozen[columns] = judged.night.shifts.sentinels[device]
    environments = [
        next(filter(None, (nights.table.driver_text(s, n) for s in own)), "") for n in range(total)
    ]
    of_soc = int(judged.matrix.soc[device])
    soc = judged.socs[of_soc]
    whole = judged.night.everything
    delta = float(whole.deltas.delta[device])
    alone = [s for s in own if SPEEDS[int(judged.verdicts.series[s])] in (Speed.REGRESSED, Speed.IMPROVED)]
    items: list[str] = []
    if not any(nights.measured[s] for s in own):
        items.append("not measured tonight")
    if alone:
        items.append(f"{len(alone)} cases moved on this phone alone")
    word: SpeedWord = "same"
    own_q = float(q_values(whole.deltas.p)[device])
    unusual = own_q <= RULE.q and abs(delta) > RULE.threshold
    if isfinite(delta) and (whole.screened.found[of_soc] or unusual):
        word = "regressed" if delta > 0 else "improved"
        items.append(f"all its cases together {np.expm1(delta):+.1%}")
    return DeviceNight(
        device_id=name,
        soc=soc,
        shift=[round(float(v), 5) for v in shift[-SHOWN:]],
        sentinels=[round(float(v), 5) for v in frozen[-SHOWN:]],
        verdict=word,
        environment=environments[-SHOWN:],
        items=items,
    )


def everything(judged: Judged) -> list[Group]:
    """SoCs all of whose cases moved together: taken off each series, it would be seen nowhere else."""
    whole = judged.night.everything
    found: list[Group] = []
    for n, soc in enumerate(judged.socs):
        delta = float(whole.pooled.delta[n]) if n < len(whole.pooled.delta) else nan
        if not isfinite(delta) or not whole.screened.found[n]:
            continue
        how = "slower" if delta > 0 else "faster"
        found.append(
            Group(
                group_id=f"all-{soc}-{how}",
                sentence=f"all variants together on {soc}: {abs(np.expm1(delta)):.1%} {how}",
                cause="environment",
                what="regressed" if delta > 0 else "improved",
                soc=soc,
            )
        )
    return found
