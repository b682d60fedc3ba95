"""``tilefarm devices`` measures what each precision delivers, on the path of a run, and keeps nothing."""

from tests.farm import Farm


def test_precision_of_this_machine(farm: Farm) -> None:
    document = farm.json("devices", "--device", "local:llvmpipe")
    found = {p["asked"]: p for p in document["precision"]}
    assert list(found) == ["highp", "mediump", "pack_half"]
    assert found["highp"]["delivered"] == "fp32"
    speeds = {found[asked]["relative_speed"] for asked in ("highp", "mediump")}
    # a machine that is busy with other work gives noisy times, which are no rate
    assert found["highp"]["relative_speed"] in (1.0, None)
    assert all(speed is None or speed > 0 for speed in speeds)
    assert found["pack_half"]["relative_speed"] is None
    assert found["pack_half"]["sentence"].startswith("pack_half: 10 bits, largest 65504")
    assert document["failed_probes"] == []
    assert not (farm.out / "runs").exists()


def test_precision_as_text(farm: Farm) -> None:
    lines = farm.run("devices", "--device", "local:lavapipe").stdout.splitlines()
    first = next(n for n, line in enumerate(lines) if line.endswith("lavapipe vulkan"))
    words = ("highp", "mediump", "precise", "fp16", "storage16", "pack_half")
    assert [line.split(":")[0].split()[0] for line in lines[first + 1 : first + 7]] == list(words)


def test_without_probes_it_is_a_listing(farm: Farm) -> None:
    document = farm.json("devices", "--device", "local:llvmpipe", "--no-probes")
    assert [d["soc"]["name"] for d in document["devices"]] == ["llvmpipe"]
    assert "precision" not in document
