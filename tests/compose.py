"""docker-compose.yml read as `docker compose` reads it, and its services as processes of this machine.

Commands and health checks stay as they are; what differs is in the environment only: a container's paths
become folders of the test, and variables of ``.env`` give ports and addresses.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from tests.farm import REPOSITORY

COMPOSE = REPOSITORY / "docker-compose.yml"
TLS = REPOSITORY / "docker-compose.tls.yml"
Tree = dict[str, Any]


def load(*files: Path, variables: Mapping[str, str] | None = None) -> Tree:
    """The files, later ones over earlier ones, with their variables filled in."""
    merged: Tree = {}
    for file in files or (COMPOSE,):
        merged = _merge(merged, raw(file))
    return cast(Tree, _filled(merged, variables or {}))


def raw(file: Path) -> Tree:
    """With anchors resolved, and variables as they stand."""
    reader: Any = YAML(typ="safe")
    return cast(Tree, reader.load(file.read_text("utf-8")))


def variables_of(*files: Path) -> set[str]:
    """Names of all variables in the files."""
    used: set[str] = set()
    for file in files:
        _filled(raw(file), {}, used)
    return used


def _merge(below: Any, above: Any, key: str = "") -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        old, new = cast(Tree, below), cast(Tree, above)
        return old | {k: _merge(old[k], v, k) if k in old else v for k, v in new.items()}
    if key == "secrets" and isinstance(below, list):
        return [*cast("list[str]", below), *cast("list[str]", above)]
    return above


def _filled(node: Any, variables: Mapping[str, str], used: set[str] | None = None) -> Any:
    if isinstance(node, dict):
        return {k: _filled(v, variables, used) for k, v in cast(Tree, node).items()}
    if isinstance(node, list):
        return [_filled(v, variables, used) for v in cast("list[Any]", node)]
    return fill(node, variables, used) if isinstance(node, str) else node


def fill(text: str, variables: Mapping[str, str], used: set[str] | None = None) -> str:
    """``$$`` and ``${NAME:-default}``, whose default may hold further ones; other forms are not in use."""
    done = ""
    while (at := text.find("$")) >= 0:
        done, rest = done + text[:at], text[at + 1 :]
        if rest.startswith("$"):
            done, text = done + "$", rest[1:]
            continue
        end = _closing(rest)
        name, operator, default = rest[1:end].partition(":-")
        assert operator == ":-", f"${rest[: end + 1]}: every variable has a default"
        if used is not None:
            used.add(name)
        default = fill(default, variables, used)  # also where it is not needed, for the names in it
        done, text = done + (variables.get(name) or default), rest[end + 1 :]
    return done + text


def _closing(rest: str) -> int:
    """Index of the brace that closes the one at 0."""
    assert rest.startswith("{"), f"${rest[:20]}: not a variable; write $$ for the container's shell"
    depth = 0
    for index, letter in enumerate(rest):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return index
    raise AssertionError(f"${rest}: no closing brace")


@dataclass(frozen=True, slots=True)
class Service:
    """One service, placed below a folder of this machine."""

    name: str
    words: Sequence[str]
    health: Sequence[str]
    environment: Mapping[str, str]
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> "subprocess.Popen[bytes]":
        """The caller ends it by its id."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.words,
                cwd=REPOSITORY,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def complaint(self) -> str:
        """Of its health check; empty: it is well."""
        done = subprocess.run(
            self.health,
            cwd=REPOSITORY,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return "" if done.returncode == 0 else f"exit {done.returncode}: {done.stdout}{done.stderr}"


def place(compose: Tree, name: str, folder: Path, more: Mapping[str, str] | None = None) -> Service:
    """A service of a loaded file; ``more``: what the machine gives, e.g. TMPDIR."""
    service: Tree = compose["services"][name]
    mounts = _mounts(compose, service, folder)
    path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"  # a wheel may bring an old Redis
    environment = {"PATH": path, "HOME": str(folder), **(more or {})}
    for variable, value in cast("dict[str, str]", service["environment"]).items():
        placed = value
        for target in sorted(mounts, key=len, reverse=True):
            placed = placed.replace(target, str(mounts[target]))
        environment[variable] = placed
    kind, *check = cast("list[str]", service["healthcheck"]["test"])
    return Service(
        name=name,
        words=[*service.get("entrypoint", []), *service["command"]],
        health=check if kind == "CMD" else ["sh", "-c", *check],
        environment=environment,
        folder=folder,
    )


def _mounts(compose: Tree, service: Tree, folder: Path) -> dict[str, Path]:
    """Path in the container → path here."""
    found: dict[str, Path] = {}
    for secret in service.get("secrets", []):
        found[f"/run/secrets/{secret}"] = REPOSITORY / compose["secrets"][secret]["file"]
    for config in service.get("configs", []):
        found[config["target"]] = REPOSITORY / compose["configs"][config["source"]]["file"]
    for volume in service.get("volumes", []):
        source, target = volume.split(":")[:2]
        named = source in compose["volumes"]
        found[target] = folder / "volumes" / source if named else REPOSITORY / source
        found[target].mkdir(parents=True, exist_ok=True)
    return found
