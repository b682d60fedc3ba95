"""What the whole suite needs so that several processes run it at once (`make pytest`).

xdist gives each process whole files, in the order of collection: the files that take longest come first, so
that no process is left alone with one of them at the end.
"""

import tempfile
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure of a test.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

LONGEST = (
    "chaos/test_chaos.py",
    "integration/test_drivers.py",
    "kernels/test_named_inputs.py",
    "docs/test_commands.py",
    "integration/test_farm.py",
    "integration/test_phones.py",
    "integration/test_run.py",
    "kernels/",
    "browser/",
    "integration/",
)
"""Beginnings of paths below ``tests``, in the order of their time; all other tests come after them."""


def _rank(item: pytest.Item) -> int:
    path = item.nodeid.removeprefix("tests/")
    return next((n for n, begin in enumerate(LONGEST) if path.startswith(begin)), len(LONGEST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """After pytest-randomly: a random order within each rank stays."""
    items.sort(key=_rank)


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Trials on one processor wait for each other through locks in ``TMPDIR``: tests wait neither for those
    of another process nor for a farm that the machine serves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
        patch.setattr(tempfile, "tempdir", None)
        yield
