"""Times of records."""

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """A time of a record; without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def utc_now() -> str:
    """As records hold it: ISO 8601, to the second, by this host's clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")
