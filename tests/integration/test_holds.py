"""A person takes a device of a farm for themselves and gives it back."""

from pathlib import Path

from orchestrator.execution.broker import Broker
from tests.farm import ONE_CASE, Farm, wait_for


def test_a_held_device_is_missing_with_the_reason_until_it_is_released(
    farm: Farm, broker: str, tmp_path: Path
) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(ONE_CASE)
    farm.environment["TILEFARM_BROKER"] = broker
    worker = farm.start("worker", "--device", "local:llvmpipe", log=farm.folder / "worker.log")
    try:
        wait_for(lambda: _registered(broker), "the worker's registration")
        held = farm.json("hold", "local:llvmpipe", "--why", "new fan")
        device = held["device_id"]
        assert (held["why"], held["serial"]) == ("new fan", "local:llvmpipe")
        again = farm.run("hold", device, "--why", "me, too", expect=2)
        assert "new fan" in again.stderr
        wanted = ("run", "--matrix", str(matrix), "--no-probes", "--device", "local:llvmpipe")
        refused = farm.run(*wanted, expect=3)
        assert f"held by {held['by']} since {held['since']}: new fan" in refused.stderr
        assert farm.json("release", "local:llvmpipe") == held
        assert f"{device} is not held" in farm.run("release", device, expect=2).stderr
        farm.run(*wanted)
        assert [t.verdict for t in farm.latest().trials] == ["pass"]
    finally:
        worker.terminate()
        worker.wait(60)


def _registered(url: str) -> bool:
    broker = Broker(url)
    try:
        return bool(broker.registrations())
    finally:
        broker.close()
