"""A made-up history on disk: many nights of one suite, as a farm's files and rows.

The first night is made trial by trial and stored as runs are. All others are that night's file with other
times (``Season.nights``), written by the same writer: minutes of Python become seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow
import pyarrow.parquet

from benchmarks.simulation.farm import Farm, Size
from benchmarks.simulation.noise import Noise
from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.kernel import Cost, Tolerance
from orchestrator.domain.results import CaseInfo, RunInfo, RunResults
from orchestrator.domain.trial import Numerics, Sensors, Timing, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.example.fleet import CHIPS, Phone
from orchestrator.history import trial_files
from orchestrator.history.database import DeviceRun, KnownDevice, StoredRun
from orchestrator.history.history import VERDICT_COLUMNS, History
from orchestrator.history.trial_files import Arrow
from orchestrator.history.trial_rows import COLUMNS, rows_of

_pa = cast("Any", pyarrow)
_parquet = cast("Any", pyarrow.parquet)
SUITE = "nightly"
SAMPLES = 20
FIRST = datetime(2026, 1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shape:
    phones: int
    cases: int
    nights: int

    @property
    def series(self) -> int:
        return self.phones * self.cases


class Season:
    """Four phones a SoC of the example's chips, in turn; cases of four kernels."""

    def __init__(self, shape: Shape, seed: int = 1) -> None:
        self.shape = shape
        self._rng = np.random.default_rng(seed)
        self.phones = [
            Phone(f"phone-{n:03}", CHIPS[n // 4 % len(CHIPS)], f"Phone {n}") for n in range(shape.phones)
        ]
        self.infos = [_info(n) for n in range(shape.cases)]
        farm = Farm(self._rng, Noise(), Size(1, shape.phones, shape.cases))
        self.level = farm.level.reshape(shape.phones, shape.cases)
        """Log ns in a usual night."""

    def run_id(self, night: int) -> str:
        return f"{FIRST + timedelta(days=night):%Y%m%dT%H%M%SZ}-{SUITE}-made"

    def results(self, night: int, phones: int = 0, slower: int = 0) -> RunResults:
        """
        Args:
            phones: as many of them only.
            slower: cases that run 5 % slower than they should, on all phones.
        """
        there = self.phones[: phones or None]
        run_id = self.run_id(night)
        began = FIRST + timedelta(days=night)
        trials: list[Trial] = []
        for number, phone in enumerate(there):
            shift = float(self._rng.normal(0, 0.015))
            noise = self._rng.normal(0, 0.02, (self.shape.cases, SAMPLES))
            noise[:slower] += np.log(1.05)
            times = np.exp(self.level[number][:, None] + shift + noise).astype(np.int64).tolist()
            for info, samples in zip(self.infos, times, strict=True):
                trials.append(_trial(run_id, phone, info, samples, began, slower > 0))
        return RunResults(
            run=RunInfo(
                run_id=run_id,
                suite=SUITE,
                started_at=began.isoformat(timespec="seconds"),
                tilefarm="0",
                host="benchmark",
                command="benchmarks.history",
                commit="0" * 12,
                finished_at=(began + timedelta(hours=6)).isoformat(timespec="seconds"),
                night=f"{began:%Y-%m-%d}-{SUITE}",
            ),
            devices=[_record(phone) for phone in there],
            cases={info.case.case_id: info for info in self.infos},
            trials=trials,
        )

    def nights(self, history: History) -> Iterator[tuple[str, Path]]:
        """Put all nights but the last into a history; run id and file of each."""
        first = trial_files.table(COLUMNS, rows_of(self.results(0, phones=1)))
        base = self._all_phones(first)
        with history.database.session() as session:
            for phone in self.phones:
                record = _record(phone)
                session.add(
                    KnownDevice(
                        device_id=record.device_id, soc=record.soc.name, vendor="", model="", name="",
                        virtual=True, first_run=self.run_id(0), last_run=self.run_id(self.shape.nights),
                    )
                )  # fmt: skip
        for night in range(self.shape.nights):
            run_id, began = self.run_id(night), FIRST + timedelta(days=night)
            table = self._another_night(base, run_id, began.isoformat(timespec="seconds"))
            name, digest = trial_files.put(history.files, run_id, table)
            said, said_digest = trial_files.put(history.verdict_files, run_id, self._said(base))
            with history.database.session() as session:
                session.add(
                    StoredRun(
                        run_id=run_id, suite=SUITE, night=f"{began:%Y-%m-%d}-{SUITE}",
                        started_at=began.isoformat(timespec="seconds"), finished_at="", whole_suite=True,
                        host="", commit="", tilefarm="", file=name, sha256=digest, rows=len(table),
                        stored_at="", samples_until="", verdicts=said, verdicts_sha256=said_digest,
                    )
                )  # fmt: skip
                session.flush()
                session.add_all(
                    DeviceRun(
                        run_id=run_id, device_id=p.device_id, drivers={}, os_build="1", host="", serial=""
                    )
                    for p in self.phones
                )
            yield run_id, history.files / name

    def _all_phones(self, one: Arrow) -> Arrow:
        """The rows of one phone for every phone, by case and device as files are sorted."""
        n = self.shape.phones
        rows = one.take(_pa.array(np.repeat(np.arange(len(one)), n)))
        names = np.tile(np.array([p.device_id for p in self.phones]), len(one))
        socs = np.tile(np.array([p.chip.soc for p in self.phones]), len(one))
        for column, values in (("device_id", names), ("soc", socs)):
            rows = _set(rows, column, _pa.array(values).dictionary_encode())
        order = np.argsort([info.case.case_id for info in self.infos])
        other = (self.level[:, order] - self.level[:1, order]).T.ravel()
        return self._times(rows, other)

    def _another_night(self, base: Arrow, run_id: str, started_at: str) -> Arrow:
        shape = self.shape
        shift = np.tile(self._rng.normal(0, 0.015, shape.phones), shape.cases)
        table = self._times(base, shift + self._rng.normal(0, 0.006, shape.series))
        for column, value in (("run_id", run_id), ("started_at", started_at)):
            kind = table.schema.field(column).type
            table = _set(table, column, _pa.array([value] * shape.series).cast(kind))
        return table

    def _times(self, rows: Arrow, added: np.ndarray[Any, np.dtype[np.float64]]) -> Arrow:
        """Of all samples of a row, and its summary: ``added`` to the logarithm."""
        samples = rows.column("samples_ns").combine_chunks()
        noise = self._rng.normal(0, 0.01, len(samples.flatten()))
        taken = samples.flatten().to_numpy() * np.exp(np.repeat(added, SAMPLES) + noise)
        moved = _pa.ListArray.from_arrays(samples.offsets, _pa.array(taken.astype(np.int64)))
        rows = _set(rows, "samples_ns", moved)
        return _set(rows, "log_ns", _pa.array(rows.column("log_ns").to_numpy() + added))

    def _said(self, base: Arrow) -> Arrow:
        """Every series was the same and counts."""
        n = len(base)
        ids = [base.column("device_id"), base.column("case_id")]
        flags = [_pa.array(np.full(n, 2, np.int8)), _pa.array(np.ones(n, np.bool_))]
        metadata = {"tilefarm_format": str(trial_files.FORMAT)}
        return _pa.table([*ids, *flags], names=list(VERDICT_COLUMNS)).replace_schema_metadata(metadata)


def _set(table: Arrow, column: str, values: Arrow) -> Arrow:
    return table.set_column(table.schema.get_field_index(column), table.schema.field(column), values)


def _record(phone: Phone) -> DeviceRecord:
    return phone.record("1.0", "1")


def _info(number: int) -> CaseInfo:
    kernel = ("attention_flash", "sgemm", "blur_tonemap_fused", "attention_naive")[number % 4]
    case = Case(
        kernel=kernel,
        op=kernel.split("_")[0],
        workload={"seq": 64 * (1 + number // 80)},
        axes={
            "api": ("gles", "vulkan")[number // 4 % 2],
            "precision": ("fp32", "fp16_storage")[number // 8 % 2],
            "tile": ("16x16", "32x16", "64x16", "32x32", "64x32")[number // 16 % 5],
        },
        inputs="normal",
    )
    return CaseInfo(
        case=case,
        code_hash=sha256_hex(f"{number}".encode())[:16],
        cost=Cost(flops=10**9, bytes_min=10**6, bytes_moved=10**7),
        tolerance={"o": Tolerance(atol=2e-3, rtol=0.0, nmse=1e-6)},
        workgroup=(64, 1, 1),
        shared_bytes=0,
        dispatches=1,
        output_shape={"o": [64, 64]},
    )


def _trial(
    run_id: str, phone: Phone, info: CaseInfo, samples: list[int], began: datetime, changed: bool
) -> Trial:
    fast = int(phone.chip.clock_mhz[0] * 1e6)
    digest = sha256_hex(info.case.case_id.encode())
    made = Numerics(
        buffer="o", dtype="f32", count=4096, hash=digest, hashes={digest: 12}, guard="ok", unwritten=0,
        nan=0, inf=0, nonfinite_mismatch=0, failing=0, max_abs=4e-7, mean_abs=4e-8, p99_abs=2e-7,
        max_rel=3e-5, mean_rel=2e-7, p99_rel=4e-6, ulp_max=90, ulp_p50=1, ulp_p99=9, nmse=1e-13, cosine=1.0,
        ref_absmax=0.42,
    )  # fmt: skip
    return Trial(
        run_id=run_id,
        device_id=phone.device_id,
        case_id=info.case.case_id,
        attempt=1,
        verdict=Verdict.PASS,
        reason="",
        code_hash=info.code_hash + ("-changed" if changed else ""),
        started_at=began.isoformat(timespec="seconds"),
        duration_ms=900,
        driver=f"{phone.chip.renderer} 1.0",
        timing=Timing(
            compile_ns=[38_000_000],
            first_ns=samples[0],
            wall_ns=[s + 40_000 for s in samples],
            gpu_ns=samples,
            gpu_timer="trusted",
            slope_ns=samples[0],
            slope_n=8,
        ),
        sensors=Sensors(gpu_hz=[fast] * (SAMPLES + 1), temp_mc=[33_000] * (SAMPLES + 1), throttled=False),
        outputs=[made],
    )
