"""Every primitive of the registry, compiled by itself and run eagerly, against its NumPy
meaning."""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import calque
from calque.core.arrays import to_numpy
from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.core.trace import trace_to_jaxpr, typeof
from calque.extend.own import Primitive as OwnPrimitive
from calque.native import backend
from tests.native import cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce
from tests.native.cases import TABLE, Case, meaning, program, programs, split_results, verify

MODULES = (cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce)
COLLECTIVE = "has a meaning only under a named axis: tests/transforms/devices/test_collectives.py"
PYTHON = "calls Python for its effect: tests/transforms/functions/test_callbacks.py"
WITHOUT_CASES: dict[str, str] = {
    **dict.fromkeys(
        ("all_gather", "all_to_all", "axis_index", "pmax", "pmin", "ppermute", "psum",
        "psum_invariant", "psum_like", "pvary",
         "pvary_like", "pbroadcast", "ragged_all_to_all", "reduce_scatter", "variance_of",
         "sharding_constraint", "preduced", "all_gather_invariant", "unreduced_reduce_scatter",
         "reduced_vary_cast", "vary_unreduced_cast", "all_gather_reduced", "unreduced_psum"),
        COLLECTIVE,
    ),
    **dict.fromkeys(("debug_callback", "debug_print", "io_callback"), PYTHON),
    "closed_call": "the same lowering as jit; only made by transformations",
    "call": "the same lowering as jit: tests/transforms/primitives",
    "random_gamma": "its program is compiled: tests/random",
    "custom_lin": "never evaluated: linearize removes it",
    "linear_call": "the same lowering as jit: tests/transforms/primitives/test_custom_more.py",
    "custom_linear_solve": "as linear_call",
    "ragged_dot_general": "tests/ops/products/test_ragged.py",
    **dict.fromkeys(("after_all", "create_token", "dce_sink", "stage"),
    "order and staging: tests/ops/test_staging.py"),
    "rng_uniform": "gives other numbers each time: tests/ops/random/test_bits.py",
    "size_value": "a free size: tests/transforms/jit/test_dynamic.py",
    **dict.fromkeys(("let_size", "places"),
    "sizes that are found: tests/transforms/test_found_sizes.py"),
    "device_put": "where values are: tests/transforms/devices/test_memory_spaces.py",
    "custom_partitioning": "its function runs: transforms/primitives/test_custom_partitioning.py",
    "inspect_sharding": "where values are: tests/transforms/primitives/test_inspecting.py",
    **dict.fromkeys(("ffi_call", "ffi_call_with_effect"),
    "what a library's function computes: tests/test_ffi.py"),
    "composite": "the same lowering as jit: tests/transforms/primitives/test_composites.py",
}  # fmt: skip


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's meanings at nan and infinity
        yield


@pytest.mark.parametrize("name", sorted(TABLE))
def test_compiled(name: str) -> None:
    """All cases of a primitive, some dozens to a program."""
    for part in programs(list(TABLE[name]())):
        fun, args = program(part)
        closed = trace_to_jaxpr(fun, [typeof(a) for a in args])
        check(part, backend.compile(closed).call(args), "compiled")


@pytest.mark.parametrize("name", sorted(TABLE))
def test_eager(name: str) -> None:
    for c in TABLE[name]():
        out = c.prim.bind(*c.args, **c.params)
        check([c], out if c.prim.multiple_results else [out], "eager")


@pytest.mark.parametrize("name", sorted(TABLE))
def test_jit(name: str) -> None:
    """Through the call path: arguments as NumPy arrays and as arrays."""
    part = list(TABLE[name]())[:8]
    fun, args = program(part)
    compiled = calque.jit(fun)
    check(part, compiled(*args), "jit")
    check(part, compiled(*[calque.numpy.asarray(a) for a in args]), "jit")


def check(part: Sequence[Case], outs: Sequence[object], where: str) -> None:
    for c, got in split_results(part, outs):
        verify(c, [np.asarray(to_numpy(g)) for g in got], meaning(c), where)


def test_the_table_is_complete() -> None:
    """A primitive without cases must say why."""
    optional = {
        "check",
        "custom_vmap_call",
        "linear_call",
        "composite",
        "shard_map",
        "consume",
        "assert_consumed_value",
        "call_exported",
        "platform_index",
        "todense",
        "ffi_call",
        "ffi_call_with_effect",
        "custom_partitioning",
        "inspect_sharding",
    }  # defined where their modules are imported
    ours = {
        n for n, p in REGISTRY.items() if type(p) is not OwnPrimitive
    }  # other tests define some
    assert (set(TABLE) | set(WITHOUT_CASES)) - optional == ours - optional
    assert not set(TABLE) & set(WITHOUT_CASES)
