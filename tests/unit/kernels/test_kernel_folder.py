"""Loading kernel folders by path, and what is said about folders that do not keep the contract."""

from pathlib import Path

import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.planning.kernel_folder import load_kernels

GOOD = """\
from orchestrator.domain.kernel import Axis, Buffer, Cost, Kernel, Pass, Subgroups, Tolerance

MARK = "ours"

class Small(Kernel):
    name = "small"
    op = "copy"
    params = (Axis("count", None), Axis("stride", None, default="count"))
    axes = (Axis("api", ("gles",), "gles"), Axis("precision", ("fp32",), "fp32"))
    distributions = ("normal",)
    def buffers(self, case): return (Buffer("x", "in", "f32", 4), Buffer("o", "out", "f32", 4))
    def passes(self, case): return (Pass("small.comp.j2", (1, 2, 1), (3, 1, 1), 0, ("x", "o")),)
    def data_key(self, case): return MARK
    def inputs(self, case): return {}
    def reference(self, case, inputs): return {}
    def tolerance(self, case, inputs): return {}
    def cost(self, case): return Cost(1, 8, 8)

kernel = Small()
"""
CASE = " (a small case: small[api=gles precision=fp32] count=64 stride=count inputs=normal)."


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


FILE: list[tuple[str, str, str]] = [
    ("kernel = Small()", "", "no attribute 'kernel'. End the file with: kernel = YourKernel()"),
    (
        "kernel = Small()",
        "kernel = Small",
        "'kernel' is Small itself. Make it an instance of a subclass of orchestrator.domain.kernel.Kernel.",
    ),
    (
        "kernel = Small()",
        "kernel = 3",
        "'kernel' is a int. Make it an instance of a subclass of orchestrator.domain.kernel.Kernel.",
    ),
    ('    name = "small"\n', "", "Small lacks 'name'. Set it as a class attribute."),
    (
        'name = "small"',
        'name = "tiny"',
        "the kernel is named 'tiny' and its folder 'small'. Rename one of them.",
    ),
    ('op = "copy"', "op = 7", "op is 7; give a text."),
    ('Axis("count", None), ', '"count", ', "params holds a str; give a tuple of Axis."),
    (
        '(Axis("count", None), Axis("stride", None, default="count"))',
        "Axis('count', None)",
        "params gives an Axis; give a tuple of Axis.",
    ),
    (
        '"count", None)',
        '"row count", None)',
        "axis 'row count' has no name that a template can use; give letters, digits and _.",
    ),
    (
        '("fp32",), "fp32")',
        '("fp32"), "fp32")',
        "axis 'precision': values are a str; give a tuple, or None for any positive integer.",
    ),
    (
        '("fp32",), "fp32")',
        '("fp32", 1.5), "fp32")',
        "axis 'precision': 1.5 is a float; values are texts, ints and bools.",
    ),
    (
        '("fp32",), "fp32")',
        '("fp32", "fp32"), "fp32")',
        "axis 'precision' lists a value twice: ['fp32', 'fp32'].",
    ),
    (
        '("fp32",), "fp32")',
        '("fp32",), "fp16")',
        "axis 'precision': default 'fp16' is not among its values ['fp32']. "
        "Add it there or choose another default.",
    ),
    (
        'default="count"',
        'default="cuont"',
        "axis 'stride': default 'cuont' is neither a number nor the name of a parameter. "
        'Did you mean "count"?',
    ),
    ('Axis("precision"', 'Axis("api"', "'api' is declared twice among params and axes. Rename one."),
    (
        'Axis("precision"',
        'Axis("prec"',
        "axis 'precision' is missing. Every kernel declares api and precision.",
    ),
    ('("gles",), "gles"', "(), None", "axis 'api' allows no value. List some, or give None for integers."),
    (
        '("gles",), "gles"',
        '("gles", "vulcan"), "gles"',
        "axis 'api': value 'vulcan' is unknown. Did you mean \"vulkan\"?",
    ),
    (
        '("gles",), "gles"',
        "None, 1",
        "axis 'api': value 'any integer' is unknown. Known: gles, vulkan.",
    ),
    ('("normal",)', "()", "distributions is empty; name at least one, such as 'normal'."),
    ('("normal",)', '("normal")', "distributions is a str; give ('normal',)."),
    ('("normal",)', '("normal", 8)', "distributions: 8 is no name; give letters, digits and _."),
    ('("normal",)', '("normal", "normal")', "distributions names ['normal'] twice; rename one."),
]
"""(old text, new text, error after the file's name)."""

AT_A_LINE: list[tuple[str, str, str]] = [
    ("0, (", "0, )", "12: SyntaxError: unmatched ')'. Fix the file and load it again."),
    ('MARK = "ours"', "MARK = nonsuch", "3: NameError: name 'nonsuch' is not defined"),
    ("return (Pass", "return (1 // 0, Pass", "12: passes() of a small case failed: ZeroDivisionError: "),
    ("return MARK", "return mark", "13: data_key() of a small case failed: NameError: name 'mark' is not"),
    ("return Cost(1, 8, 8)", "return Cost(1)", "17: cost() of a small case failed: TypeError: "),
    (
        "    def cost(self, case): return Cost(1, 8, 8)\n",
        "",
        "18: TypeError: Can't instantiate abstract class Small with abstract method cost",
    ),
]
"""(old text, new text, how the error goes on after the file's name and a colon)."""

PASS = "passes: small.comp.j2"
ANSWERS: list[tuple[str, str, str]] = [
    ("return (Pass(", "return [1] or (Pass(", "passes gives a list; give a tuple of Pass"),
    ("return (Pass(", "return () and (Pass(", "passes is empty; a kernel dispatches at least once"),
    ("return (Pass(", "return (Pass, Pass(", "passes holds the class Pass; give a tuple of Pass"),
    ("return (Pass(", "return None and (Pass(", "passes gives None; give a tuple of Pass"),
    ('Pass("small.comp.j2"', "Pass(None", "passes: template is None; name a file of the kernel's folder"),
    ("(1, 2, 1)", "(1, 2)", f"{PASS}: workgroup is (1, 2); give three ints (x, y, z) of 1 or more"),
    ("(1, 2, 1)", "64", f"{PASS}: workgroup is 64; give three ints (x, y, z) of 1 or more"),
    ("(3, 1, 1)", "(3, 0, 1)", f"{PASS}: grid is (3, 0, 1); give three ints (x, y, z) of 1 or more"),
    ("(3, 1, 1)", "(6 / 2, 1, 1)", f"{PASS}: grid is (3.0, 1, 1); give three ints (x, y, z) of 1 or more"),
    ("1), 0, (", "1), -4, (", f"{PASS}: shared_bytes is -4; give an int of 0 or more"),
    ('("x", "o")', '"x"', f"{PASS}: buffers is 'x'; give a tuple of names"),
    ('("x", "o")', '("x", "oo")', f"{PASS} binds ['oo']; buffers has ['o', 'x']"),
    ('("x", "o")', '("o",)', "no pass binds ['x']; leave them out of buffers"),
    ('("x", "o")', '("x", "o"), ["half"]', f"{PASS}: context is a list; give a dict"),
    ('("x", "o")', '("x", "o"), {}, {"N": 4.0}', f"{PASS}: constants: 'N' is 4.0; give a name and an int"),
    ('("x", "o")', '("x", "o"), values={"N": "4"}', f"{PASS}: values: 'N' is '4'; give a name and an int"),
    (
        '("x", "o")',
        '("x", "o"), subgroups=32',
        f"{PASS}: subgroups is an int; give Subgroups(size, count)",
    ),
    (
        '(Buffer("x", "in", "f32", 4)',
        '("x", Buffer("x", "in", "f32", 4)',
        "buffers holds a str; give a tuple of Buffer",
    ),
    ('Buffer("x", "in"', 'Buffer("x y", "in"', "buffers: 'x y' is no name; give letters, digits and _"),
    ('"x", "in"', '"x", "input"', "buffers: x: role 'input' is unknown. Did you mean \"inout\"?"),
    ('"x", "in", "f32"', '"x", "in", "fp32"', "buffers: x: dtype 'fp32' is unknown. Did you mean \"f32\"?"),
    ('"in", "f32", 4', '"in", "f32", 0', "buffers: x: count is 0; give an int of 1 or more"),
    ('"in", "f32", 4', '"in", "f32", 4.0', "buffers: x: count is 4.0; give an int of 1 or more"),
    ('Buffer("o"', 'Buffer("x"', "buffers names ['x'] twice; rename one"),
    ("return MARK", "return 7", "data_key gives 7; give a text of all that inputs and reference depend on"),
    ("return MARK", "return ''", "data_key gives ''; give a text of all that inputs and reference depend on"),
    ("return Cost(1, 8, 8)", "return 8", "cost gives an int; give a Cost"),
    ("Cost(1, 8, 8)", "Cost(-1, 8, 8)", "cost: flops is -1; give an int of 0 or more"),
    ("Cost(1, 8, 8)", "Cost(1, 8.5, 9)", "cost: bytes_min is 8.5; give an int of 0 or more"),
    (
        "Cost(1, 8, 8)",
        "Cost(1, 8, 7)",
        "cost: bytes_moved 7 < bytes_min 8; a variant moves at least what is compulsory",
    ),
    (
        "    def cost(",
        "    def invalid(self, case): return False\n    def cost(",
        "invalid gives False; give the reason as text, or None where the case can run",
    ),
    (
        "    def cost(",
        "    def features(self, case): return 'float16'\n    def cost(",
        "features gives 'float16'; give a frozenset of texts",
    ),
    (
        "    def cost(",
        "    def matrices(self, case): return ['16x16x16']\n    def cost(",
        "matrices gives ['16x16x16']; give a frozenset of texts",
    ),
]
"""(old text, new text, what the small case's error says)."""


def _error(folder: Path, old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    _folder(folder, GOOD.replace(old, new))
    with pytest.raises(KernelFolderError) as caught:
        load_kernels(folder)
    where, what = str(folder / "small" / "kernel.py"), str(caught.value)
    assert what.startswith(where)
    return what.removeprefix(where)


@pytest.mark.parametrize(("old", "new", "says"), FILE)
def test_a_wrong_declaration_says_where_what_and_what_next(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert _error(tmp_path, old, new) == f": {says}"


@pytest.mark.parametrize(("old", "new", "says"), AT_A_LINE)
def test_code_that_fails_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert _error(tmp_path, old, new).startswith(f":{says}")


@pytest.mark.parametrize(("old", "new", "says"), ANSWERS)
def test_a_wrong_answer_for_a_small_case_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert _error(tmp_path, old, new) == f": {says}{CASE}"


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    says = _error(tmp_path, 'Pass("small.comp.j2"', 'Pass("smal.comp.j2"')
    home = tmp_path / "small"
    assert says == f": template 'smal.comp.j2' is not in {home}. Did you mean \"small.comp.j2\"?"


def test_a_missing_or_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelFolderError) as missing:
        load_kernels(tmp_path / "nonsuch")
    assert str(missing.value) == (
        f"{tmp_path / 'nonsuch'}: no such folder. Give the folder that holds NAME/kernel.py."
    )
    with pytest.raises(KernelFolderError) as empty:
        load_kernels(tmp_path)
    assert str(empty.value) == f"{tmp_path}: holds no NAME/kernel.py. See docs/add-a-kernel.md."
