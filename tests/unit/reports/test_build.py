import shlex
from dataclasses import replace

from orchestrator.analysis.outcome import Outcome
from reports.build import build_report, soc_file_names
from reports.findings import repro_command
from reports.labels import Labels
from reports.model import DeviceSection, ReportModel
from tests.results_fixture import TODAY, case, device, passing, results, run_info, timing
from tests.unit.reports.hostile import NASTY
from tests.unit.reports.sample import LOCAL, PHONE, sample, sample_previous


def _model() -> ReportModel:
    return build_report(sample(), sample_previous(), TODAY)


def _section(device_id: str) -> DeviceSection:
    return next(d for s in _model().socs for d in s.devices if d.device.device_id == device_id)


def test_one_page_a_soc() -> None:
    assert [(s.soc, s.file_name, s.virtual) for s in _model().socs] == [
        ("llvmpipe", "soc-llvmpipe.html", False),
        ("SM8650", "soc-SM8650.html", True),
    ]


def test_counts_of_the_socs_add_up_to_the_runs() -> None:
    model = _model()
    for name in ("passed", "failed", "known", "unexpected_pass", "infra", "missing", "unsupported", "pruned"):
        assert sum(getattr(s.counts, name) for s in model.socs) == getattr(model.summary.counts, name), name


def test_findings_are_ordered_by_urgency_and_hold_everything_but_passes() -> None:
    section = _section(LOCAL)
    order = [
        Outcome.FAILURE,
        Outcome.INFRA,
        Outcome.UNEXPECTEDLY_PASSED,
        Outcome.EXPECTED_FAILURE,
        Outcome.UNSUPPORTED,
    ]
    ranks = [order.index(f.outcome) for f in section.findings]
    assert ranks == sorted(ranks)
    assert (
        len(section.findings) == section.counts.failed + section.counts.unexpected_pass + section.counts.known
    )
    assert len({f.anchor for s in _model().socs for d in s.devices for f in d.findings}) == 12


def test_worst_element_has_coordinates_of_the_outputs_shape() -> None:
    damaged = next(f for f in _section(LOCAL).findings if f.reason.startswith("guard band"))
    worst = damaged.outputs[0].worst
    assert worst is not None
    assert worst.coordinates == (0, 31, 63)
    assert (worst.got, worst.ref) == (1.7, 0.21)


def test_repro_runs_exactly_one_case_on_one_device() -> None:
    local, phone = _section(LOCAL).findings[0], _section(PHONE).findings[0]
    assert local.repro == f"tilefarm run --suite smoke --case {local.case_id} --device {LOCAL}"
    assert phone.repro == f"tilefarm run --suite smoke --case {phone.case_id} --device {PHONE}"


def test_repro_holds_everything_that_the_case_needs_to_exist() -> None:
    run = replace(
        run_info(suite="my suite"),
        matrix="odd dir/m.yaml",
        kernels=["k1", "k 2"],
        overrides=["vector=1,4", "x=$y"],
    )
    command = repro_command(run, "0123", device("adb-7", serial="10.0.0.7:5555", transport="adb"))
    assert shlex.split(command) == [
        "tilefarm", "run", "--suite", "my suite", "--matrix", "odd dir/m.yaml",
        "--kernels", "k1", "--kernels", "k 2",
        "--set", "vector=1,4", "--set", "x=$y", "--case", "0123", "--device", "adb-7",
    ]  # fmt: skip


def test_virtual_phones_are_called_so() -> None:
    assert _section(LOCAL).warning == ""
    assert _section(PHONE).warning == (
        "virtual phone: llvmpipe (LLVM 15.0.6, 256 bits) of this host under declared limits; "
        "its times say nothing about SM8650"
    )


def test_pruned_points_are_grouped_by_reason() -> None:
    groups = _section(PHONE).pruned
    assert sum(g.count for g in groups) == _section(PHONE).counts.pruned
    assert groups[0].count == max(g.count for g in groups)
    assert all(" > 16384" in g.reason for g in groups)


def test_g1_14_hints_without_effect_share_a_row() -> None:
    table = _section(LOCAL).tables[0]
    hint = table.columns.index("hint")
    merged = [r for r in table.rows if r.values[hint] == "highp = mediump"]
    assert len(merged) == table.hidden_hints == 16
    assert _section(LOCAL).hints[0].no_effect


def test_axes_with_one_value_move_to_the_caption() -> None:
    table = _section(LOCAL).tables[1]
    assert table.title == "attention seq=33 head_dim=64 heads=1 kv_heads=1 causal=false"
    assert dict(table.common) == {
        "seed": "1", "api": "gles", "precision": "fp32", "layout": "row", "vector": "4", "hint": "highp",
    }  # fmt: skip
    assert table.columns == ("inputs", "tile")


def test_rows_are_fastest_first_and_wrong_ones_last() -> None:
    rows = _section(LOCAL).tables[0].rows
    correct = [r for r in rows if r.verdict.value == "pass"]
    assert list(rows[: len(correct)]) == correct
    times = [r.stats.median_ns for r in correct if r.stats is not None]
    assert times == sorted(times)
    assert [r.kernel for r in rows if r.fastest] == ["attention_flash", "attention_naive"]
    assert all(r.speedup is None and r.gflops is None for r in rows[len(correct) :])


def test_best_rows_name_the_choice() -> None:
    groups = _section(LOCAL).best
    assert [g.workload for g in groups][:2] == [
        "attention seq=512 inputs=normal",
        "attention seq=33 inputs=large",
    ]
    best = [b for b in groups[0].rows if b.kernel == "attention_flash" and b.precision == "fp32"]
    assert best[0].variant == "64x16 row vector=4 highp"
    assert best[0].of == 19
    assert best[0].speedup is not None
    assert 8 < best[0].speedup < 9


def test_a_kernel_with_one_variant_stands_beside_the_others() -> None:
    naive = [case("attention_naive", tile=t) for t in ("8x8", "16x16")]
    flash, alone = case(tile="64x16"), case(seq=33)
    many = [case(seq=65, tile=t) for t in ("8x8", "16x8", "32x8", "64x8")]
    points = [alone, *naive, flash, *many]
    run = results(trials=[passing(p, "local-1") for p in points], points=points)
    groups = build_report(run, None, TODAY).socs[0].devices[0].best
    assert [g.workload for g in groups] == ["attention seq=65", "attention seq=512"]
    assert [(b.kernel, b.of) for b in groups[1].rows] == [("attention_naive", 2), ("attention_flash", 1)]


def test_main_workloads_are_taken_in_turn_from_every_device() -> None:
    points = [case(seq=s, tile=t) for s in (32, 33, 34) for t in ("8x8", "16x8")]
    run = results(
        trials=[passing(p, d) for d in ("a", "b") for p in points],
        devices=[device("a"), device("b")],
        points=points,
    )
    chosen = build_report(run, None, TODAY).best(3)
    assert [(d.device.device_id, g.workload) for d, g in chosen] == [
        ("a", "attention seq=32"), ("a", "attention seq=33"), ("b", "attention seq=32"),
    ]  # fmt: skip


def test_bound_is_the_run_s_unless_the_caller_gives_one() -> None:
    kept = replace(sample(), run=replace(sample().run, max_slowdown=1.1))
    assert len(build_report(kept, sample_previous(), TODAY).slow) == 6
    assert build_report(kept, sample_previous(), TODAY, max_slowdown=2.0).slow == ()


def test_changes_put_other_verdicts_first() -> None:
    flags = [c.verdict_changed for c in _section(LOCAL).changes]
    assert flags == sorted(flags, reverse=True)
    assert any(flags)


def test_two_devices_of_a_soc_share_a_page_and_never_a_baseline() -> None:
    flash, naive = case(tile="8x8"), case("attention_naive", tile="8x8")
    run = results(
        trials=[passing(flash, "a", timing(10**7)), passing(naive, "b", timing(9 * 10**7))],
        devices=[device("a"), device("b")],
        points=[flash, naive],
    )
    page = build_report(run, None, TODAY).socs[0]
    assert [d.device.device_id for d in page.devices] == ["a", "b"]
    assert page.devices[0].tables[0].rows[0].speedup is None


def test_file_names_of_socs_stay_apart() -> None:
    names = soc_file_names(dict.fromkeys(["A B", "A/B", "a-b", "A-b", "..", NASTY]))
    assert len({n.lower() for n in names.values()}) == 6
    assert all(n.startswith("soc-") and n.endswith(".html") and "/" not in n for n in names.values())


def test_labels_say_once_what_all_cases_share() -> None:
    points = [
        case(tile="8x8", layout="row"),
        case(tile="16x8", layout="row"),
        case(tile="8x8", layout="row", seq=33),
    ]
    labels = Labels(points)
    assert labels.short(points[0]) == "attention_flash tile=8x8 seq=512"
    assert labels.workload(points[2]) == "attention seq=33"
    assert labels.common["layout"] == "row"
    other = case(tile="8x8", layout="column")
    assert labels.short(other) == "attention_flash tile=8x8 layout=column seq=512"
    assert Labels([]).common == {}


def test_an_empty_run_has_a_model() -> None:
    empty = replace(results(), devices=[])
    model = build_report(empty, None, TODAY)
    assert model.socs == ()
    assert model.summary.exit_code == 3
