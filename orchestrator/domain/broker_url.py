"""A broker's URL with its secrets and its TLS options, as redis-py and kombu both read it."""

from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from orchestrator.domain.errors import UsageError

_LONGEST = 4096
"""Bytes; a path that was mixed up may lead to anything."""


def complete(url: str, password_file: Path | None, ca: Path | None) -> str:
    """The URL that every client is given; doing it twice changes nothing. A private server's is left alone.

    kombu takes any certificate unless the URL says otherwise, redis-py checks it: ``rediss://`` is made to
    mean the same to both. The file's password replaces one in the URL, which may be of before its rotation.

    Raises:
        UsageError: a file that cannot be used, or a CA without TLS.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # whoever connects says so
    if parts.scheme not in ("redis", "rediss"):
        return url
    place, query = parts.netloc, parse_qsl(parts.query, keep_blank_values=True)
    if password_file is not None:
        known, _, address = place.rpartition("@")
        place = f"{known.partition(':')[0]}:{quote(_password(password_file), safe='')}@{address}"
    if parts.scheme == "rediss":
        given = dict(query)
        wanted = {"ssl_cert_reqs": "required", "ssl_check_hostname": "true"}
        if ca is not None:
            if not ca.is_file():
                raise UsageError(f"TILEFARM_BROKER_CA={ca}: no such file; it holds the broker's CA as PEM")
            wanted["ssl_ca_certs"] = str(ca)
        query += [(name, value) for name, value in wanted.items() if name not in given]
    elif ca is not None:
        raise UsageError(
            "TILEFARM_BROKER_CA is set, but TILEFARM_BROKER is redis://, which is not encrypted: "
            "write rediss://, or unset TILEFARM_BROKER_CA"
        )
    return urlunsplit(parts._replace(netloc=place, query=urlencode(query, safe="/:")))


def _password(path: Path) -> str:
    """One line; no message shows any of it."""
    name = f"TILEFARM_BROKER_PASSWORD_FILE={path}"
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1).decode("utf-8")
    except OSError as e:
        raise UsageError(f"{name}: {e.strerror or e}") from e
    except UnicodeDecodeError:
        raise UsageError(f"{name}: not UTF-8") from None
    password = text.rstrip("\r\n")
    if not password or len(text) > _LONGEST or "\n" in password:
        raise UsageError(f"{name}: expected one line, the password, and nothing else")
    return password
