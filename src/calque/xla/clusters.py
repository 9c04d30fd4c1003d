"""What a launcher of many processes tells each of them: where they meet, how many there are and
which one this is."""

import importlib.util
import os
import re
import socket
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple

from calque.machine.lazy import imported

__all__ = ["ClusterEnv", "Mpi4pyCluster", "OmpiCluster", "Place", "SlurmCluster", "filled"]

PORTS: Final = range(61440, 65536)  # those that processes of one job agree on by a number
OFF: Final = "deactivate"  # the method that asks no launcher


def port_of(number: int) -> str:
    """The port that a number of a job stands for."""
    return str(PORTS[number % len(PORTS)])


class ClusterEnv:
    """A launcher. Classes derived from it are known from then on."""

    name: str = ""
    opt_in_only_method: bool = False
    _cluster_types: ClassVar[list[type["ClusterEnv"]]] = []  # in the order of their definition

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._cluster_types.append(cls)

    @classmethod
    def is_env_present(cls) -> bool:
        """Whether this process was started by it."""
        raise cls._not_said("is_env_present")

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        """Where the processes meet: host:port, the same in each of them."""
        raise cls._not_said("get_coordinator_address")

    @classmethod
    def get_process_count(cls) -> int:
        """How many processes there are."""
        raise cls._not_said("get_process_count")

    @classmethod
    def get_process_id(cls) -> int:
        """Which one this is, from 0."""
        raise cls._not_said("get_process_id")

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Which one this is among those of its host; None, not known."""
        return None

    @classmethod
    def _not_said(cls, method: str) -> NotImplementedError:
        return NotImplementedError(f"ClusterEnv subclasses must implement {method}")


class OmpiCluster(ClusterEnv):
    """Open MPI: `mpirun` and `mpiexec` set variables of the environment."""

    name = "ompi"
    _launcher: ClassVar[str] = "OMPI_MCA_orte_hnp_uri"  # 1234.0;tcp://10.0.0.1,10.0.0.2:3456

    @classmethod
    def is_env_present(cls) -> bool:
        return cls._launcher in os.environ

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        """The first address of the launcher; the port is one of the last 4,096, which the job's
        number says, a multiple of 4,096."""
        uri = os.environ[cls._launcher]
        found = re.match(r"(\d+)\.\d+;tcp6?://(?:\[([^],]+)|([^],:]+))", uri)
        if found is None:
            raise RuntimeError(
                f"distributed.initialize: {cls._launcher}={uri!r} tells no address of the launcher:"
                " give coordinator_address"
            )
        job, six, four = found.groups()
        host = f"[{six}]" if six else four
        return f"{host}:{override_coordinator_port or port_of(int(job) // 4096)}"

    @classmethod
    def get_process_count(cls) -> int:
        return int(os.environ["OMPI_COMM_WORLD_SIZE"])

    @classmethod
    def get_process_id(cls) -> int:
        return int(os.environ["OMPI_COMM_WORLD_RANK"])

    @classmethod
    def get_local_process_id(cls) -> int | None:
        return int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])


class SlurmCluster(ClusterEnv):
    """Slurm, which tells the steps of a job in variables of the environment."""

    name = "slurm"

    @classmethod
    def is_env_present(cls) -> bool:
        names = ("JOB_ID", "STEP_NODELIST", "NTASKS", "PROCID", "LOCALID")
        return all(f"SLURM_{name}" in os.environ for name in names)

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        """The first host of the job; the port is one of the last 4,096, which the job's number
        says."""
        port = override_coordinator_port or port_of(int(os.environ["SLURM_JOB_ID"]))
        hosts = os.environ["SLURM_STEP_NODELIST"]
        first = re.match(r"([^,\[]*)(?:\[([^],-]*))?", hosts)
        return f"{''.join(filter(None, first.groups() if first else ()))}:{port}"

    @classmethod
    def get_process_count(cls) -> int:
        return int(os.environ["SLURM_NTASKS"])

    @classmethod
    def get_process_id(cls) -> int:
        return int(os.environ["SLURM_PROCID"])

    @classmethod
    def get_local_process_id(cls) -> int | None:
        return int(os.environ["SLURM_LOCALID"])


class Mpi4pyCluster(ClusterEnv):
    """Any MPI, by the package mpi4py. It is asked only by its name, since importing it starts
    MPI."""

    name = "mpi4py"
    opt_in_only_method = True

    @classmethod
    def is_env_present(cls) -> bool:
        return importlib.util.find_spec("mpi4py") is not None

    @staticmethod
    def _mpi() -> Any:
        return imported("mpi4py.MPI")

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        """The host of process 0, which tells the others; its name says the port."""
        world, own = cls._mpi().COMM_WORLD, None
        if world.Get_rank() == 0:
            host = socket.gethostname()
            own = f"{host}:{override_coordinator_port or port_of(zlib.crc32(host.encode()))}"
        return str(world.bcast(own, root=0))

    @classmethod
    def get_process_count(cls) -> int:
        return int(cls._mpi().COMM_WORLD.Get_size())

    @classmethod
    def get_process_id(cls) -> int:
        return int(cls._mpi().COMM_WORLD.Get_rank())

    @classmethod
    def get_local_process_id(cls) -> int | None:
        mpi = cls._mpi()
        return int(mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED).Get_rank())


# ---------------------------------------------------------------- asking them


class Place(NamedTuple):
    """Where processes meet, how many there are, which one this is, and which of the devices of its
    machine are its own; None where nobody has said."""

    address: str | None
    processes: int | None
    process_id: int | None
    local_devices: Sequence[int] | None


def filled(known: Place, method: str | None, timeout: int) -> Place:
    """What is known, and for the rest what the launcher tells, if there is one."""
    launcher = None if method == OFF or None not in known else launcher_of(method)
    if launcher is None:
        return known
    address, count, number, own = known
    if address is None:
        port = os.environ.get("JAX_COORDINATOR_PORT")
        address = launcher.get_coordinator_address(timeout, port)
    if own is None:
        local = launcher.get_local_process_id()
        own = None if local is None else [local]
    return Place(
        address,
        launcher.get_process_count() if count is None else count,
        launcher.get_process_id() if number is None else number,
        own,
    )


def launcher_of(method: str | None) -> type[ClusterEnv] | None:
    """The launcher of this name, which must be there; without a name the first that is."""
    kinds = ClusterEnv._cluster_types
    if method is None:
        asked = (c for c in kinds if not c.opt_in_only_method and c.is_env_present())
        return next(asked, None)
    found = next((c for c in kinds if c.name == method), None)
    if found is None:
        raise ValueError(
            f"distributed.initialize: cluster_detection_method={method!r} is unknown: the methods"
            f" are {', '.join(repr(c.name) for c in kinds)}, and {OFF!r}, which asks nobody"
        )
    if not found.is_env_present():
        raise ValueError(
            f"distributed.initialize: cluster_detection_method={method!r}, but nothing here comes"
            " from that launcher: start the processes with it, or give coordinator_address,"
            " num_processes and process_id"
        )
    return found
