"""Settings from the environment, read once at the border (names start with ``TILEFARM_``)."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from platformdirs import user_cache_path
from pydantic import ByteSize, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from orchestrator.domain.broker_url import complete


class Settings(BaseSettings):
    """Everything has a default that works on a fresh machine; an empty variable counts as unset."""

    model_config = SettingsConfigDict(
        env_prefix="TILEFARM_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,  # a password may be in it
    )

    broker: str = Field(default="", repr=False)
    """``redis://HOST:PORT/DB`` of a farm, ``rediss://`` with TLS; completed by the two files below. Empty:
    `tilefarm run` starts a private redis-server."""
    broker_password_file: Path | None = None
    """Holds the broker's password in one line: none in an environment, a unit or a compose file."""
    broker_ca: Path | None = None
    """Certificate (PEM) of the authority that signed the broker's. None: those that this machine trusts."""
    user: str = ""
    """Who asks, for a fair share of the devices; empty: ``user@host`` of this process."""
    out: Path = Path("out")
    """Runs and reports."""
    report_url: str = ""
    """Where people's browsers find ``out``, e.g. ``https://farm.example``: for links in Markdown and in
    annotations. Empty: they name files."""
    blobs: str = ""
    """fsspec URL of the blob store that every worker can reach. Empty: ``OUT/blobs`` of this machine."""
    workdir: Path = user_cache_path("tilefarm")
    """Where this machine's own GPU keeps job folders and blobs."""
    runner_dir: Path = Path(__file__).resolve().parents[2] / "workers" / "runner" / "build"
    """Builds of the runner, one folder a CMake preset."""

    runs_at_once: int = Field(default=8, ge=1)
    """Processes that an orchestrator has for submitted runs; nightly ones leave half of them free."""

    blob_quota: ByteSize = Field(default=ByteSize(1 << 30), ge=0)
    """Blobs that stay on a device from batch to batch, e.g. ``300MB``; what was not used for longest goes."""

    power_cycle: str = ""
    """Command that switches a phone's USB port off and on, e.g. ``cycle-port {serial}``: words, no shell;
    ``{serial}`` is the phone's. Empty: this rung of the ladder is left out."""

    nights: str = ""
    """Which suite the orchestrator runs when (UTC): ``nightly@01:00, speed@Sun 03:00``. Empty: no nights."""
    night_options: str = ""
    """Further options of `tilefarm run` for each night, e.g. ``--matrix farm.yaml --kernels mine``."""
    night_deadline_h: float = Field(default=8.0, gt=0, le=20)
    """So long after its start a night's report is made of what is there, and the rest is missing."""
    night_late_h: float = Field(default=6.0, gt=0, le=20)
    """A night that could not be started in time is started up to so much later; then it was missed."""

    beat_s: float = Field(default=300.0, ge=1)
    """So often beat has the orchestrator look whether a night is due."""

    database: str = ""
    """SQLAlchemy URL of the history's control plane, ``postgresql+psycopg://…``. Empty: SQLite in ``OUT``."""

    triage: Path | None = None
    """Folder of decisions about findings. None: ``triage`` beside the matrix that a run was planned from."""

    def run_url(self, run_id: str) -> str:
        """Of a run's folder; empty where nobody serves it."""
        return f"{self.report_url.rstrip('/')}/runs/{quote(run_id)}" if self.report_url else ""

    def history_url(self) -> str:
        return self.database or f"sqlite:///{(self.out / 'tilefarm.db').resolve()}"

    def blob_store(self) -> str:
        """As an URL that means the same in every process of this machine, wherever it was started."""
        if "://" in self.blobs:
            return self.blobs
        return (Path(self.blobs) if self.blobs else self.out / "blobs").resolve().as_uri()

    @model_validator(mode="before")
    @classmethod
    def _whole_broker(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Whoever reads ``broker`` has all that a connection needs."""
        password, ca = given.get("broker_password_file"), given.get("broker_ca")
        url = complete(
            given.get("broker", ""), Path(password) if password else None, Path(ca) if ca else None
        )
        return given | {"broker": url}
