"""What `distributed.initialize` needs, and of whom it takes it. Each call is in a process of its
own, which has asked for no devices."""

import os
import subprocess
import sys

import pytest

import calque
from calque.xla.clusters import OmpiCluster
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import come_to_their_end, environment, free_address, started
from tests.xla.test_clusters import SLURM

WITHOUT = ("JAX_", "SLURM_", "OMPI_")  # of variables: these tests say where they are


def fresh() -> dict[str, str]:
    return {k: v for k, v in environment().items() if not k.startswith(WITHOUT)}


def said(call: str, **variables: str) -> str:
    """What a new process prints: the error of a call of `initialize`, or what it has then."""
    script = f"""
import sys, calque
d = calque.distributed
try:
    {call}
except Exception as e:
    print(type(e).__name__, e)
else:
    print(d.is_initialized(), calque.process_count(), calque.config.jax_cuda_visible_devices)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**fresh(), **variables},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("d.initialize()", "ValueError distributed.initialize: coordinator_address should be"),
        ("d.initialize(num_processes=1)", "ValueError distributed.initialize: coordinator_address"),
        ("d.initialize('a:1')", "ValueError distributed.initialize: num_processes should be"),
        ("d.initialize('a:1', 2)", "ValueError distributed.initialize: process_id should be"),
        ("d.initialize('a:1', 2, 2)", "ValueError distributed.initialize: process_id must be from"),
        ("d.initialize('a:1', 2, 1.0)", "TypeError distributed.initialize: process_id must be an"),
        ("d.initialize('nowhere', 2, 1)", "ValueError distributed.initialize: coordinator_address"),
        ("d.initialize('a:1', 2, 1, slice_index=1)", "NotImplementedError distributed.initialize"),
        ("d.initialize(initialization_timeout=0)", "ValueError distributed.initialize: init"),
        ("d.initialize(cluster_detection_method='pbs')", "ValueError distributed.initialize: clu"),
        ("d.initialize(cluster_detection_method='slurm')", "ValueError distributed.initialize: cl"),
        ("d.initialize('a:1', 1, 0, local_device_ids=[0, 2])", "True 1 0,2"),
        ("d.initialize('a:1', 1, 0); d.initialize('a:1', 1, 0)", "RuntimeError distributed.init"),
        ("d.initialize('a:1', 1, 0); d.shutdown(); d.initialize('a:1', 1, 0)", "True 1 all"),
    ],
)
def test_what_it_needs(call: str, text: str) -> None:
    assert said(call).startswith(text)


@pytest.mark.parametrize(
    "before",
    [
        "calque.devices()",
        "calque.make_mesh((1,), 'x')",
        "calque.device_put(1.0, calque.devices()[0])",
    ],
)
def test_it_comes_before_devices(before: str) -> None:
    found = said(f"{before}; d.initialize('a:1', 1, 0)")
    assert found.startswith("RuntimeError distributed.initialize must be called before")


def test_decorating_functions_asks_for_no_devices() -> None:
    before = "f = calque.pmap(calque.jit(lambda x: x)); calque.sharding.PartitionSpec('x')"
    assert said(f"{before}; d.initialize('a:1', 1, 0)") == "True 1 all\n"


def test_the_environment_says_the_rest() -> None:
    told = {"JAX_COORDINATOR_ADDRESS": "a:1", "JAX_LOCAL_DEVICE_IDS": "1,3"}
    assert said("d.initialize(None, 1, 0)", **told) == "True 1 1,3\n"
    one = {**SLURM, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    assert said("d.initialize()", **one) == "True 1 1\n"
    off = said("d.initialize(cluster_detection_method='deactivate')", **one)
    assert off.startswith("ValueError distributed.initialize: coordinator_address should be")


JOINING = """
import sys, calque as jax
jax.distributed.initialize(initialization_timeout=60)
index = int(sys.argv[1])
assert (jax.process_index(), jax.process_count(), jax.device_count()) == (index, 2, 4)
jax.distributed.shutdown()
print("whole", index)
"""


@needs_jaxlib
@pytest.mark.parametrize("launcher", ["slurm", "ompi"])
def test_a_launcher_tells_where_processes_meet(launcher: str) -> None:
    port = free_address().rpartition(":")[2]
    every = {"JAX_COORDINATOR_PORT": port}
    if launcher == "slurm":
        every |= {**SLURM, "SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "localhost"}
        number = ("SLURM_PROCID", "SLURM_LOCALID")
    else:
        every |= {OmpiCluster._launcher: "8192.0;tcp://127.0.0.1:5", "OMPI_COMM_WORLD_SIZE": "2"}
        number = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    own = [{**fresh(), **every, **dict.fromkeys(number, str(i))} for i in range(2)]
    come_to_their_end([started(JOINING, [str(i)], env) for i, env in enumerate(own)])


def test_whether_it_was_called() -> None:
    assert not calque.distributed.is_initialized() and "PATH" in os.environ
    calque.distributed.shutdown()
    assert not calque.distributed.is_initialized()
