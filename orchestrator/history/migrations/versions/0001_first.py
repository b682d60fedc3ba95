"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String(), nullable=False) for name in names]


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(), primary_key=True),
        *_text("suite", "night", "started_at", "finished_at"),
        sa.Column("whole_suite", sa.Boolean(), nullable=False),
        *_text("host", "commit", "tilefarm", "file", "sha256"),
        sa.Column("rows", sa.Integer(), nullable=False),
        *_text("stored_at", "samples_until", "verdicts", "verdicts_sha256"),
    )
    op.create_index("ix_runs_suite", "runs", ["suite"])
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
    op.create_table(
        "devices",
        sa.Column("device_id", sa.String(), primary_key=True),
        *_text("soc", "vendor", "model", "name"),
        sa.Column("virtual", sa.Boolean(), nullable=False),
        *_text("first_run", "last_run"),
    )
    op.create_index("ix_devices_soc", "devices", ["soc"])
    op.create_table(
        "device_runs",
        sa.Column("run_id", sa.String(), sa.ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("device_id", sa.String(), sa.ForeignKey("devices.device_id"), primary_key=True),
        sa.Column("drivers", sa.JSON(), nullable=False),
        *_text("os_build", "host", "serial"),
    )
    op.create_table(
        "cases",
        sa.Column("case_id", sa.String(), primary_key=True),
        *_text("kernel", "op", "workload_id", "label"),
        sa.Column("workload", sa.JSON(), nullable=False),
        sa.Column("axes", sa.JSON(), nullable=False),
        *_text("inputs", "role"),
    )
    op.create_index("ix_cases_kernel", "cases", ["kernel"])
    op.create_table(
        "sentinels",
        sa.Column("device_id", sa.String(), primary_key=True),
        sa.Column("case_id", sa.String(), primary_key=True),
        *_text("chosen_in"),
    )
    op.create_table(
        "pinned",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("run_id", sa.String(), sa.ForeignKey("runs.run_id"), nullable=False),
        *_text("pinned_at", "by", "note"),
    )


def downgrade() -> None:
    for table in ("pinned", "sentinels", "cases", "device_runs", "devices", "runs"):
        op.drop_table(table)
