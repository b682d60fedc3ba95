"""docs/add-a-kernel.md and its example: excerpts are lines of its files, its commands run outside of the
repository, the budget is tight, and every mutant fails.
"""

import ast
import shutil
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.kernel_checks import check_sample
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.docs.pages import blocks, run_script
from tests.farm import REPOSITORY, Farm
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import Bench, error_beside_budget

PAGE = REPOSITORY / "docs" / "add-a-kernel.md"
EXAMPLE = REPOSITORY / "docs" / "examples" / "rms_norm"
HOME = EXAMPLE / "kernels" / "rms_norm"
FILES = {
    "glsl": HOME / "rms_norm.comp.j2",
    "python": HOME / "kernel.py",
    "yaml": EXAMPLE / "matrix.yaml",
}
INTERFACE = {"orchestrator.domain.case", "orchestrator.domain.kernel"}


@pytest.mark.parametrize("language", FILES)
def test_excerpts_of_the_page_are_lines_of_the_example(language: str) -> None:
    excerpts = blocks(PAGE, language)
    assert excerpts
    for excerpt in excerpts:
        assert _lines(excerpt) in _lines(FILES[language].read_text()), excerpt


def _lines(text: str) -> str:
    """Indentation and blank lines apart: an excerpt of a class stands at the margin of its block."""
    return "\n".join(["", *(line.strip() for line in text.splitlines() if line.strip()), ""])


def test_the_example_imports_the_documented_interface_and_nothing_else_of_ours() -> None:
    tree = ast.parse(FILES["python"].read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {m for m in modules if m and m.split(".")[0] in ("orchestrator", "workers", "reports", "tests")}
    assert ours == INTERFACE
    assert all(f"`{module}`" in PAGE.read_text() for module in INTERFACE)


def test_the_commands_of_the_page_run_outside_of_the_repository(farm: Farm) -> None:
    """Also without its first barrier, which must be noticed."""
    (farm.folder / "tilefarm").symlink_to(REPOSITORY)
    sound, broken = blocks(PAGE, "sh")
    printed = run_script(sound, farm, farm.folder)
    assert blocks(PAGE, "")[1].strip() in printed
    assert Counter(t.verdict for t in farm.latest().trials) == {Verdict.PASS: 44}
    run_script(broken, farm, farm.folder)
    assert Counter(t.verdict for t in farm.latest().trials) == {Verdict.MISMATCH: 4}


def case(bench: Bench, inputs: str, hidden: int = 130, precision: str = "fp32") -> Case:
    axes: dict[str, AxisValue] = {"api": bench.driver.api, "precision": precision, "group": 64}
    return Case("rms_norm", "rms_norm", {"rows": 3, "hidden": hidden, "eps": "1e-5"}, axes, inputs)


MUTANTS = {
    "shares not all written": ("    barrier(); // all of them are written\n", "", "normal"),
    "a step not all done": ("        barrier(); // of this step\n", "", "normal"),
    "shares written again too early": ("    barrier(); // all of them have read it\n", "", "normal"),
    "no eps": ("mean + {{ eps }} / scale / scale", "mean", "zeros_row"),
    "eps of another size": ("{{ eps }} / scale", "1e-6 / scale", "faint"),
    "eps not scaled": ("{{ eps }} / scale / scale", "{{ eps }}", "large"),
    "squares beyond fp32": ("float scale = largest(size);", "float scale = largest(1.0);", "large"),
    "odd elements left out": ("        squares += pair.y * pair.y;\n", "", "normal"),
    "tail left out": ("float size = 1.0;\n    for", "float size = 1.0;\n    if (false) for", "large"),
}
"""(old text of the shader, new text, input that shows it)."""


def broken(folder: Path, old: str, new: str, file: Path = FILES["glsl"]) -> LoadedKernel:
    home = folder / HOME.name
    shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("__pycache__"))
    text = file.read_text()
    assert text.count(old) == 1
    (home / file.name).write_text(text.replace(old, new))
    return load_kernel(home)


MISTAKES = (
    ('"o", "out"', '"o", "output"', "python"),
    ('"x", "weight", "o")', '"x", "weights", "o")', "python"),
    ('case.workload["rows"]', 'case.workload["row"]', "python"),
    ("{{ eps }} / scale", "{{ epsilon }} / scale", "glsl"),
    ("local_size_x = {{ workgroup[0] }}", "local_size_x = 128", "glsl"),
    ("shared_bytes=4 * group", "shared_bytes=2 * group", "python"),
)
"""(old text, new text, whose file), in the order of the page."""


def test_the_errors_of_the_page_are_the_real_ones(tmp_path: Path) -> None:
    for number, ((old, new, language), line) in enumerate(
        zip(MISTAKES, blocks(PAGE, "")[2].splitlines(), strict=True)
    ):
        with pytest.raises(KernelFolderError) as caught:
            check_sample(broken(tmp_path / str(number), old, new, FILES[language]))
        assert str(caught.value).removeprefix(f"{tmp_path / str(number)}/").startswith(line)


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_mutant_is_caught_and_the_budget_is_less_than_100_times_too_wide(
    driver: str, tmp_path: Path
) -> None:
    """All in one job a driver."""
    bench = Bench(tmp_path / "bench", driver, keep=True)
    true = load_kernel(HOME)
    names = ("normal", *true.kernel.distributions)
    sound: list[tuple[LoadedKernel, Case]] = [
        (true, case(bench, inputs, precision=precision))
        for precision in ("fp32", "fp16_storage")
        for inputs in names
    ]
    mutants = [
        (broken(tmp_path / name, old, new), case(bench, inputs))
        for name, (old, new, inputs) in MUTANTS.items()
    ]
    outcomes = bench.run([*sound, *mutants])
    assert [o.verdict for o in outcomes[: len(sound)]] == ["pass"] * len(sound)
    seen = dict(zip(MUTANTS, (o.verdict for o in outcomes[len(sound) :]), strict=True))
    assert seen == dict.fromkeys(MUTANTS, "mismatch"), driver
    finite = [o for o in outcomes[: len(sound)] if o.case.inputs != "nan_row"]
    assert all(1 <= error_beside_budget([o])[1] < 100 for o in finite)
