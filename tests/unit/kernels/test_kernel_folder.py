"""Loading kernel folders by path, and what is said about folders that do not keep the contract."""

from pathlib import Path

import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.planning.kernel_folder import load_kernels

GOOD = """
from orchestrator.domain.kernel import Axis, Buffer, Cost, Kernel, Pass, Tolerance

MARK = "ours"

class Small(Kernel):
    name = "small"
    op = "copy"
    params = (Axis("count", None), Axis("stride", None, default="count"))
    axes = (Axis("api", ("gles",), "gles"), Axis("precision", ("fp32",), "fp32"))
    distributions = ("normal",)
    def buffers(self, case): return ()
    def passes(self, case): return (Pass("small.comp.j2", (1, 1, 1), (1, 1, 1), 0, ()),)
    def data_key(self, case): return MARK
    def inputs(self, case): return {}
    def reference(self, case, inputs): return {}
    def tolerance(self, case, inputs): return {}
    def cost(self, case): return Cost(1, 1, 1)

kernel = Small()
"""


def _folder(where: Path, text: str = GOOD, name: str = "small") -> Path:
    home = where / name
    home.mkdir(parents=True)
    (home / "kernel.py").write_text(text, encoding="utf-8")
    (home / "small.comp.j2").write_text("void main() {}\n", encoding="utf-8")
    return where


def test_loads_every_kernel_and_passes_over_shared_folders(tmp_path: Path) -> None:
    _folder(tmp_path)
    _folder(tmp_path, GOOD.replace('"small"', '"other"', 1), "other")
    (tmp_path / "_shared").mkdir()
    (tmp_path / "notes").mkdir()
    loaded = load_kernels(tmp_path)
    assert list(loaded) == ["other", "small"]
    assert loaded["small"].folder == tmp_path / "small"
    assert loaded["small"].kernel.name == "small"


def test_two_folders_with_a_kernel_of_one_name_do_not_mix(tmp_path: Path) -> None:
    ours = load_kernels(_folder(tmp_path / "a"))["small"].kernel
    theirs = load_kernels(_folder(tmp_path / "b", GOOD.replace('"ours"', '"theirs"')))["small"].kernel
    assert type(ours).__module__ != type(theirs).__module__
    case = Case("small", "copy", {}, {})
    assert (ours.data_key(case), theirs.data_key(case)) == ("ours", "theirs")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kernel = Small()", "", r"kernel\.py: no attribute 'kernel'\. End the file with"),
        ("kernel = Small()", "kernel = Small", r"'kernel' is Small itself\. Make it an instance"),
        ("kernel = Small()", "kernel = 3", r"'kernel' is a int\. Make it an instance"),
        ('    name = "small"\n', "", r"Small lacks 'name'\. Set it as a class attribute"),
        ('name = "small"', 'name = "tiny"', r"named 'tiny' and its folder 'small'\. Rename one"),
        ('("fp32",), "fp32")', '("fp32",), "fp16")', r"'precision': default 'fp16' is not among .*Add it"),
        ('default="count"', 'default="cuont"', r"'stride': default 'cuont' .*Did you mean \"count\""),
        ('Axis("precision"', 'Axis("api"', r"'api' is declared twice"),
        ('Axis("precision"', 'Axis("prec"', r"axis 'precision' is missing"),
        ('("gles",), "gles"', "(), None", r"axis 'api' allows no value"),
        ('distributions = ("normal",)', "distributions = ()", r"distributions is empty"),
        ('Pass("small.comp.j2"', 'Pass("smal.comp.j2"', r"'smal\.comp\.j2' is not in .*Did you mean"),
        ("(1, 1, 1), 0, ())", "(1, 1, 1), 0, ()", r"kernel\.py:13: SyntaxError"),
        ('MARK = "ours"', "MARK = nonsuch", r"kernel\.py:4: NameError: name 'nonsuch'"),
        ("return (Pass", "return (1 // 0, Pass", r"kernel\.py:13: passes\(\) .*ZeroDivisionError"),
    ],
)
def test_errors_say_where_what_and_what_next(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    _folder(tmp_path, GOOD.replace(old, new))
    with pytest.raises(KernelFolderError, match=message):
        load_kernels(tmp_path)


def test_a_missing_or_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelFolderError, match=r"nonsuch: no such folder"):
        load_kernels(tmp_path / "nonsuch")
    with pytest.raises(KernelFolderError, match=r"holds no NAME/kernel\.py"):
        load_kernels(tmp_path)
