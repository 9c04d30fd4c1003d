"""Exported programs called: alone, from programs of both engines, and with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import from_storage
from calque.core.avals import ShapedArray
from calque.core.backends import Options, Places
from calque.core.config import config
from calque.core.dtypes import float0
from calque.core.jaxprs import Eqn
from calque.core.primitives import NotApplicable
from calque.core.trace import trace_to_jaxpr
from calque.core.trace_state import Tracer
from calque.machine.caches import memo
from calque.transforms.devices.sharding_constraint import constrained
from calque.transforms.devices.sharding_propagation import device_checks, where_placed
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.lanes import one_by_one
from calque.xla import jaxlib, mlir
from calque.xla.buffers import Place
from calque.xla.devices import cpu_client, cpu_devices
from calque.xla.engine import Executable, on_devices, result_of
from calque.xla.exporting.checks import DisabledSafetyCheck
from calque.xla.exporting.scopes import is_named
from calque.xla.exporting.solving import OfShapes, argument_names, plain, plan_of, solved
from calque.xla.foreign_functions import register_lapack
from calque.xla.lower.adopting import adopted
from calque.xla.lower.adopting import called as called_function
from calque.xla.lower.control import index_among
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.programs import host_data
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.lower.sizes import INT
from calque.xla.stored import loaded_program
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor, type_of

if TYPE_CHECKING:
    from calque.xla.exporting.exported import Exported


def called(exported: Exported, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of the program for these arguments."""
    leaves, tree = pytrees.flatten((args, kwargs))
    if tree != exported.in_tree:
        raise ValueError(
            "The invocation args and kwargs must have the same pytree structure as when the"
            f" function '{exported.fun_name}' was exported, but they have {tree}, and it"
            f" {exported.in_tree}"
        )

    if exported.shardings and not config.use_shardy_partitioner:
        raise ValueError(
            f"Function {exported.fun_name} was exported with shardings for Shardy and is called"
            " with Shardy disabled. Please enable Shardy: config.update("
            '"jax_use_shardy_partitioner", True)'
        )
    if exported.nr_devices == 1 or not trace_state.is_evaluating():
        return pytrees.unflatten(exported.out_tree, _flat(exported)(*leaves))
    if not any(isinstance(x, Tracer) for x in leaves):
        places = [s for s in map(where_placed, leaves) if s is not None]
        _check_devices(exported, max((len(s.device_order) for s in places), default=1))
    return pytrees.unflatten(exported.out_tree, _jitted(exported)(*leaves))


@memo("exported programs of several devices as functions", 256, programs=True)
def _jitted(exported: Exported) -> Callable[..., Any]:
    """The program as a jitted function: where its arguments and results live is part of it."""
    return jit(_flat(exported))


def _check_devices(exported: Exported, here: int) -> None:
    """An error where the caller runs on another number of devices."""
    if exported.nr_devices not in (1, here):
        raise ValueError(
            f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and is"
            f" called in a context with {here} devices, which is not allowed. Place the arguments"
            f" on a mesh of {exported.nr_devices} devices:"
            " device_put(x, exported.in_shardings_jax(mesh)[0])"
        )


def _constrained(xs: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    return [x if s is None else constrained(x, s) for x, s in zip(xs, shardings, strict=True)]


def _flat(exported: Exported) -> Callable[..., Any]:
    """The program as a function of flat arguments, with its backward pass."""

    ins, outs = exported._in_named_shardings, exported._out_named_shardings

    def run(*xs: Any) -> list[Any]:
        if exported.nr_devices == 1:
            return list(call_exported_p.bind(*xs, exported=exported))
        found = call_exported_p.bind(*_constrained(xs, ins), exported=exported)
        return _constrained(found, outs)

    def backward(xs: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
        pull = exported.vjp()
        expected = pull.in_avals[len(xs) :]
        fixed = [
            np.zeros(a.shape, float0) if a.dtype == float0 else ct for ct, a in zip(cts, expected)
        ]
        return tuple(_flat(pull)(*xs, *fixed))

    function = custom_vjp(run)
    function.defvjp(lambda *xs: (function(*xs), xs), backward)  # which has gradients, too
    return function


def _over_several(
    exported: Exported, avals: tuple[ShapedArray, ...]
) -> Callable[..., list[np.ndarray]]:
    """The program on as many devices of XLA's CPU as it is for."""
    n, name = exported.nr_devices, exported.fun_name
    devices = cpu_devices()[:n]
    if len(devices) < n:
        raise ValueError(
            f"{name} was exported for {n} devices, and XLA's CPU has {len(devices)} here: set"
            f" CALQUE_NUM_CPU_DEVICES={n} before the devices are first asked for"
        )
    ins, outs = (
        [None if s is None else on_devices(s, devices) for s in shardings]
        for shardings in (exported._in_named_shardings, exported._out_named_shardings)
    )

    def whole(*xs: Any) -> list[Any]:
        return _constrained(call_exported_p.bind(*_constrained(xs, ins), exported=exported), outs)

    closed = trace_to_jaxpr(whole, avals, name)
    program = Executable(closed, Options(name, places=Places(tuple(devices))))

    def run(*xs: Any) -> list[np.ndarray]:
        found = program.call([from_storage(np.array(x), a) for x, a in zip(xs, avals)])
        return [_of_host(host_data(x), a) for x, a in zip(found, closed.out_avals, strict=True)]

    return run


@memo("exported programs at the sizes of calls", 256, programs=True)
def _loaded(exported: Exported, avals: tuple[ShapedArray, ...]) -> Callable[..., list[np.ndarray]]:
    """The program on XLA's CPU for such arguments, as a function of arrays of NumPy: the engine's
    own calls have its text inside."""
    register_lapack()
    if exported.nr_devices > 1:
        return _over_several(exported, avals)
    devices = cpu_devices()[:1]
    closed = trace_to_jaxpr(
        lambda *xs: list(call_exported_p.bind(*xs, exported=exported)), avals, exported.fun_name
    )
    outs = closed.out_avals
    lowered = lower_module(closed, Request(name=exported.fun_name))
    places = [Place(avals[i], None, devices) for i in lowered.kept]
    results = [result_of(a, None, devices) for a in outs]
    program = loaded_program(cpu_client(), [devices[0].xla], lowered)
    program.gives(results)

    def run(*xs: Any) -> list[np.ndarray]:
        kept = [host_data(xs[i]) for i in lowered.kept]
        buffers = [p.put(np.asarray(x), shared=False) for p, x in zip(places, kept)]
        found = [jaxlib.parts_on_host(b)[0] for b in program.run(buffers)]
        return [_of_host(x, a) for x, a in zip(found, outs, strict=True)]

    return run


def _of_host(x: np.ndarray, aval: ShapedArray) -> np.ndarray:
    """A result as the meaning of a primitive gives it."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    storage = getattr(aval.dtype, "storage", None)
    if storage is not None:  # keys: rows of words as records
        return np.ascontiguousarray(x).view(storage).reshape(aval.shape)
    return x


def platform_index(exported: Exported, kind: str) -> int:
    """Which of its platforms the program runs on, where the caller's is of this kind."""
    if kind in exported.platforms:
        return exported.platforms.index(kind)
    if DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        return 0
    raise ValueError(
        f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it"
        f" is used on '('{kind}',)': export it for this one"
    )


def _meaning(*xs: Any, exported: Exported) -> list[np.ndarray]:
    avals = tuple(ShapedArray(np.shape(x), a.dtype) for x, a in zip(xs, exported.in_avals))
    return _loaded(exported, avals)(*xs)


def _check_given(given: ShapedArray, wanted: ShapedArray, name: str, place: str) -> None:
    """An error where an argument is not of the type that the program was exported for."""
    types = f"expected {wanted.str_short()} and called with {given.str_short()} as {place}"
    what = f"for {name}: {types}"
    if len(given.shape) != len(wanted.shape):
        raise ValueError(f"Rank mismatch {what}")
    if given.dtype != wanted.dtype:
        raise ValueError(f"Dtype mismatch {what}")
    for k, (n, size) in enumerate(zip(given.shape, wanted.shape)):
        if not is_named(size) and n != size:
            raise ValueError(
                f"Shape mismatch for {name}.shape[{k}] (expected same constant): {types}"
            )


def _shape(*avals: ShapedArray, exported: Exported) -> list[ShapedArray]:
    names = argument_names(exported.in_tree)
    for k, (given, wanted, name) in enumerate(zip(avals, exported.in_avals, names, strict=True)):
        _check_given(given, wanted, name, f"argument {k} of {exported.fun_name}")
    plan = plan_of(exported.in_avals, exported.in_tree)
    if plan is None:
        return list(exported.out_avals)
    found = solved(plan, OfShapes([a.shape for a in avals]))
    return [a.update(shape=_sizes_of_result(exported, a.shape, found)) for a in exported.out_avals]


def _sizes_of_result(
    exported: Exported, shape: Sequence[Any], found: dict[str, Any]
) -> tuple[Any, ...]:
    """The shape of a result; an error where these sizes give none: constraints are not written into
    the bytes of a program."""
    try:
        sizes = plain(shape, found)
    except ZeroDivisionError:
        sizes = None
    if sizes is not None and not any(type(d) is int and d < 0 for d in sizes):
        return sizes
    asked = ", ".join(map(str, shape))
    raise ValueError(
        f"Input shapes do not match the symbolic shapes that {exported.fun_name} was exported for:"
        f" it has no result of shape ({asked}) for"
        f" {', '.join(f'{name} = {n}' for name, n in found.items())}. Call it with arguments of"
        " other sizes"
    )


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    """Each example by itself: the program is for one."""
    return one_by_one(call_exported_p, axis, args, dims, params)


call_exported_p = AxisPrimitive(
    "call_exported",
    meaning=_meaning,
    shape=_shape,
    jvp=NotApplicable("exported programs have reverse-mode gradients only: use grad or vjp"),
    transpose=NotApplicable("an exported program is no linear function"),
    batch=_batch,
    multiple_results=True,
)


device_checks["call_exported"] = lambda params, here: _check_devices(
    params["exported"], here.num_devices
)


@equation_rule("call_exported")
def call_exported(b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value]) -> list[Value]:
    """A call of the program's main function, which the module takes over with all that it calls."""
    exported = e.params["exported"]
    _check_devices(exported, b.state.partitions_asked)
    index = platform_index(exported, b.state.platform)
    known = b.state.adopted.get(exported)
    if known is None:
        text = mlir.portable_text(exported.mlir_module_serialized)
        known = b.state.adopted[exported] = adopted(
            b, text, f"call_exported_{exported.fun_name}", "exported_"
        )
    b.state.refines = b.state.refines or exported.uses_global_constants
    several = b.state.platform_index is not None and all(
        p in exported.platforms for p in b.state.platforms
    )
    number = index_among(b, exported.platforms) if several else b.scalar(index, INT)
    ahead = [number] if len(exported.platforms) > 1 else []
    xs = [*ahead, *(args[i] for i in exported.module_kept_var_idx)]
    declared = [type_of(exported.in_avals[i]) for i in exported.module_kept_var_idx]
    results = [type_of(a) for a in exported.out_avals]
    return called_function(b, known, xs, [*(x.tensor for x in ahead), *declared], results, outs)
