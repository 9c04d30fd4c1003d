"""Data-parallel training over processes: each has its own rows, and XLA adds up the gradients.

    python examples/two_processes.py          starts two processes on this machine
    python examples/two_processes.py 4        starts four

Needs `pip install calque[xla]`. On several machines start on each of them
`python two_processes.py HOST:PORT COUNT ID`, with the address of the machine with ID 0."""

import functools
import socket
import subprocess
import sys

import numpy as np

import calque as jax
import calque.numpy as jnp

ROWS, FEATURES, STEPS = 64, 8, 60


def loss(weights, x, y):
    """The mean of the squares of what is wrong, over the rows of all processes."""
    return jnp.mean((x @ weights - y) ** 2)


@functools.partial(jax.jit, donate_argnums=0)
def step(weights, x, y):
    """Weights after one step, and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return weights - 0.1 * gradient, value


def train(address, count, index):
    """What each process runs: the same program, on its own rows."""
    jax.distributed.initialize(address, num_processes=count, process_id=index)
    mesh = jax.make_mesh((jax.device_count(),), ("rows",), (jax.sharding.AxisType.Auto,))
    by_rows = jax.NamedSharding(mesh, jax.P("rows"))
    everywhere = jax.NamedSharding(mesh, jax.P())

    truth = np.arange(FEATURES, dtype=np.float32)
    own = np.random.default_rng(index).normal(size=(ROWS, FEATURES)).astype(np.float32)
    x = jax.make_array_from_process_local_data(by_rows, own)
    y = jax.make_array_from_process_local_data(by_rows, own @ truth)
    weights = jax.device_put(np.zeros(FEATURES, np.float32), everywhere)
    for _ in range(STEPS):
        weights, value = step(weights, x, y)
    found = np.asarray(weights)
    print(
        f"process {jax.process_index()} of {jax.process_count()}: {x.shape[0]} rows on"
        f" {jax.device_count()} devices, {len(x.addressable_shards)} here; loss {float(value):.1e},"
        f" weights {found.round(2).tolist()}",
        flush=True,
    )
    assert np.abs(found - truth).max() < 1e-2
    jax.distributed.shutdown()


def start(count):
    """Start the processes, and wait for them."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
    command = [sys.executable, __file__, address, str(count)]
    running = [subprocess.Popen([*command, str(i)]) for i in range(count)]
    return max(abs(p.wait(timeout=300)) for p in running)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(start(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
