"""As many series as a farm has on one SoC, every fiftieth moved, names as long as the farm's."""

from orchestrator.domain.finding import Finding, Findings, SeriesRow
from orchestrator.domain.results import CaseInfo
from tests.results_fixture import case, info
from tests.unit.reports.sample_nights import NIGHTS, noise


def many(count: int, nights: int = 14) -> tuple[dict[str, CaseInfo], Findings]:
    """One SoC with so many series, every fiftieth moved; all labels as long as the farm's."""
    points = [
        case(kernel, precision=p, tile=f"{r}x{c}", layout=layout, vector=v, hint=h, halves=halves, seq=seq)
        for kernel in ("attention_flash", "attention_tiled_sgemm", "attention_naive")
        for p in ("fp32", "fp16_storage")
        for r in (8, 16, 32, 64, 128)
        for c in (8, 16, 32, 64, 128)
        for layout in ("row", "column")
        for v in (1, 4)
        for h in ("highp", "mediump")
        for halves in ("packed", "native")
        for seq in (512, 2048, 4096, 8192, 16384)
    ][:count]
    infos = {p.case_id: info(p) for p in points}
    series: list[SeriesRow] = []
    found: list[Finding] = []
    for number, case_id in enumerate(infos):
        effect = 0.02 * noise(case_id)
        verdict = "same"
        if number % 50 == 0:
            effect = 0.08 if number % 100 else -0.08
            verdict = "regressed" if effect > 0 else "improved"
            found.append(
                Finding(
                    f"f{number}",
                    "speed",
                    verdict,
                    "SM8650",
                    case_id,
                    effect=effect,
                    since=NIGHTS[-1],
                    baseline=NIGHTS[:-1],
                )
            )
        history = [0.02 * noise(case_id, i) for i in range(nights - 1)] + [effect]
        series.append(
            SeriesRow(
                "SM8650",
                case_id,
                verdict,
                "",
                effect,
                0.02 + 0.01 * noise(number),
                7e6 * (1 + noise(case_id, "ns") / 2),
                3,
                history,
            )
        )
    counts = {"regressed": count // 100, "improved": count // 100}
    findings = Findings(
        "20261201-010000-a1b2", "nightly", NIGHTS[-nights:], "Many.", counts, series=series, findings=found
    )
    return infos, findings
