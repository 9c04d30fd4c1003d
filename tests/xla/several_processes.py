"""Programs that run in two processes at once, two devices each: what tests of several processes
share."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap

START = """
import sys
import numpy as np, calque as jax, calque.numpy as jnp
from calque import lax
from calque.experimental import multihost_utils
address, index = sys.argv[1], int(sys.argv[2])
jax.distributed.initialize(address, num_processes=2, process_id=index)
mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
rows, whole = jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(mesh, jax.P())
numbers = np.arange(4, dtype=np.float32)
x = jax.make_array_from_callback((4,), rows, lambda i: numbers[i])

def parts(x):
    return [np.asarray(s.data).tolist() for s in x.addressable_shards]

def raises(call, error, text):
    try:
        call()
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError(f"no error: {text}")
"""
END = """
jax.distributed.shutdown()
print("whole", index)
"""


def free_address() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


def environment(devices: int = 2) -> dict[str, str]:
    found = {**os.environ, "CALQUE_NUM_CPU_DEVICES": str(devices)}
    for name in ("CALQUE_PLATFORMS", "XLA_FLAGS"):
        found.pop(name, None)
    return found


def two(script: str, devices: int = 2) -> list[subprocess.Popen[str]]:
    """Two processes of so many devices each, which are told where to meet and which they are."""
    address = free_address()
    return [started(script, [address, str(i)], environment(devices)) for i in range(2)]


def started(script: str, arguments: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    """A process that runs a script."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def come_to_their_end(running: list[subprocess.Popen[str]]) -> None:
    """Wait for both; each says at its end that it was whole."""
    try:
        done = [p.communicate(timeout=300) for p in running]
    finally:
        for p in running:
            p.kill()
    for i, (out, error) in enumerate(done):
        assert f"whole {i}" in out, f"{running[i].returncode}: {error[-3000:]}"


def in_both(script: str) -> None:
    """Run the script in both processes, after `START`: `x` has the numbers 0 to 3, `rows` and
    `whole` are shardings over all four devices, and `parts` gives what this process has."""
    come_to_their_end(two(START + textwrap.dedent(script) + END))
