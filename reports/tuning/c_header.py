"""A tuning table as one C header: C99 and C++11, warnings off nowhere, the same bytes for the same table."""

from collections.abc import Sequence

from orchestrator.domain.tuning import Entry, Tuning
from reports.tuning.c_fields import Field, fields_of
from reports.tuning.c_text import comment, literal

GUARD = "TILEFARM_TUNING_H"
_USE = (
    "How to use it: tilefarm_tuning_find(soc, vendor, op, workload, api) gives the entry of the SoC; for a "
    "SoC that was not measured that of its vendor, where two of the vendor's SoCs at least were, then that "
    "of all; NULL where there is none, and then the app takes what it would take without a table.",
    "A fallback's variant passed on every SoC of its group. `loss` is the most that it cost there; nothing "
    "is known of a SoC outside: check the device's limits and features before you take it.",
    "Times are of the phone in the middle. Another kernel code (code_hash) or driver has other times.",
)
_LOOKUP = """\
/* The entry of a SoC, else of its vendor, else of all; NULL: none. `vendor` may be NULL: not known. */
static inline const struct tilefarm_tuning *tilefarm_tuning_find(
    const char *soc, const char *vendor, const char *op, const char *workload, const char *api)
{
    const struct tilefarm_tuning *of_vendor = NULL;
    const struct tilefarm_tuning *of_all = NULL;
    size_t i;
    for (i = 0; i < TILEFARM_TUNING_COUNT; i++) {
        const struct tilefarm_tuning *e = &tilefarm_tunings[i];
        if (strcmp(e->op, op) != 0 || strcmp(e->workload, workload) != 0 || strcmp(e->api, api) != 0)
            continue;
        if (e->match == TILEFARM_MATCH_SOC) {
            if (soc != NULL && strcmp(e->soc, soc) == 0)
                return e;
        } else if (e->match == TILEFARM_MATCH_VENDOR) {
            if (vendor != NULL && strcmp(e->vendor, vendor) == 0)
                of_vendor = e;
        } else {
            of_all = e;
        }
    }
    return of_vendor != NULL ? of_vendor : of_all;
}
"""


def render_c_header(table: Tuning) -> str:
    """``table`` has one entry at least."""
    fields = _fields(table.entries)
    parts = [
        comment(_provenance(table)),
        f"#ifndef {GUARD}\n#define {GUARD}\n",
        "#include <float.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n",
        f"#define TILEFARM_TUNING_FORMAT {table.format}",
        f"#define TILEFARM_TUNING_COUNT {len(table.entries)}",
        "/* An axis or a parameter that an entry's kernel or op does not have; of texts: NULL. */",
        "#define TILEFARM_ABSENT INT64_MIN\n",
        "enum tilefarm_match { TILEFARM_MATCH_SOC, TILEFARM_MATCH_VENDOR, TILEFARM_MATCH_ALL };\n",
        "struct tilefarm_tuning {",
        *(f"    {f.kind}{f.name};{f' /* {f.said} */' if f.said else ''}" for f in fields),
        "};\n",
        "static const struct tilefarm_tuning tilefarm_tunings[TILEFARM_TUNING_COUNT] = {",
        *(f"    {{{', '.join(f.values[row] for f in fields)}}}," for row in range(len(table.entries))),
        "};\n",
        _LOOKUP,
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def _provenance(table: Tuning) -> list[str]:
    chosen = [f"precision {', '.join(table.precisions)}"] if table.precisions else []
    chosen += [f"NMSE at most {table.max_nmse:g}"] if table.max_nmse is not None else []
    lines = [
        f"Tuning table, format {table.format}. Made by Tilefarm {table.tilefarm}; do not edit.",
        "Make it again from the same history:",
        f"$ {table.command}",
        f"Suite {table.suite}, {len(table.runs)} nights, {table.nights[0]} to {table.nights[-1]}. "
        f"Chosen from: {'; '.join(chosen) or 'all variants that passed on every phone'}.",
        f"Runs: {', '.join(table.runs)}",
        "",
    ]
    for soc in table.socs:
        made_up = " VIRTUAL PHONES: their times say nothing about this SoC." if soc.virtual else ""
        lines.append(
            f"{soc.soc} ({soc.vendor}): {soc.phones} phones, {soc.nights} nights;"
            f" drivers: {', '.join(soc.drivers) or 'not known'}.{made_up}"
        )
    warned = sorted({w for e in table.entries for w in e.warnings if "virtual" not in w})
    if warned:
        lines += ["", "Before you ship it:", *(f"- {w}" for w in _with_socs(table, warned))]
    return [*lines, "", *_USE]


def _with_socs(table: Tuning, warnings: Sequence[str]) -> list[str]:
    """Each warning once, with the entries that have it."""
    said: list[str] = []
    for warning in warnings:
        where = [f"{e.soc} {e.op}/{e.api}" for e in table.entries if warning in e.warnings]
        said.append(f"{', '.join(dict.fromkeys(where))}: {warning}")
    return said


def _fields(entries: Sequence[Entry]) -> list[Field]:
    def texts(name: str, values: Sequence[str], said: str = "") -> Field:
        return Field(name, "const char *", [literal(v) for v in values], said)

    def numbers(name: str, kind: str, values: Sequence[str], said: str = "") -> Field:
        return Field(name, f"{kind} ", values, said)

    margins = [e.margin for e in entries]
    return [
        numbers("match", "enum tilefarm_match", [f"TILEFARM_MATCH_{e.match.upper()}" for e in entries]),
        texts("soc", [e.soc for e in entries], 'of a fallback: ""'),
        texts("vendor", [e.vendor for e in entries]),
        texts("driver", ["; ".join(e.drivers) for e in entries], "that was measured"),
        texts("api", [e.api for e in entries], "asked for: any, gles or vulkan; axis_api is the variant's"),
        texts("op", [e.op for e in entries]),
        texts("workload", [e.workload_key for e in entries], "parameters by name"),
        texts("kernel", [e.variant.kernel for e in entries]),
        texts("case_id", [e.variant.case_id for e in entries]),
        texts("code_hash", [e.variant.code_hash for e in entries]),
        numbers("latency_ns", "int64_t", [_absent(e.latency_ns) for e in entries]),
        numbers("margin_known", "int", [str(int(m is not None)) for m in margins]),
        numbers(
            "margin", "double", [_real(m.log_ratio if m else 0.0) for m in margins],
            "log ratio of the runner-up's latency",
        ),
        numbers(
            "margin_low", "double", [_real(m.low if m else None, "-DBL_MAX") for m in margins],
            "95 % interval; +-DBL_MAX: its scatter is not known",
        ),
        numbers("margin_high", "double", [_real(m.high if m else None, "DBL_MAX") for m in margins]),
        numbers("tied", "int", [str(len(e.tied)) for e in entries], "variants that cannot be told from it"),
        numbers("loss", "double", [_real(e.loss) for e in entries], "of a fallback, log ratio"),
        numbers("nmse", "double", [_real(e.variant.nmse) for e in entries], "-1: not known"),
        numbers("phones", "int", [str(e.phones) for e in entries]),
        numbers("nights", "int", [str(e.nights) for e in entries]),
        numbers("warnings", "int", [str(len(e.warnings)) for e in entries], "see above"),
        *fields_of([e.variant.axes for e in entries], "axis_"),
        *fields_of([e.workload for e in entries], "param_"),
    ]  # fmt: skip


def _absent(value: int | None) -> str:
    return "TILEFARM_ABSENT" if value is None else str(value)


def _real(value: float | None, unknown: str = "-1.0") -> str:
    """A double literal."""
    return unknown if value is None else repr(float(value))
