"""`jax._src.clusters`: what a launcher of many processes tells each of them, for libraries that ask
it and give the answers to `distributed.initialize`, which asks no launcher by itself."""

import os
import re
from typing import Any, ClassVar

__all__ = ["ClusterEnv", "SlurmCluster"]


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
        port = override_coordinator_port or str(61440 + int(os.environ["SLURM_JOB_ID"]) % 4096)
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
