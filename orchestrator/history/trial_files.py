"""One immutable Parquet file a run: written once, synced, renamed; its name holds its digest.

pyarrow ships no types: this file is the only one that imports it.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow
import pyarrow.parquet

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError

FORMAT = 1
Arrow = Any
"""Something of pyarrow's."""
_pa = cast("Any", pyarrow)
_parquet = cast("Any", pyarrow.parquet)
_KINDS: Mapping[str, Any] = {
    "name": _pa.dictionary(_pa.int32(), _pa.string()),
    "text": _pa.string(),
    "flag": _pa.bool_(),
    "small": _pa.int8(),
    "count": _pa.int32(),
    "big": _pa.int64(),
    "real": _pa.float64(),
    "counts": _pa.list_(_pa.int32()),
    "bigs": _pa.list_(_pa.int64()),
}
"""``name``: text that repeats in many rows."""
ROW_GROUP = 2_000
"""Rows whose smallest and largest ``_KEYS`` are told apart in the file's footer: one series is found by it
without reading the others. Fewer rows make longer footers, which every question reads
(docs/measurements/history.txt)."""
_KEYS = ("case_id", "device_id")


def write(
    folder: Path, stem: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> tuple[str, str]:
    """Store rows; they are on disk when this returns.

    Args:
        columns: name → kind (``_KINDS``), in order.

    Returns:
        Name of the file, ``STEM-DIGEST.parquet``, and its sha256.
    """
    return put(folder, stem, table(columns, rows))


def table(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Arrow:
    """A pyarrow table; what a row lacks is null."""
    schema = _pa.schema(
        [(name, _KINDS[kind]) for name, kind in columns.items()], metadata={"tilefarm_format": str(FORMAT)}
    )
    return _pa.Table.from_pylist(list(rows), schema=schema)


def put(folder: Path, stem: str, table: Arrow) -> tuple[str, str]:
    """As ``write``, of a pyarrow table."""
    _make(folder)
    partial = folder / f".{stem}-{secrets.token_hex(4)}"
    try:
        _parquet.write_table(
            table,
            partial,
            compression="zstd",
            row_group_size=ROW_GROUP,
            write_statistics=[name for name in _KEYS if name in table.column_names],
            use_dictionary=_repeating(table.schema),
        )
        digest = sha256_hex(partial.read_bytes())
        final = folder / f"{stem}-{digest[:12]}.parquet"
        _sync(partial)
        partial.replace(final)
        _sync(folder)
    finally:
        partial.unlink(missing_ok=True)
    return final.name, digest


def _repeating(schema: Arrow) -> list[str]:
    """Columns with few different words. Numbers are shorter without a dictionary."""
    return [field.name for field in schema if _pa.types.is_dictionary(field.type) or field.name in _KEYS]


def read(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """All rows, with those of these columns that the file has: an earlier version wrote fewer.

    Raises:
        InfraError: missing or damaged.
    """
    try:
        there = set(_parquet.read_schema(path).names)
        return _parquet.read_table(path, columns=[c for c in columns if c in there]).to_pylist()
    except (OSError, ValueError, _pa.ArrowInvalid) as e:
        raise InfraError(f"{path}: {e}. `tilefarm db check` says what to do") from e


def names(path: Path) -> list[str]:
    """Columns of a file.

    Raises:
        InfraError: missing or damaged.
    """
    try:
        return list(_parquet.read_schema(path).names)
    except (OSError, ValueError, _pa.ArrowInvalid) as e:
        raise InfraError(f"{path}: {e}. `tilefarm db check` says what to do") from e


def holds(path: Path, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> bool:
    """A file has these rows, as far as its columns go: an earlier version wrote fewer, retention drops
    some."""
    there = _parquet.read_table(path)
    known = [name for name in there.column_names if name in columns]
    ours = table({name: columns[name] for name in known}, rows)
    # As text: NaN is itself there.
    return repr(there.select(known).to_pylist()) == repr(ours.to_pylist())


def check(path: Path, sha256: str) -> str:
    """What is wrong with a file; empty: nothing."""
    if not path.is_file():
        return "missing"
    if sha256_hex(path.read_bytes()) != sha256:
        return "damaged: its digest is another one"
    try:
        found = format_of(path)
    except InfraError as e:
        return str(e)
    return "" if found == FORMAT else f"of format {found}; this Tilefarm reads {FORMAT}"


def format_of(path: Path) -> int:
    """
    Raises:
        InfraError: no Parquet file of ours.
    """
    try:
        metadata: dict[bytes, bytes] = _parquet.read_schema(path).metadata or {}
        return int(metadata[b"tilefarm_format"])
    except (OSError, KeyError, ValueError, _pa.ArrowInvalid) as e:
        raise InfraError(f"{path}: no trial file: {e}") from e


def _make(folder: Path) -> None:
    """On disk, like what is written in it."""
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
