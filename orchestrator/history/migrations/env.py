"""Alembic's entry: the connection is that of ``database.Database``."""

from alembic import context

from orchestrator.history.database import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
