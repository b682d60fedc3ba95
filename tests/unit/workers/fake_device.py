"""A device in memory with a scripted runner: everything above the transport runs on it without a GPU."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import DeviceLost, InfraError, NoSpace, TransferFailed
from tests.results_fixture import device as device_record
from tests.unit.workers import streams
from workers.bench import Bench
from workers.transports.base import MAX_PULL_BYTES, CommandResult, Device

RUNNER_NAME = "tilefarm-runner"
WORKDIR = "/data/local/tmp/tilefarm"
SENSORS = {"gpu_hz": [], "temp_mc": [41_000, 41_500], "throttled": None}
RUNNER = f"{WORKDIR}/bin/tilefarm-runner-0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Act:
    """What the scripted GPU does with one case."""

    output: Sequence[float] | None = None
    """float32 values of every output; None: the reference, rounded."""
    status: str = "ok"
    fields: Mapping[str, object] = field(default_factory=dict[str, object])
    """Of an end record that is not ok."""
    changes: Mapping[str, object] = field(default_factory=dict[str, object])
    """What an ok record says of its outputs beside the truth."""
    keeps: bool = True
    """False: the tensor could not be written on the device."""
    timing: Mapping[str, object] = field(default_factory=dict[str, object])
    """Of an ok record, instead of the usual times."""
    kept: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Bytes of unchecked outputs; one that is not named is all zero."""
    kept_changes: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the record says of them beside the truth."""


@dataclass(slots=True)
class FakeDevice:
    """Implements :class:`workers.transports.base.Device`; the runner is a script."""

    script: dict[str, Act] = field(default_factory=dict[str, Act])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """In the order in which they were written, or read by the runner."""
    capacity: int | None = None
    """Bytes that all files may take together."""
    link_lasts: int | None = None
    """The link drops after this many bytes of the runner's output."""
    stdout: Callable[[bytes], bytes] = field(default=lambda text: text)
    """Changes the runner's output on its way."""
    exit_code: int = 0
    on_pull: Callable[[str, bytes], bytes] = field(default=lambda _path, data: data)
    """Damages a pulled file, or raises."""
    remove_error: InfraError | None = None
    probe_result: CommandResult = field(default_factory=lambda: CommandResult(3, b""))
    props: dict[str, str] = field(default_factory=dict[str, str])
    pushed: list[str] = field(default_factory=list[str])
    pulled: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    modes: dict[str, int] = field(default_factory=dict[str, int])
    jobs: list[str] = field(default_factory=list[str])
    """Every job.txt that the runner was given."""

    @property
    def serial(self) -> str:
        return "adb-FAKE (2)._adb-tls-connect._tcp"

    @property
    def workdir(self) -> str:
        return WORKDIR

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """The runner's probe is scripted, files are listed by age; every other command says nothing."""
        assert timeout_s > 0
        del env
        if list(argv[:2]) == ["ls", "-1tr"]:
            return CommandResult(0, "\n".join(self.list_dir(argv[2], timeout_s=1)).encode())
        return self.probe_result if RUNNER_NAME in " ".join(argv) else CommandResult(0, b"")

    def stream(
        self,
        argv: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        timeout_s: float,
        idle_timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> int:
        del env
        assert list(argv[:2]) == [RUNNER, "run"]
        assert timeout_s > idle_timeout_s > 0
        job = self.files[f"{argv[2]}/job.txt"].decode("ascii")
        self.jobs.append(job)
        text = self.stdout(self._execute(argv[2], job))
        cut = text[: self.link_lasts] if self.link_lasts is not None else text
        for line in cut.splitlines(keepends=True):
            if line.endswith(b"\n"):
                on_line(line)
        if cut != text:
            raise DeviceLost(f"{self.serial}: the link dropped after {len(cut)} bytes")
        return self.exit_code

    def push(self, data: bytes, path: str, *, timeout_s: float, mode: int = 0o644) -> None:
        del timeout_s
        others = sum(len(d) for p, d in self.files.items() if p != path)
        if self.capacity is not None and others + len(data) > self.capacity:
            raise NoSpace(f"{self.serial}: push {path}: No space left on device")
        self.files[path] = data
        self.modes[path] = mode
        self.pushed.append(path)

    def pull(self, path: str, *, timeout_s: float, at_most: int = MAX_PULL_BYTES) -> bytes:
        del timeout_s
        self.pulled.append(path)
        if path not in self.files:
            raise TransferFailed(f"{self.serial}: pull {path}: No such file or directory")
        if len(self.files[path]) > at_most:
            raise TransferFailed(f"{self.serial}: pull {path}: longer than {at_most} bytes")
        return self.on_pull(path, self.files[path])

    def list_dir(self, path: str, *, timeout_s: float) -> Mapping[str, int]:
        del timeout_s
        inside = {
            p.removeprefix(f"{path}/"): len(d) for p, d in self.files.items() if p.startswith(f"{path}/")
        }
        return {name: size for name, size in inside.items() if "/" not in name}

    def remove(self, path: str, *, timeout_s: float) -> None:
        del timeout_s
        if self.remove_error is not None:
            raise self.remove_error
        self.removed.append(path)
        for name in [p for p in self.files if p == path or p.startswith(f"{path}/")]:
            del self.files[name]

    def properties(self, *, timeout_s: float) -> Mapping[str, str]:
        del timeout_s
        return dict(self.props)

    def blobs(self) -> set[str]:
        return set(self.list_dir(f"{WORKDIR}/blobs", timeout_s=1))

    def _execute(self, folder: str, job: str) -> bytes:
        """The runner's output for a job file: what the script says, with true digests."""
        run_id, named, cases = _read_job(job)
        blobs = posixpath.normpath(posixpath.join(folder, named))
        for path in [f"{blobs}/{word}" for word in job.split() if f"{blobs}/{word}" in self.files]:
            self.files[path] = self.files.pop(path)
        lines = [streams.hello(run_id), streams.driver()]
        for index, (case_id, case) in enumerate(cases.items()):
            act, outputs = self.script.get(case_id, Act()), case.outputs
            lines.append(streams.start(case_id, index))
            if act.status != "ok":
                lines.append(streams.end(case_id, index, act.status, **act.fields))
                continue
            tensors = [self._tensor(blobs, o, act) for o in outputs]
            made = [o.compare(t, self._reference(blobs, o)) for o, t in zip(outputs, tensors, strict=True)]
            failed = any(m["failing"] for m in made) or act.changes.get("failing", 0) != 0
            for o, tensor, said in zip(outputs, tensors, made, strict=True):
                said["kept"] = (o.keep == "always" or failed) and act.keeps
                if said["kept"]:
                    self.files[f"{folder}/tensors/{case_id}.{o.name}.bin"] = tensor.tobytes()
                elif not act.keeps:
                    said["keep_error"] = "No space left on device"
                said |= dict(act.changes)
            kept = {name: self._keep(folder, case_id, name, size, act) for name, size in case.kept.items()}
            timing = streams.TIMING | dict(act.timing)
            lines.append(
                streams.end(case_id, index, "ok", timing=timing, sensors=SENSORS, outputs=made, kept=kept)
            )
        return streams.whole(*lines)

    def _keep(self, folder: str, case_id: str, name: str, size: int, act: Act) -> dict[str, object]:
        """Write an unchecked output that the job wants, and say so."""
        data = act.kept.get(name, bytes(size))
        digest = sha256_hex(data)
        said: dict[str, object] = {"hash": digest, "hashes": {digest: 60}, "kept": act.keeps}
        said |= dict(act.kept_changes)
        if not act.keeps:
            return said | {"keep_error": "No space left on device"}
        self.files[f"{folder}/tensors/{case_id}.{name}.bin"] = data
        return said

    def _reference(self, blobs: str, o: "_Output") -> NDArray[np.float64]:
        return np.frombuffer(self.files[f"{blobs}/{o.reference}"], "<f8")

    def _tensor(self, blobs: str, o: "_Output", act: Act) -> NDArray[Any]:
        values = self._reference(blobs, o) if act.output is None else act.output
        return np.asarray(values, {"f32": "<f4", "f16": "<f2", "u32": "<u4"}[o.dtype])


@dataclass(slots=True)
class _Output:
    name: str
    dtype: str
    reference: str
    atol: float
    replays: int
    keep: str = ""

    def compare(self, got: NDArray[Any], ref: NDArray[np.float64]) -> dict[str, object]:
        """An entry of ``outputs``: the truth about a tensor of finite references."""
        failing = sum(not abs(float(g) - r) <= self.atol for g, r in zip(got, ref, strict=True))
        digest = sha256_hex(got.tobytes())
        return streams.output(
            buffer=self.name, dtype=self.dtype, count=len(ref), hash=digest,
            hashes={digest: self.replays + 1},
            failing=failing, nmse=float(np.mean((got - ref) ** 2) / np.mean(ref**2)) if failing else 0.0,
            nan=int(np.isnan(got).sum()), nonfinite_mismatch=int((~np.isfinite(got)).sum()),
        )  # fmt: skip


@dataclass(slots=True)
class _Case:
    outputs: list[_Output] = field(default_factory=list[_Output])
    kept: dict[str, int] = field(default_factory=dict[str, int])
    """Unchecked outputs that the job wants → bytes."""


def _read_job(text: str) -> tuple[str, str, dict[str, _Case]]:
    """Run id, blobs folder and what each case puts out."""
    run_id, blobs = "", ""
    cases: dict[str, _Case] = {}
    open_case = _Case()
    dtypes: dict[str, str] = {}
    counts: dict[str, int] = {}
    replays = 1
    for words in (line.split(" ") for line in text.splitlines()):
        match words:
            case ["run", run_id]:
                pass
            case ["blobs", blobs]:
                pass
            case ["case", case_id]:
                open_case = cases[case_id] = _Case()
            case ["replays", count]:
                replays = int(count)
            case ["buffer", name, _, dtype, count, *_]:
                dtypes[name], counts[name] = dtype, int(count)
            case ["check", name, reference, atol, _, _]:
                open_case.outputs.append(_Output(name, dtypes[name], reference, float(atol), replays))
            case ["keep", name, keep]:
                if checked := [o for o in open_case.outputs if o.name == name]:
                    checked[0].keep = keep
                else:
                    open_case.kept[name] = counts[name] * (2 if dtypes[name] == "f16" else 4)
            case _:
                pass
    assert text.endswith(f"\nend {len(cases)}\n")
    return run_id, blobs, cases


def bench(device: FakeDevice, **changes: Any) -> Bench:
    checked: Device = device
    made = Bench(checked, device_record("fake-1", serial=device.serial, transport="adb"), RUNNER)
    return replace(made, **changes)
