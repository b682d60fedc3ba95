"""A DuckDB in memory that reads the history's files.

duckdb's own annotations are partial: this file is the only one that imports it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import duckdb
from numpy.typing import NDArray

from orchestrator.domain.errors import InfraError

_duckdb = cast("Any", duckdb)


class Connection:
    """A database in memory with the errors of this project; ``with`` closes it."""

    def __init__(self) -> None:
        self._connection = _duckdb.connect(":memory:", config={"threads": 2})

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def run(self, sql: str, values: Mapping[str, object] | None = None) -> "_Answer":
        try:
            return cast("_Answer", self._connection.execute(sql, dict(values or {})))
        except _duckdb.Error as e:
            why = str(e).splitlines()[0]
            raise InfraError(f"history: {why}. `tilefarm db check` finds what is damaged") from e

    def columns(self, sql: str) -> dict[str, NDArray[Any]]:
        return self.run(sql).fetchnumpy()

    def rows(self, sql: str, values: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        answer = self.run(sql, values)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


class _Answer(Protocol):
    """The part of duckdb's connection after a query."""

    description: Sequence[tuple[str, object]]

    def fetchnumpy(self) -> dict[str, NDArray[Any]]: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...
