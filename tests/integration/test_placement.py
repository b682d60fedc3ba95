"""Two phones of one SoC share a suite's cases, and each series goes on where it began."""

from tests.farm import Farm
from tests.phones import StartPhone
from workers.transports.adb import AdbServer

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 1
    min_phones_per_soc: 1
    blocks:
      - kernel: scale
        workloads: [{n: [33, 65, 129, 257]}]
        axes: {precision: fp32}
"""


def test_cases_run_on_any_phone_of_their_soc_and_on_the_same_one_the_next_time(
    farm: Farm, adb_server: AdbServer, start_phone: StartPhone
) -> None:
    farm.environment |= {"ANDROID_ADB_SERVER_PORT": str(adb_server.port)}
    matrix = farm.folder / "matrix.yaml"
    matrix.write_text(MATRIX)
    for serial in ("VIRTUAL1", "VIRTUAL2"):
        start_phone("snapdragon-8-gen-3", serial=serial)
    wanted = ("run", "--matrix", str(matrix), "--no-probes", "--device", "SM8650", "--phones", "1")

    farm.run(*wanted)
    first = farm.latest()
    assert first.run.phones_per_soc == 1
    assert len(first.devices) == 2
    assert [t.verdict for t in first.trials] == ["pass"] * 4
    assert len({t.case_id for t in first.trials}) == 4
    assert all(t.planned_for.startswith("pool0-") for t in first.trials)

    farm.run(*wanted)
    second = farm.latest()
    assert {(t.device_id, t.case_id) for t in second.trials} == {
        (t.device_id, t.case_id) for t in first.trials
    }
    assert {t.planned_for for t in second.trials} == {""}
    assert second.previous_run == first.run.run_id
