"""``tilefarm submit``: hand a run in for the farm's orchestrator, and leave."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.fleet import open_fleet
from orchestrator.cli.options import (
    CaseOption,
    ConfirmOption,
    DeviceOption,
    FailOnOption,
    JsonOption,
    KernelsOption,
    MatrixOption,
    MaxSlowdownOption,
    NightlyOption,
    PhonesOption,
    ProbesOption,
    SelectOption,
    SetOption,
    SuiteOption,
)
from orchestrator.cli.output import print_json, result, say
from orchestrator.cli.person import person
from orchestrator.cli.prepare import Wanted, check, prepare
from orchestrator.domain.errors import UsageError
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.domain.submission import Service, Submission
from orchestrator.execution.board import Board
from orchestrator.execution.run_folder import new_run_id
from orchestrator.execution.service.taking import hand_in
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import shown
from workers.discovery import host_name


def submit(
    suite: SuiteOption = "smoke",
    matrix: MatrixOption = Path("matrix.yaml"),
    kernels: KernelsOption = None,
    select: SelectOption = None,
    case: CaseOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    max_slowdown: MaxSlowdownOption = None,
    fail_on: FailOnOption = None,
    probes: ProbesOption = True,
    confirm: ConfirmOption = True,
    phones: PhonesOption = None,
    nightly: NightlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Hand a run in for `tilefarm orchestrator` and print its id; this terminal is not needed any more.

    Everything is planned and prepared here, as by `tilefarm run`. TILEFARM_BLOBS must be a place that the
    orchestrator and all workers reach, too.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm submit --suite nightly --nightly
    """
    settings = Settings()
    url = broker_url(settings, "`tilefarm submit`", "`tilefarm run` alone needs no farm")
    wanted = Wanted(
        suite=suite,
        matrix=matrix,
        kernels=kernels or [],
        select=select,
        case=case or [],
        device=device or [],
        overrides=set_ or [],
        gate=Gate(max_slowdown, fail_on),
        probes=probes,
        confirm=confirm,
        phones=phones,
        nightly=nightly,
    )
    run_id, orchestrators = hand_over(wanted, settings, url)
    for warning in _warnings(settings, orchestrators):
        say(f"warning: {warning}")
    say(f"submitted; follow it with: tilefarm watch {run_id}")
    if as_json:
        print_json({"run_id": run_id, "lane": wanted.lane, "orchestrators": [s.host for s in orchestrators]})
    else:
        result.print(run_id, markup=False)


def hand_over(wanted: Wanted, settings: Settings, url: str) -> tuple[str, Sequence[Service]]:
    """Prepare and submit; returns the run's id and the orchestrators that live.

    Raises:
        UsageError, MatrixError, KernelFolderError: something that is wanted is wrong.
        InfraError: no device, no blob store, no Redis.
    """
    checked = check(wanted)
    run_id = new_run_id(wanted.suite)
    with (
        closing(Board(url)) as board,
        tempfile.TemporaryDirectory(prefix="tilefarm-submit-") as scratch,
        open_fleet(settings, wanted.device, Path(scratch), say) as fleet,
    ):
        folder, _ = prepare(checked, fleet, settings, run_id, Path(scratch))
        manifest, known = hand_in(folder, BlobStore(settings.blob_store()))
        submission = Submission(
            run_id=run_id,
            suite=wanted.suite,
            user=person(),
            lane=wanted.lane,
            submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            host=host_name(),
            blob_store=settings.blob_store(),
            manifest=manifest,
            known=known,
        )
        if not board.submit(submission):
            raise UsageError(f"a run {run_id} is known at {shown(url)} already; submit it again")
        return run_id, board.orchestrators()


def _warnings(settings: Settings, orchestrators: Sequence[Service]) -> list[str]:
    found: list[str] = []
    if not orchestrators:
        found.append("no orchestrator lives now: the run waits until `tilefarm orchestrator` is started")
    if not settings.blobs:
        found.append(
            f"TILEFARM_BLOBS is not set: the orchestrator and all workers must reach {settings.blob_store()}"
        )
    return found
