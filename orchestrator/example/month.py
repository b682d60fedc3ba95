"""The example's nights, one after another: what a farm would have stored, made from a seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from math import exp, prod

import numpy as np
from numpy.random import Generator, default_rng

from orchestrator import __version__
from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import sha256_hex, stable_id
from orchestrator.domain.kernel import Cost, Kernel, Tolerance
from orchestrator.domain.results import CaseInfo, MissedNight, Missing, RunInfo, RunResults
from orchestrator.domain.trial import Element, Numerics, Sensors, Timing, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.example.fleet import Chip, Phone, phones, swapped_in
from orchestrator.example.samples import PHONE_SD, SAMPLES, Weather, measure, weather
from orchestrator.example.truth import (
    CHANGES,
    DRIFTS,
    DRIVER_NIGHT,
    FIRST_NIGHT,
    GONE_FROM,
    MISSED,
    NEW_DRIVER,
    NIGHTS,
    NUMBERS,
    OLD_DRIVER,
    SWAP_NIGHT,
    code_version,
)
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.plan import Plan, build_plan

SUITE = "nightly"
CACHED_BYTES = 4 << 20
"""Of a copy's source, up to which it stays in the chip's last cache."""
CACHE_GAIN = 2.5
"""What such a copy moves, against the memory."""


class Month:
    """
    Args:
        matrix: the example's (``matrix.yaml`` beside this file).
        seed: one seed always makes the same month.
    """

    def __init__(self, matrix: Matrix, kernels: Mapping[str, Kernel], seed: int) -> None:
        self._matrix = matrix
        self._kernels = kernels
        self._seed = seed
        self._infos: dict[str, CaseInfo] = {}

    def nights(self) -> Iterator[RunResults]:
        """Oldest first; nights that never ran are left out."""
        for night in range(1, NIGHTS + 1):
            if night not in MISSED:
                yield self.night(night)

    def night(self, number: int) -> RunResults:
        fleet = {p.device_id: p for p in phones_of(number)}
        records = [p.record(_driver(p.chip, number), "UP1A.231005") for p in fleet.values()]
        plan = build_plan(self._matrix, SUITE, self._kernels, records)
        day = date.fromisoformat(FIRST_NIGHT) + timedelta(days=number - 1)
        run_id = f"{day:%Y%m%d}T010000Z-{SUITE}-night"
        trials: list[Trial] = []
        infos: dict[str, CaseInfo] = {}
        for planned in plan.devices:
            phone = fleet[planned.device.device_id]
            sky = self.sky(number, phone)
            for index, item in enumerate(planned.cases):
                info = self._info(item.case, number)
                infos[item.case_id] = info
                progress = index / max(1, len(planned.cases) - 1)
                trials.append(self._trial(run_id, number, planned.device, phone, info, sky, progress))
        return RunResults(
            run=_run_info(run_id, day, number),
            devices=records,
            cases=infos | self._pruned_everywhere(plan, infos, number),
            trials=trials,
            pruned=list(plan.pruned),
            missing=[Missing("mt6989-3", "", "offline on shelf-2: not in adb's list")]
            if number >= GONE_FROM
            else [],
        )

    def true_ns(self, soc: str, case: Case, night: int) -> float:
        """Time of a case on an average phone of a SoC, changes included and noise left out.

        Raises:
            StopIteration: no SoC of the example.
        """
        chip = next(p.chip for p in phones() if p.chip.soc == soc)
        changed = [c for c in CHANGES if not c.devices and c.holds(night, soc, "", case)]
        return self._base_ns(chip, self._info(case, night)) * float(np.prod([c.factor for c in changed]))

    def _trial(
        self,
        run_id: str,
        night: int,
        device: DeviceRecord,
        phone: Phone,
        info: CaseInfo,
        sky: Weather,
        progress: float,
    ) -> Trial:
        case = info.case
        timing, sensors = self.timed("trial", night, phone, info, sky, progress)
        outputs, verdict, reason = self._numerics(night, phone.chip, info)
        profile = device.profile(str(case.axes["api"]))
        return Trial(
            run_id=run_id,
            device_id=phone.device_id,
            case_id=case.case_id,
            attempt=1,
            verdict=verdict,
            reason=reason,
            code_hash=info.code_hash,
            started_at=(_begin(night) + timedelta(minutes=50 * progress)).isoformat(timespec="seconds"),
            duration_ms=round(sum(timing.wall_ns) / 1e6) + 150,
            driver=profile.driver_text if profile else "",
            timing=timing,
            sensors=sensors,
            outputs=outputs,
        )

    def timed(
        self,
        word: str,
        night: int,
        phone: Phone,
        info: CaseInfo,
        sky: Weather,
        progress: float,
        count: int = SAMPLES,
    ) -> tuple[Timing, Sensors]:
        """``count`` samples of a case on a phone in a night.

        Args:
            word: what they are for; another word draws other noise.
            progress: through the night, 0 to 1.
        """
        case, soc = info.case, phone.chip.soc
        random = self._random(word, night, phone.device_id, case.case_id)
        changed = [c.factor for c in CHANGES if c.holds(night, soc, phone.device_id, case)]
        creeping = [d.factor(night, soc, case) for d in DRIFTS]
        factor = self._phone_factor(phone) * float(np.prod(changed + creeping))
        return measure(random, phone.chip, self._base_ns(phone.chip, info), sky, progress, factor, count)

    def sky(self, night: int, phone: Phone) -> Weather:
        return weather(self._random("weather", night, phone.device_id))

    def info(self, case_id: str, night: int) -> CaseInfo:
        """Of a case that was planned in some night."""
        return self._info(self._infos[case_id].case, night)

    def _numerics(self, night: int, chip: Chip, info: CaseInfo) -> tuple[list[Numerics], Verdict, str]:
        case = info.case
        wrong = {n.flag for n in NUMBERS if n.holds(night, chip.soc, case)}
        half = case.axes.get("precision") == "fp16_storage"
        exact = info.role == "probe"
        worst = 0.0 if exact else (3e-4 if half else 4e-7) * (2.2 if "nmse_doubled" in wrong else 1.0)
        limit = "limit_crossed" in wrong
        made_of = f"{case.case_id} {info.code_hash} {chip.renderer}" + (" wrong" if limit else "")
        digest = sha256_hex(made_of.encode())
        hashes = {digest: 12}
        if "nondeterministic" in wrong:
            hashes = {digest: 10, sha256_hex(b"another " + digest.encode()): 2}
        ((buffer, shape),) = info.output_shape.items()
        count = prod(shape)
        made = Numerics(
            buffer=buffer, dtype="f16" if half else "f32", count=count, hash=digest, hashes=hashes,
            guard="ok", unwritten=0, nan=0, inf=0, nonfinite_mismatch=0, failing=0, max_abs=worst,
            mean_abs=worst / 9, p99_abs=worst / 2, max_rel=worst * 30, mean_rel=worst / 3, p99_rel=worst * 4,
            ulp_max=0 if exact else 400 if half else 90, ulp_p50=int(not exact), ulp_p99=0 if exact else 9,
            nmse=worst**2, cosine=1.0, ref_absmax=0.42,
        )  # fmt: skip
        if limit:
            made = _half_a_tile_wrong(made, shape)
            return (
                [made],
                Verdict.MISMATCH,
                f"{buffer}: {made.failing} of {count} elements outside of the tolerance",
            )
        if "nondeterministic" in wrong:
            return [made], Verdict.NONDETERMINISTIC, f"{buffer}: 2 different results in 12 replays"
        return [made], Verdict.PASS, ""

    def _info(self, case: Case, night: int) -> CaseInfo:
        """Facts of a case; its code hash changes with its code."""
        known = self._infos.get(case.case_id)
        if known is None:
            kernel = self._kernels[case.kernel]
            passes = kernel.passes(case)
            out = next(b for b in kernel.buffers(case) if b.role in ("out", "inout"))
            exact = kernel.role == "probe"
            known = self._infos[case.case_id] = CaseInfo(
                case=case,
                code_hash="",
                role="probe" if exact else "op",
                cost=kernel.cost(case),
                tolerance={out.name: Tolerance(0.0, 0.0, 0.0) if exact else Tolerance(2e-3, 0.0, 1e-6)},
                workgroup=passes[0].workgroup,
                shared_bytes=max(p.shared_bytes for p in passes),
                dispatches=len(passes),
                output_shape={out.name: _shape(case, out.count)},
                repeats=20,
                replays=12,
            )
        return replace(known, code_hash=code_hash(case, code_version(case, night)))

    def _pruned_everywhere(
        self, plan: Plan, infos: Mapping[str, CaseInfo], night: int
    ) -> dict[str, CaseInfo]:
        return {i: self._info(c, night) for i, c in plan.cases.items() if i not in infos}

    def _base_ns(self, chip: Chip, info: CaseInfo) -> float:
        """Roofline of the SoC, which its probes reach, and how near to it this variant comes, drawn once for
        SoC and case."""
        cost: Cost = info.cost
        floor = max(cost.flops / chip.gflops, cost.bytes_moved / chip.gbytes)
        if info.role == "probe":
            cached = int(info.case.workload.get("bytes", CACHED_BYTES + 1)) <= CACHED_BYTES
            return floor / CACHE_GAIN if cached else floor
        draw = self._random("variant", chip.soc, info.case.case_id)
        return floor * (1.15 + 0.8 * float(draw.random()) ** 2)

    def _phone_factor(self, phone: Phone) -> float:
        """Phones of one model differ by 10 to 20 %."""
        return exp(float(self._random("phone", phone.device_id).normal(0, PHONE_SD)))

    def _random(self, *words: object) -> Generator:
        digest = sha256_hex(" ".join(map(str, (self._seed, *words))).encode())
        return default_rng(int(digest[:16], 16))


def _shape(case: Case, count: int) -> list[int]:
    """Of an output of ``count`` elements; with its dimensions where the example has errors to place."""
    if case.op != "attention":
        return [count]
    return [int(case.workload[name]) for name in ("heads", "seq", "head_dim")]


def _half_a_tile_wrong(good: Numerics, shape: Sequence[int]) -> Numerics:
    """Rows 320 to 383 of the second head: the second half of a tile of 128."""
    _, rows, columns = shape
    begin = (rows + 320) * columns
    got, ref = 0.9, 0.2
    bits = 11 if good.dtype == "f16" else 24
    return replace(
        good,
        failing=64 * columns,
        max_abs=got - ref,
        mean_abs=4e-4,
        max_rel=(got - ref) / ref,
        mean_rel=3e-3,
        ulp_max=round((got - ref) * 2 ** (bits + 2)),  # 0.2 is between 1/8 and 1/4
        nmse=3e-3,
        cosine=0.9985,
        worst=Element(begin + 31 * columns + 22, got, ref),
        first_bad=Element(begin, 0.4, 0.2),
    )


def code_hash(case: Case, version: int) -> str:
    return stable_id({"case": case.case_id, "code": version})


def number_of(run_id: str) -> int:
    """Night of a run of the month, from 1."""
    day = datetime.strptime(run_id[:8], "%Y%m%d").replace(tzinfo=UTC).date()
    return (day - date.fromisoformat(FIRST_NIGHT)).days + 1


def phones_of(night: int) -> list[Phone]:
    there = [p for p in phones() if not (p.device_id == "mt6989-3" and night >= GONE_FROM)]
    if night >= SWAP_NIGHT:
        return [swapped_in() if p.device_id == "tensor-g3-2" else p for p in there]
    return there


def _driver(chip: Chip, night: int) -> str:
    if chip.soc == "SM8650":
        return NEW_DRIVER if night >= DRIVER_NIGHT else OLD_DRIVER
    return f"{chip.clock_mhz[0]}.0"


def _begin(night: int) -> datetime:
    day = date.fromisoformat(FIRST_NIGHT) + timedelta(days=night - 1)
    return datetime(day.year, day.month, day.day, 1, tzinfo=UTC)


def _missed_before(night: int) -> list[MissedNight]:
    """Those since the last one that ran, as the farm's schedule tells them."""
    found: list[MissedNight] = []
    while night - 1 - len(found) in MISSED:
        day = _begin(night - 1 - len(found))
        found.insert(0, MissedNight(f"{day:%Y-%m-%d}-{SUITE}", "the host was off"))
    return found


def _run_info(run_id: str, day: date, night: int) -> RunInfo:
    return RunInfo(
        run_id=run_id,
        suite=SUITE,
        started_at=_begin(night).isoformat(timespec="seconds"),
        tilefarm=__version__,
        host="example",
        command="tilefarm example",
        commit=sha256_hex(f"commit of night {max(n for n in (1, 22, 24, 25) if n <= night)}".encode())[:12],
        finished_at=(_begin(night) + timedelta(minutes=55)).isoformat(timespec="seconds"),
        missed_nights=_missed_before(night),
        night=f"{day.isoformat()}-{SUITE}",
    )
