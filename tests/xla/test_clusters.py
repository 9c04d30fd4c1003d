"""What launchers of many processes tell."""

import socket
from types import SimpleNamespace

import pytest

from calque.xla import clusters
from calque.xla.clusters import ClusterEnv, Mpi4pyCluster, OmpiCluster, Place, SlurmCluster, filled

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


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "10.96.0.1"),
        ("1531576320.0;tcp://10.96.0.1:34911", "10.96.0.1"),
        ("1531576320.0;tcp6://[fe80::b9b:ac5d,2620:10d::2]:43370", "[fe80::b9b:ac5d]"),
    ],
)
def test_what_open_mpi_tells(uri, address, monkeypatch):
    monkeypatch.delenv(OmpiCluster._launcher, raising=False)
    assert not OmpiCluster.is_env_present()
    told = {"SIZE": "8", "RANK": "3", "LOCAL_RANK": "1"}
    for name, value in told.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    monkeypatch.setenv(OmpiCluster._launcher, uri)
    assert OmpiCluster.is_env_present()
    port = 61440 + 1531576320 // 4096 % 4096
    assert OmpiCluster.get_coordinator_address(None, None) == f"{address}:{port}"
    assert OmpiCluster.get_coordinator_address(None, "70") == f"{address}:70"
    assert filled(Place(None, None, None, None), "ompi", 1) == (f"{address}:{port}", 8, 3, [1])
    monkeypatch.setenv(OmpiCluster._launcher, "nothing")
    with pytest.raises(RuntimeError, match="tells no address of the launcher"):
        OmpiCluster.get_coordinator_address(None, None)


def test_what_any_mpi_tells(monkeypatch):
    """By a stand-in for mpi4py: it is asked only by its name."""
    sent = []

    def bcast(value, root):
        sent.append(value)
        return value or "other:70"

    shared = SimpleNamespace(Get_rank=lambda: 1)
    world = SimpleNamespace(
        Get_rank=lambda: 0, Get_size=lambda: 4, bcast=bcast, Split_type=lambda kind: shared
    )
    mpi = SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED=0)
    monkeypatch.setattr(clusters, "imported", lambda name: mpi)
    monkeypatch.setattr(Mpi4pyCluster, "is_env_present", lambda: True)
    address, count, number, own = filled(Place(None, None, None, None), "mpi4py", 1)
    host, _, port = address.rpartition(":")
    assert host == socket.gethostname() and 61440 <= int(port) < 65536
    assert (count, number, own, sent) == (4, 0, [1], [address])
    world.Get_rank = lambda: 2
    assert filled(Place(None, 4, None, [0]), "mpi4py", 1) == ("other:70", 4, 2, [0])


def test_what_is_given_stays_and_the_first_launcher_is_asked_for_the_rest(monkeypatch):
    nobody = Place(None, None, None, None)
    monkeypatch.setattr(ClusterEnv, "_cluster_types", [Mpi4pyCluster, SlurmCluster])
    for name in SLURM:
        monkeypatch.delenv(name, raising=False)
    assert filled(nobody, None, 1) == nobody
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("JAX_COORDINATOR_PORT", raising=False)
    assert filled(nobody, None, 1) == ("node007:61443", 8, 3, [1])
    assert filled(Place("a:1", 2, 0, None), None, 1) == ("a:1", 2, 0, [1])
    assert filled(Place("a:1", 2, 0, [0, 1]), "unknown", 1) == ("a:1", 2, 0, [0, 1])
    assert filled(nobody, "deactivate", 1) == nobody
    with pytest.raises(ValueError, match="the methods are 'mpi4py', 'slurm', and 'deactivate'"):
        filled(nobody, "pbs", 1)
