"""docker-compose.yml and .env.example: of the specification's shape, hardened, and complete."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.settings import Settings
from tests.compose import COMPOSE, TLS, fill, load, place, raw, variables_of
from tests.farm import REPOSITORY

EXAMPLE = REPOSITORY / ".env.example"
SERVICES = load(COMPOSE, TLS)["services"]


def valid(file: Path) -> bool:
    """By the schema of the compose specification."""
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)],
        capture_output=True,
        timeout=300,
        check=False,
    )
    return done.returncode == 0


def test_the_files_fit_the_compose_specification_and_a_broken_one_does_not(tmp_path: Path) -> None:
    assert valid(COMPOSE)
    assert valid(TLS)
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(COMPOSE.read_text().replace("    healthcheck:", "    healthchecks:", 1))
    assert not valid(broken)


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_can_do_more_than_it_needs(name: str) -> None:
    service: dict[str, Any] = SERVICES[name]
    user, group = service["user"].split(":")
    assert int(user) >= 100
    assert int(group) >= 100
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert service["logging"]["options"]["max-size"]
    assert "stop_grace_period" in service
    assert not {"privileged", "devices", "pid", "ipc"} & set(service), "no phone's USB: the host's adb has it"
    assert not [v for v in service.get("volumes", []) if "docker.sock" in v or v.startswith("/dev")]


@pytest.mark.parametrize("name", SERVICES)
def test_only_this_host_reaches_a_port_unless_env_says_otherwise(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", SERVICES)
def test_passwords_come_from_a_file_and_from_nowhere_else(name: str) -> None:
    service: dict[str, Any] = SERVICES[name]
    words = " ".join([*service.get("entrypoint", []), *service["command"], *service["healthcheck"]["test"]])
    # What a shell's words hold before it fills them in is what a list of processes shows.
    assert not re.search(r"--requirepass|--pass\b| -a |redis://", words)
    named = [k for k in service["environment"] if "PASSWORD" in k]
    assert all(k.endswith("_FILE") for k in named)
    assert ("broker_password" in service.get("secrets", [])) == bool(named)


def test_services_wait_for_a_redis_that_answers() -> None:
    for name, service in SERVICES.items():
        if "TILEFARM_BROKER" in service["environment"]:
            assert service["depends_on"] == {"redis": {"condition": "service_healthy"}}, name


@pytest.mark.parametrize("name", SERVICES)
def test_commands_and_health_checks_name_paths_by_variables(name: str, tmp_path: Path) -> None:
    """What the integration test starts is then, word by word, what the container starts."""
    service = place(load(COMPOSE, TLS), name, tmp_path)
    words = " ".join([*service.words, *service.health])
    assert not re.search(r"(?:/run/secrets|/srv/|/etc/|/data)", words)


def test_the_example_names_every_variable_of_compose_and_settings_and_no_other() -> None:
    used = variables_of(COMPOSE, TLS)
    named = dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", EXAMPLE.read_text(), re.MULTILINE))
    read = {f"TILEFARM_{field.upper()}" for field in Settings.model_fields}
    assert set(named) == used | read
    assert {"REDIS_MAXMEMORY", "TILEFARM_NIGHTS", "BROKER_KEY"} <= used, "and they are found"


def test_an_env_file_of_the_examples_values_changes_nothing() -> None:
    text = EXAMPLE.read_text()
    given = dict(re.findall(r"^#([A-Z][A-Z_]+)=(.*)$", text, re.MULTILINE))
    ours = {k: v for k, v in given.items() if not k.startswith("TILEFARM_") and k != "SERVICES_BROKER"}
    assert load(COMPOSE, TLS, variables=ours) == load(COMPOSE, TLS)


def test_secrets_of_a_checkout_are_ignored_by_git_and_docker() -> None:
    ignored = (REPOSITORY / ".gitignore").read_text().splitlines()
    assert {"/secrets/", "/.env"} <= set(ignored)
    docker = (REPOSITORY / ".dockerignore").read_text().splitlines()
    allowed = [line[1:] for line in docker if line.startswith("!")]
    assert docker[1] == "*", "only what is named gets into the image"
    assert not {"secrets", ".env", ".git", "out"} & set(allowed)


def test_variables_are_read_as_compose_reads_them() -> None:
    assert fill("${A:-x${B:-y}}-$$C", {}) == "xy-$C"
    assert fill("${A:-x${B:-y}}", {"B": "z"}) == "xz"
    assert fill("${A:-x}", {"A": ""}) == "x"
    assert raw(COMPOSE)["services"]["beat"]["user"] == "10001:10001"
    for wrong in ("$A", "${A}", "${A:-x"):
        with pytest.raises(AssertionError):
            fill(wrong, {})
