"""What made SPIR-V of a run's shaders: another compiler is other code."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    op.add_column("runs", sa.Column("compiler", sa.String(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("runs") as runs:
        runs.drop_column("compiler")
