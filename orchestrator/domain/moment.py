"""Times of records."""

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """A time of a record; without a zone it is UTC.

    Raises:
        ValueError: it is none.
    """
    moment = datetime.fromisoformat(text)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as e:  # of the year 1 or 9999, in UTC another one
        raise ValueError(f"{text}: {e}") from e


def utc_now() -> str:
    """As records hold it: ISO 8601, to the second, by this host's clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")
