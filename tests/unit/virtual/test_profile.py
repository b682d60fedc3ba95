"""Phone profiles: the shipped ones, and what a wrong one says."""

from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from workers.identity import phone_id, phone_soc
from workers.virtual.profile import load_profile, shipped_profiles

SOCS = {
    "snapdragon-8-gen-3": "SM8650",
    "dimensity-9300": "MT6989",
    "tensor-g2": "Tensor-G2",
    "mid-mali": "MT6763",
    "old-android": "MSM8996",
}


def test_every_shipped_profile_has_its_soc():
    assert {name: phone_soc(load_profile(name).props).name for name in shipped_profiles()} == SOCS


@pytest.mark.parametrize("name", SOCS)
def test_a_shipped_profile_says_that_its_limits_are_declared(name: str):
    path = shipped_profiles()[name]
    assert "not measured" in " ".join(line.strip("# ") for line in path.read_text().splitlines())
    assert load_profile(name).name == name


def test_ids_differ():
    profiles = [load_profile(name) for name in SOCS]
    assert len({phone_id({**p.props, "ro.serialno": p.serial}) for p in profiles}) == len(SOCS)


def test_limits_and_missing_features_as_the_runner_reads_them():
    assert load_profile("old-android").gpu.impose() == (
        "shared_bytes=16384,invocations=128,group_x=128,group_y=128,group_z=64"
    )
    assert (
        load_profile("mid-mali")
        .gpu.impose()
        .endswith(",group_z=64,float16=0,storage16=0,uniform16=0,push16=0,io16=0,cooperative_matrix=0")
    )


def test_a_feature_that_there_is_not_cannot_be_taken_away(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(shipped_profiles()["mid-mali"].read_text().replace("[float16,", "[float61,"))
    with pytest.raises(UsageError, match=r"mine\.yaml: gpu\.without\.0"):
        load_profile(str(file))


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(UsageError, match="Did you mean 'tensor-g2'"):
        load_profile("tensor-g3")


def test_all_problems_of_a_file_are_named(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: Mine!\nserial: X\nprops: {}\nfaults: ['drop:after=x']\nextra: 1\n"
        "gpu: {renderer: R, shared_bytes: 0, invocations: 1, group: [1, 1]}\n"
    )
    with pytest.raises(UsageError) as e:
        load_profile(str(file))
    for place in ("name", "gpu.shared_bytes", "gpu.group", "faults.0", "extra"):
        assert f"mine.yaml: {place}" in str(e.value)


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "", "a: !!python/object:os.system {}\n"])
def test_files_that_are_no_profiles(tmp_path: Path, text: str):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"mine\.yaml"):
        load_profile(str(file))


def test_faults_of_a_profile_are_text_or_mappings(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    base = shipped_profiles()["mid-mali"].read_text()
    file.write_text(base + "faults:\n  - stall:on=runner\n  - {kind: drip, every_ms: 5}\n")
    assert [f.kind for f in load_profile(str(file)).faults] == ["stall", "drip"]
