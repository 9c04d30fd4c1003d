"""What launchers of many processes tell."""

import pytest

from calque.compat.private.helpers.clusters import ClusterEnv, SlurmCluster

SLURM = {
    "SLURM_JOB_ID": "4099",
    "SLURM_STEP_NODELIST": "node[007-009,012],other",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
}


@pytest.mark.parametrize(
    ("hosts", "first"),
    [("node[007-009,012],other", "node007"), ("a1,b2", "a1"), ("lone", "lone"), ("n[3,5]", "n3")],
)
def test_what_slurm_tells(hosts, first, monkeypatch):
    assert SlurmCluster in ClusterEnv._cluster_types
    for name, value in {**SLURM, "SLURM_STEP_NODELIST": hosts}.items():
        monkeypatch.setenv(name, value)
    assert SlurmCluster.is_env_present()
    assert SlurmCluster.get_coordinator_address(None, None) == f"{first}:61443"
    assert SlurmCluster.get_coordinator_address(None, "70") == f"{first}:70"
    told = SlurmCluster.get_process_count(), SlurmCluster.get_process_id()
    assert told == (8, 3) and SlurmCluster.get_local_process_id() == 1
    monkeypatch.delenv("SLURM_PROCID")
    assert not SlurmCluster.is_env_present()


def test_a_launcher_of_ones_own(monkeypatch):
    monkeypatch.setattr(ClusterEnv, "_cluster_types", [])

    class Own(ClusterEnv):
        name = "own"

    assert ClusterEnv._cluster_types == [Own] and Own.get_local_process_id() is None
    for method in ("is_env_present", "get_process_count", "get_process_id"):
        with pytest.raises(NotImplementedError, match=f"must implement {method}"):
            getattr(Own, method)()
    with pytest.raises(NotImplementedError, match="must implement get_coordinator_address"):
        Own.get_coordinator_address(1, None)
