"""Guards of copies between the host and devices of XLA."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.errors import JaxRuntimeError
from calque.transforms.devices import transfers
from tests.xla.mlir import needs_jaxlib

Y = np.ones(8, np.float32)
IMPLICIT = "Disallowed host-to-device transfer.*bring it there with device_put"


def on_xla() -> Any:
    return jax.jit(lambda x: x + 1, backend="xla_cpu")


def double(x: Any) -> Any:
    return x * 2


@needs_jaxlib
@pytest.mark.parametrize("given", [Y, 2.0, 3, np.float32(2)])
def test_arguments_that_are_no_arrays(given: Any) -> None:
    f = on_xla()
    f(given)
    f(given)  # by machine code
    for guard in (jax.transfer_guard, jax.transfer_guard_host_to_device):
        for level in ("disallow", "disallow_explicit"):
            with guard(level), pytest.raises(JaxRuntimeError, match=IMPLICIT):
                f(given)
    with jax.transfer_guard("disallow"), jax.transfer_guard_host_to_device("allow"):
        f(given)
    with jax.transfer_guard_device_to_host("disallow"):
        f(given)
    f(given)


@needs_jaxlib
def test_arrays_are_where_programs_run() -> None:
    f, x = on_xla(), jnp.asarray(Y)
    with jax.transfer_guard("disallow_explicit"):
        assert f(f(x)).tolist() == [3.0] * 8
        assert np.asarray(f(x)).sum() == 16.0  # on CPUs the host looks into the same memory


@needs_jaxlib
def test_compiled_functions_and_functions_of_any_size() -> None:
    compiled = on_xla().lower(Y).compile()
    sized = on_xla()
    for n in (3, 4, 5):
        sized(Y[:n])
    with jax.transfer_guard("disallow"):
        for call in (lambda: compiled(Y), lambda: sized(Y[:6]), lambda: sized(Y[:3])):
            with pytest.raises(JaxRuntimeError, match=IMPLICIT):
                call()


@needs_jaxlib
def test_a_guard_traces_nothing_anew() -> None:
    traces = []

    @jax.jit
    def f(x: Any) -> Any:
        traces.append(1)
        return x + 1

    x = jax.device_put(Y, jax.devices("xla_cpu")[0])
    f(x)
    with jax.transfer_guard("disallow"):
        f(x)
    assert len(traces) == 1


@needs_jaxlib
def test_what_was_asked_for() -> None:
    device = jax.devices("xla_cpu")[0]
    with jax.transfer_guard("disallow"):
        x = jax.device_put(Y, device)
        assert on_xla()(x).tolist() == [2.0] * 8
    with jax.transfer_guard("disallow_explicit"):
        with pytest.raises(JaxRuntimeError, match="Disallowed host-to-device transfer"):
            jax.device_put(Y, device)
        jax.device_put(x, device)  # it is there


@contextlib.contextmanager
def heard() -> Iterator[list[str]]:
    told: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    ear, logger = Ear(), logging.getLogger("calque")
    logger.addHandler(ear)
    try:
        yield told
    finally:
        logger.removeHandler(ear)


@needs_jaxlib
def test_each_copy_is_logged() -> None:
    f, device = on_xla(), jax.devices("xla_cpu")[0]
    f(Y)
    with heard() as told, jax.transfer_guard("log"):
        f(Y)
        f(Y)
        jax.device_put(Y, device)
    assert told == ["host-to-device transfer: f32[8]"] * 2
    with heard() as told, jax.transfer_guard("log_explicit"):
        jax.device_put(Y, device)
    assert told == ["host-to-device transfer: f32[8]"]


BETWEEN_DEVICES = """
import numpy as np, calque as jax
from calque.errors import JaxRuntimeError
first, second = jax.devices()
mesh = jax.make_mesh((2,), ("x",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
y = np.ones(8, np.float32)
double, over_both = jax.jit(lambda x: x * 2), jax.jit(lambda x: x * 2, in_shardings=split)
x = double(y)
def refused(f, *args):
    try:
        f(*args)
    except JaxRuntimeError as e:
        assert "Disallowed device-to-device transfer" in str(e), e
        return True
with jax.transfer_guard("disallow"):
    put = double(jax.device_put(jax.device_put(y, first), second))
    assert put.devices() == {second}
    assert over_both(jax.device_put(y, split)).sum() == 16
    assert refused(over_both, x)
with jax.transfer_guard_device_to_device("disallow_explicit"):
    assert refused(jax.device_put, put, first)
over_both(x)
"""


@needs_jaxlib
def test_copies_between_devices() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BETWEEN_DEVICES],
        env=os.environ | {"CALQUE_PLATFORMS": "xla_cpu", "CALQUE_NUM_CPU_DEVICES": "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@needs_jaxlib
def test_arrays_of_accelerators_that_the_host_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh() -> Any:
        x = on_xla()(jnp.asarray(Y))
        monkeypatch.setattr(x._owner._sharding, "platform", "gpu")
        return x

    with jax.transfer_guard_device_to_host("disallow"):
        with pytest.raises(JaxRuntimeError, match=r"device-to-host.*fetch it with device_get"):
            np.asarray(fresh())
        assert jax.device_get(fresh()).tolist() == [2.0] * 8
    refused = pytest.raises(JaxRuntimeError, match="Disallowed device-to-host transfer")
    with jax.transfer_guard_device_to_host("disallow_explicit"), refused:
        jax.device_get(fresh())


def test_the_own_engine_copies_nothing() -> None:
    with jax.transfer_guard("disallow_explicit"):
        assert jax.jit(double, backend="cpu")(Y).tolist() == [2.0] * 8
        x = jnp.ones(3)
        assert jax.device_put(x, jax.typeof(x).sharding) is x  # which names no devices
    assert not transfers.asked.is_explicit
