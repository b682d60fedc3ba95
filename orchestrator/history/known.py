"""What the history knows of cases and devices, whatever run they were in."""

from collections.abc import Collection

from sqlalchemy import select

from orchestrator.history.database import KnownCase, KnownDevice
from orchestrator.history.history import History


def known_cases(history: History) -> dict[str, KnownCase]:
    """Case id → its facts."""
    with history.database.session() as session:
        found = {c.case_id: c for c in session.scalars(select(KnownCase))}
        session.expunge_all()
        return found


def known_devices(history: History, device_ids: Collection[str]) -> dict[str, KnownDevice]:
    """Device id → its facts; ids that no run had are left out."""
    with history.database.session() as session:
        query = select(KnownDevice).where(KnownDevice.device_id.in_(device_ids))
        found = {d.device_id: d for d in session.scalars(query)}
        session.expunge_all()
        return found
