"""YAML made to hang, to exhaust memory or to run code ends in one short error."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.errors import MatrixError
from orchestrator.planning.matrix_reader import load_matrix
from orchestrator.planning.yaml_events import YamlSyntaxError
from orchestrator.planning.yaml_tree import MAX_BYTES, Fields, read_tree
from tests.unit.planning.toy import KERNELS, TODAY


def refusal(data: bytes) -> tuple[int, str]:
    with pytest.raises(YamlSyntaxError) as caught:
        read_tree(data)
    return caught.value.line, caught.value.what


def laughs(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (laughs(10), 5, "more than 50000 values once aliases are expanded"),
        (b"a: &a [*a]", 1, 'alias "*a" contains itself'),
        (b"a: *nothing", 1, 'alias "*nothing" has no anchor above it'),
        (b"[" * 5_000, 1, "nested more than 32 deep"),
        (b"a:\n" + b"".join(b" " * n + b"b:\n" for n in range(1, 50)), 33, "nested more than 32 deep"),
        (b"x: " + b"y" * MAX_BYTES, 1, f"the file has more than {MAX_BYTES} bytes; split it"),
        (
            b"a: 1\nb: !!python/object/apply:os.system ['true']",
            2,
            'tags are not supported; remove "tag:yaml',
        ),
        (b"a: 1\nb: \xff\xfe", 2, "byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: 1\nb: \x00", 2, "not YAML: a control character; remove it"),
        (b"a: 1\n\tb: 2", 2, "not YAML: a tab; use spaces"),
        (b"a: [1, 2\nb: 3", 2, "not YAML: "),
        (b"a: 'never ends", 1, "not YAML: "),
        (b"a: 1\n---\nb: 2", 2, "a second document (---); a file holds one"),
        (b"? [a, b]\n: 1", 1, "a key must be a plain word"),
        (b"a: &x {b: 1}\nc: {<<: *x}", 2, 'merge keys ("<<") are not supported'),
        (b"%YAML 9", 1, "not YAML: "),
    ],
)
def test_hostile_text_is_refused_with_its_line(data: bytes, line: int, what: str):
    found_line, found = refusal(data)
    assert found.startswith(what)
    assert found_line == line


def test_a_bounded_number_of_aliases_is_fine():
    root, found = read_tree(laughs(4))
    assert isinstance(root, Fields)
    assert found == []


def test_foreign_characters_never_reach_the_terminal_raw(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text(
        'version: 1\n"\\e[31m\\u202ered": 1\nsuites: {"<b>": {description: "a\\e[1m", blocks: []}}\n',
        encoding="utf-8",
    )
    with pytest.raises(MatrixError) as caught:
        load_matrix(path, KERNELS, TODAY)
    text = str(caught.value)
    assert all(c == "\n" or c.isprintable() for c in text)
    assert '"\\u001b[31m\\u202ered": unknown key' in text
    assert 'description: control characters in "a\\u001b[1m"; remove them' in text


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_bytes(b"\xef\xbb\xbfversion: 1\r\nsuites:\r\n  s:\r\n    blocks: [{kernel: copy_probe}]\r\n")
    assert list(load_matrix(path, KERNELS, TODAY).suites) == ["s"]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!|>'\"%@#? \n\t<1\u202e", max_size=60))
def test_any_text_is_a_tree_or_one_error(text: str):
    line = 1
    try:
        read_tree(text.encode())
    except YamlSyntaxError as e:
        line = e.line
    assert 1 <= line <= text.count("\n") + 2
