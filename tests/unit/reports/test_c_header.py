"""The tuning table as a C header: compilers take it, apps find their entry, and no text breaks out of it."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.analysis.best.table import tuning_table
from orchestrator.domain.best import Best
from reports.tuning.c_header import render_c_header
from reports.tuning.c_text import Names, comment, literal
from tests.unit.reports.best_sample import best
from tests.unit.reports.hostile import ALL, NASTY

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
COMPILERS = [["gcc", "-std=c99"], ["gcc", "-std=c17"], ["clang", "-std=c99"], ["g++", "-std=c++11"]]
ATTACKS = [
    *ALL,
    NASTY,
    "*/ int stolen = 1; /*",
    "/*/ nested /**/",
    "ends with a backslash \\",
    "??/ ??' trigraphs ??)",
    '"; system("reboot"); //',
    "%s%n",
    "\n#error broken out\n",
    "é日本\udcff",
    "x" * 30_000,
    "1",
    "",
]
LOOK = """
#include "tilefarm_tuning.h"
#include <stdio.h>

static void show(const char *soc, const char *vendor, const char *api)
{
    const char *workload = "causal=false head_dim=64 mask=none seq=512";
    const struct tilefarm_tuning *e = tilefarm_tuning_find(soc, vendor, "attention", workload, api);
    if (e == NULL) {
        puts("none");
        return;
    }
    printf("%d %s %s %dx%d %ld %d %g '%s' %d %d\\n",
           (int)e->match, e->case_id, e->axis_api, (int)e->axis_tile_x, (int)e->axis_tile_y,
           e->latency_ns == TILEFARM_ABSENT ? -1L : (long)e->latency_ns,
           (int)e->param_seq, e->loss, e->driver, e->margin_known, e->margin_low == -DBL_MAX);
}

int main(void)
{
    show("SM8650", NULL, "any");
    show("SM8650", NULL, "gles");
    show("SM8650", "Qualcomm", "vulkan");
    show("SM9999", "Qualcomm", "any");
    show("Kirin", "HiSilicon", "any");
    show("Kirin", NULL, "opencl");
    show(NULL, NULL, "any");
    return 0;
}
"""


def header(found: Best) -> str:
    return render_c_header(tuning_table(found, "tilefarm export 20261202T010000Z-nightly-bbbb"))


def compiled(folder: Path, source: str, text: str, compiler: list[str]) -> Path:
    (folder / "tilefarm_tuning.h").write_text(text, encoding="ascii")
    name = folder / ("main.cc" if compiler[0] == "g++" else "main.c")
    name.write_text(source)
    program = folder / "main"
    done = subprocess.run(
        [*compiler, *STRICT, "-o", program, name], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_an_app_finds_its_entry(tmp_path: Path, compiler: list[str]) -> None:
    program = compiled(tmp_path, LOOK, header(best()), compiler)
    shown = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert shown.splitlines() == [
        "0 bbbb gles 64x16 1239516 512 0 'Adreno 750; V@744' 1 0",
        "0 bbbb gles 64x16 1239516 512 0 'Adreno 750; V@744' 1 1",
        "0 cccc vulkan 32x16 3036546 512 0 '' 0 1",
        "1 aaaa gles 32x16 -1 512 0 '' 0 1",
        "2 aaaa gles 32x16 -1 512 0 '' 0 1",
        "none",
        "2 aaaa gles 32x16 -1 512 0 '' 0 1",
    ]


@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_a_file_that_uses_nothing_of_it_compiles(tmp_path: Path, compiler: list[str]) -> None:
    twice = '#include "tilefarm_tuning.h"\n#include "tilefarm_tuning.h"\nint main(void) { return 0; }\n'
    compiled(tmp_path, twice, header(best()), compiler)


@pytest.mark.parametrize("text", ATTACKS, ids=range(len(ATTACKS)))
def test_hostile_names_stay_names(tmp_path: Path, text: str) -> None:
    """The program prints the SoC's name as bytes: what went in, up to the bound."""
    source = """
#include "tilefarm_tuning.h"
#include <stdio.h>
int main(void) { return fputs(tilefarm_tunings[0].soc, stdout) < 0; }
"""
    found = best(text=text)
    soc = tuning_table(found, "").entries[0].soc
    program = compiled(tmp_path, source, header(found), ["gcc", "-std=c99"])
    shown = subprocess.run([program], capture_output=True, check=True, timeout=60).stdout
    wanted = os.fsencode(soc) if "\ud800" not in soc else soc.encode(errors="replace")
    assert shown == wanted[:1000].split(b"\0")[0]
    compiled(tmp_path, source, header(found), ["g++", "-std=c++11"])


def test_the_same_table_is_the_same_bytes_and_names_no_phone() -> None:
    text = header(best())
    assert text == header(best())
    assert "phone-1" not in text
    assert "phone 2 it loses" in text


def test_provenance_is_in_it() -> None:
    text = header(best(virtual=True))
    for word in (
        "Tilefarm 0.1.0", "20261201T010000Z-nightly-aaaa", "2026-12-01 to 2026-12-02", "Adreno 750; V@744",
        "tilefarm export 20261202T010000Z-nightly-bbbb", "c0debbbb", "VIRTUAL PHONES", "rests on 2 nights",
    ):  # fmt: skip
        assert word in text, word


def test_fields_are_numbers_where_all_values_are_some() -> None:
    text = header(best())
    for line in (
        "int64_t axis_tile_x;", "int64_t axis_tile_y;", "int64_t axis_vector;", "const char *axis_api;",
        "int64_t param_seq;", "int64_t param_causal; /* 0 or 1 */", "const char *param_mask;",
    ):  # fmt: skip
        assert f"    {line}" in text


def test_a_number_that_is_too_large_for_c_is_text() -> None:
    found = best()
    workload = found.socs[0].workloads[0]
    workload.workload["seq"] = 2**63
    assert "const char *param_seq;" in header(replace(found))


def test_names_are_identifiers_each_once() -> None:
    names = Names("axis_")
    assert [names.of(n) for n in ("tile", "ti-le", "ti le", "", "日本")] == [
        "axis_tile", "axis_ti_le", "axis_ti_le_2", "axis__", "axis___",
    ]  # fmt: skip


def test_literals_and_comments_are_ascii() -> None:
    assert literal('a"b\\c?\n1é') == '"a\\"b\\\\c\\?\\0121\\303\\251"'
    made = comment(["*/ x", "back\\", "日"])
    assert made.count("*/") == 1
    assert made.isascii()
