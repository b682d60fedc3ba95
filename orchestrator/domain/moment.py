"""Times of records."""

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """A time of a record; without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
