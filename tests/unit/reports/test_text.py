import shlex
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.text import file_stem, shell_word, visible, visible_block
from tests.unit.reports.hostile import ALL, NASTY


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Mali-G710 é 中 ×", "Mali-G710 é 中 ×"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("\x1b[31m", "\\u001b[31m"),
        ("a\x00b", "a\\u0000b"),
        ("a\nb\r", "a\\u000ab\\u000d"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\ufffe", "\\ufffe"),
        ("\U000e0041", "\\U000e0041"),
        ("line\u2028sep", "line\\u2028sep"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_visible_text_hides_nothing_and_keeps_the_rest(text: str) -> None:
    shown = visible(text)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert visible(shown) == shown
    shown.encode("utf-8")


def test_long_text_is_cut_and_says_so() -> None:
    assert visible("x" * 12, limit=10) == "x" * 10 + "… (2 more characters)"
    assert visible_block("a\n" * 10, limit=4) == "a\na\n… (16 more characters)"


def test_block_keeps_lines_and_tabs_only() -> None:
    assert visible_block("a\r\n\tb\x07\u202e\n") == "a\n    b\\u0007\\u202e\n"


@pytest.mark.parametrize("text", ["0123", "a b", "it's", "$(reboot)", *(t for t in ALL if "\x00" not in t)])
def test_g2_02_serials_survive_a_shell(text: str) -> None:
    """What a person copies from the page is the serial, byte for byte."""
    word = shell_word(text)
    assert visible(word, len(word)) == word
    done = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout.decode() == text


def test_ordinary_words_stay_ordinary() -> None:
    assert shell_word("adb (2)._adb-tls") == shlex.quote("adb (2)._adb-tls")
    assert shell_word("local") == "local"


@pytest.mark.parametrize("text", ["../../etc/passwd", "a/b", "", "..", "C:\\x", NASTY, "x" * 300, ".hidden"])
def test_file_stems_stay_in_their_folder(text: str) -> None:
    stem = file_stem(text, "abc123")
    assert stem
    assert len(stem) <= 100
    assert all(c.isascii() and (c.isalnum() or c in "._-") for c in stem)
    assert not stem.startswith(".")


def test_safe_names_stay_as_they_are() -> None:
    assert file_stem("SM8650", "abc") == "SM8650"
    assert file_stem("Tensor G2", "abc") == "Tensor-G2-abc"
