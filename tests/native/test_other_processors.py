"""Code for a processor that is not there: the runtime and the kernels of all kinds of programs
become assembly for 64-bit ARM."""

import importlib
import pkgutil
import platform
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import create_autospec
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, machine
from calque.core.backends import Options
from calque.machine.caches import Entries
from calque.machine.code import llvm as modules
from calque.machine.code import target
from calque.machine.lang.unit import Unit
from calque.machine.routines.sort import network as sort_network
from calque.native import executable
from calque.native.emit import kernels, objects
from calque.native.emit import modules as written
from calque.native.emit.making import Making
from calque.native.library import matmul, near_rows, tiles
from calque.native.schedule import vectors

TRIPLE = "aarch64-unknown-linux-gnu"
CPUS = ("generic", "neoverse-n1", "apple-m1")
X, V = np.ones((40, 70), np.float32), np.ones(1000, np.float32)


@pytest.fixture(scope="module")
def machines() -> dict[str, Any]:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    known = llvm.Target.from_triple(TRIPLE)
    return {
        cpu: known.create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="small")
        for cpu in CPUS
    }


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plan and write as on such a machine; nothing is linked, and nothing of it is kept."""
    described = target.describe()._replace(
        triple=TRIPLE, cpu="generic", features="", vector_bytes=16, vector_registers=32, key="arm"
    )
    monkeypatch.setattr(target, "describe", lambda: described)
    for module in (vectors, matmul, near_rows, tiles):
        monkeypatch.setattr(module, "describe", lambda: described)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(modules, "get_ready", lambda: None)  # would keep LLVM's machine for it
    monkeypatch.setattr(kernels, "_codes", Entries(1000))
    monkeypatch.setattr(objects, "linked", WeakValueDictionary())
    monkeypatch.setattr(Making, "_make", create_autospec(Making._make))
    yield


def assembly(machine: Any, text: str) -> str:
    """The assembly of a module, which may speak of no other processor."""
    assert "llvm.x86" not in text
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    module.triple = TRIPLE
    return str(machine.emit_assembly(module))


UNITS = [
    found
    for info in pkgutil.walk_packages(machine.__path__, "calque.machine.")
    for found in vars(importlib.import_module(info.name)).values()
    if isinstance(found, Unit)
]
UNITS = list({u.name: u for u in UNITS}.values())


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.name)
@pytest.mark.usefixtures("arm")
def test_the_runtime(unit: Unit, machines: dict[str, Any]) -> None:
    text = assembly(machines["generic"], unit.ir())
    for function in unit.functions:
        assert not function.exported or f"{function.name}:" in text


@pytest.mark.usefixtures("arm")
def test_sorting_networks(machines: dict[str, Any]) -> None:
    text = assembly(machines["generic"], sort_network.text())
    assert "calque_network_sort_32_4:" in text and "split" not in text


def test_there_are_units() -> None:
    assert {"memory", "threads", "interp", "calque_run_entries", "calque_objects"} <= {
        u.name for u in UNITS
    }


def everything(x: Any, v: Any) -> Any:
    """Maps over many dtypes with math functions, sums in both directions, extremes, running
    sums."""
    y = (
        jnp.exp(x)
        + jnp.sin(x) * jnp.log1p(abs(x))
        + lax.erf(x) ** 1.5
        + jnp.tanh(x)
        + lax.rsqrt(x + 2)
    )
    wide = x.astype("float16") * 2 + x.astype("bfloat16").astype("float16")
    whole = (x * 100).astype("int8") // 3 + (x * 5).astype("uint16").astype("int8") % 7
    z = jnp.exp(1j * x) * (2 + 1j)
    sums = (
        x.sum(0),
        x.sum(1),
        x.max(),
        x.argmin(0),
        jnp.cumsum(v),
        jnp.prod(v),
        jnp.any(x > 3, 1),
        wide.sum(1),
    )
    return y, wide, whole, z, sums


PROGRAMS: dict[str, Callable[..., Any]] = {
    "everything": everything,
    "products": lambda x, v: (x @ x.T, x.T @ x, v @ v, (x.astype("int32") @ x.T.astype("int32")),
    x.astype("bfloat16") @ x.T.astype("bfloat16")),
    "layout": lambda x, v: (x.T + 1, x[::-1, ::2], jnp.pad(x, 2), jnp.concatenate([x, x * 2], 1),
    x.reshape(70, 40) * 2, jnp.roll(v, 3)),
    "indexing": lambda x, v: (x[jnp.arange(5) * 3], v.at[jnp.arange(9)].add(1.0), jnp.where(x > 0,
    x, -x), lax.dynamic_slice(v, (7,), (9,))),
    "loops": lambda x, v: (
        lax.fori_loop(0, 100, lambda i, c: c * 0.5 + i, v),
        lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] * 2, c[1] + 1), (v[0], 0)),
        lax.scan(lambda c, w: (jnp.tanh(c + w), c.sum()), x[0], x),
    ),
    "bits": lambda x, v: (calque.random.normal(calque.random.key(3), (50,)),
    lax.population_count(x.astype("int32")), lax.clz(x.astype("uint32"))),
    "softmax": lambda x, v: (calque.nn.softmax(x),
    calque.grad(lambda x: calque.nn.log_softmax(x).sum())(x), (x - x.mean(1,
    keepdims=True)) / x.std()),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cpu"), [*((n, "generic") for n in PROGRAMS), *(("products", cpu) for cpu in CPUS[1:])]
)
@pytest.mark.usefixtures("arm")
def test_kernels(name: str, cpu: str, machines: dict[str, Any]) -> None:
    closed = calque.make_jaxpr(PROGRAMS[name])(X, V)
    planned = executable.Planned(closed, Options(exact=name == "loops"), executable.Sizes())
    codes = list({k.symbol: k.code for k in planned.kernels}.values())
    assert codes
    text = written.module_of(codes).text()
    shown = assembly(machines[cpu], text)
    assert all(f"{c.symbol}:" in shown for c in codes)
    assert not any(f"%{r}mm0" in shown for r in "xyz")


def test_the_host_is_as_before() -> None:
    assert target.describe().triple == llvm.get_process_triple() and modules.stats is not None
    np.testing.assert_array_equal(calque.jit(lambda x: x.T @ x)(X), np.full((70, 70), 40))
