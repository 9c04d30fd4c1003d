"""Exported programs: made of jitted functions, read from bytes, called from other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.core.key_paths import keystr
from calque.core.primitives import NotApplicable, Primitive
from calque.core.trace import jaxpr_as_fun, trace_to_jaxpr
from calque.machine.caches import memo
from calque.ops.random.keys import IMPLEMENTATIONS
from calque.transforms.devices.type_constraints import with_constraints
from calque.transforms.functions.autodiff import vjp
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.functions.shapes import ShapeDtypeStruct
from calque.transforms.jit.decorator import jit
from calque.transforms.jit.stages import trace
from calque.xla import jaxlib
from calque.xla.buffers import Place
from calque.xla.devices import cpu_client, cpu_devices
from calque.xla.engine import prepared, result_of
from calque.xla.exporting.flat_buffers import decoded, encoded
from calque.xla.exporting.modules import PLATFORMS, adopted, called, module_of
from calque.xla.exporting.scopes import Scope, is_named
from calque.xla.exporting.solving import OfShapes, argument_names, plain, plan_of, solved
from calque.xla.exporting.written import (
    FORMAT,
    VERSION,
    read_aval,
    read_tree,
    written_aval,
    written_tree,
)
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.programs import host_data
from calque.xla.lower.rules import Builder, equation_rule
from calque.xla.lower.sizes import INT
from calque.xla.stored import loaded_program
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor, type_of

CALLING_CONVENTIONS: Final = (9, 10)  # how modules take their arguments: the versions known here


class DisabledSafetyCheck:
    """A check that is left out: `platform()`, of the platform when the program is called;
    `custom_call(name)`, of a call of a function of the host's libraries.

    >>> jax.export.DisabledSafetyCheck.custom_call("f").is_custom_call()
    'f'"""

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The program may run on another platform than it was exported for.

        Returns:
            A check to leave out."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The program may call this function of a library.

        Args:
            target_name: the name of the function.
        Returns:
            A check to leave out."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the function that may be called.

        Returns:
            A text; None of other checks."""
        kind, _, name = self._impl.partition(":")
        return name if kind == "custom_call" else None

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


@dataclass(frozen=True, eq=False)
class Exported:
    """A function as a portable program: what goes in and out, and StableHLO as bytes. `export`
    makes one, `deserialize` reads one.

    Args:
        fun_name: the name of the function.
        in_tree: the tree of its arguments, a pair of those by place and those by name.
        in_avals: their types, flat.
        out_tree: the tree of its results.
        out_avals: their types, flat.
        nr_devices: 1.
        platforms: the platforms that it was exported for.
        disabled_safety_checks: checks that are left out.
        mlir_module_serialized: the program.
        calling_convention_version: of JAX's.
        module_kept_var_idx: which of the flat arguments the program takes.
        uses_global_constants: whether sizes in it are free.

    >>> exported = jax.export.export(jax.jit(jnp.sin))(jnp.ones(3))  # doctest: +SKIP
    >>> exported.out_avals  # doctest: +SKIP
    (ShapedArray(float32[3]),)"""

    fun_name: str
    in_tree: pytrees.PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: pytrees.PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    _get_vjp: Callable[[Exported], Exported] | None
    uses_global_constants: bool = False

    ordered_effects = unordered_effects = ()

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """Nothing is said of where the arguments are."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """Nothing is said of where the results are."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """The shardings of the arguments on a mesh. Nothing is said of them.

        Args:
            mesh: a mesh.
        Returns:
            None for each argument."""
        return self.in_shardings_hlo

    def out_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """The shardings of the results on a mesh. Nothing is said of them.

        Args:
            mesh: a mesh.
        Returns:
            None for each result."""
        return self.out_shardings_hlo

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program in StableHLO.

        Args:
            serialized: whether it is given as text.
        Returns:
            A text, or a module of jaxlib's MLIR."""
        text = jaxlib.portable_text(self.mlir_module_serialized)
        return text if serialized else jaxlib.mlir_module(text)

    def has_vjp(self) -> bool:
        """Whether there is a program for the backward pass.

        Returns:
            A bool."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The backward pass: of the flat arguments and the cotangents of the flat results.

        Returns:
            An Exported whose results are the cotangents of the flat arguments."""
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as bytes that `deserialize` reads, here or in JAX.

        Args:
            vjp_order: how many backward passes of backward passes go with it.
        Returns:
            Bytes."""
        return bytearray(encoded(FORMAT, "Exported", _written(self, vjp_order)))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the program, also within other programs. Gradients can be taken where a backward
        pass goes with it.

        Args:
            *args, **kwargs: arguments of the shapes and dtypes that it was exported for.
        Returns:
            The results."""
        return _called(self, args, kwargs)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


# ---------------------------------------------------------------- made of functions


def exporter(
    function: Any, platforms: Sequence[str] | None, disabled_checks: Sequence[DisabledSafetyCheck]
) -> Callable[..., Exported]:
    """The function of arguments, or of their shapes and dtypes, that exports a jitted function."""
    if not hasattr(function, "_function"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {function}")
    wanted = tuple(platforms) if platforms is not None else ("cpu",)
    wrong = [p for p in wanted if p not in PLATFORMS]
    if wrong or not wanted:
        raise ValueError(
            f"export: a program is exported for platforms of {', '.join(PLATFORMS)}, got {wanted}"
        )

    def export_for(*args: Any, **kwargs: Any) -> Exported:
        _check_scopes(function, args, kwargs)
        stage = trace(function, *args, **kwargs)
        return _exported(stage, wanted, tuple(disabled_checks))

    return export_for


def _check_scopes(function: Any, args: Any, kwargs: Any) -> None:
    """Sizes of two scopes have names that do not belong together."""
    first: tuple[Scope, str] | None = None
    for path, x in pytrees.flatten_with_path((args, kwargs))[0]:
        place = ("args", "kwargs")[path[0].idx] + keystr(path[1:])
        for d in getattr(x, "shape", None) or ():
            if not is_named(d):
                continue
            if first is None:
                first = d.symbols, place
            elif first[0] is not d.symbols:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {function.__name__}."
                    f" Expected current (from {first[1]}) scope {first[0]}\nand found for '{d}'"
                    f" ({place}) scope {d.symbols}\nMake the sizes with one scope:"
                    " symbolic_shape(..., scope=scope), or symbolic_args_specs for all arguments"
                )


def _exported(
    stage: Any, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]
) -> Exported:
    closed: ClosedJaxpr = with_constraints(stage.jaxpr)
    name = stage.fun_name
    plan = plan_of(closed.in_avals, stage.in_tree)
    lowered = module_of(closed, name, platforms, plan)
    if lowered.callbacks:
        raise ValueError(
            f"Cannot serialize {name}: it calls Python on the host, in"
            f" {', '.join(map(repr, lowered.callbacks))}, which no other process has"
        )
    text = lowered.text()
    partitions = re.search(r"mhlo.num_partitions = (\d+)", text)
    if partitions is not None and int(partitions[1]) > 1:
        raise NotImplementedError(
            f"export of {name}: programs over several devices cannot be exported; leave out their"
            " shardings, and place the arguments of the caller"
        )
    return Exported(
        fun_name=name,
        in_tree=stage.in_tree,
        in_avals=tuple(closed.in_avals),
        out_tree=stage.out_tree,
        out_avals=tuple(closed.out_avals),
        nr_devices=1,
        platforms=platforms,
        disabled_safety_checks=checks,
        mlir_module_serialized=jaxlib.portable(text),
        calling_convention_version=CALLING_CONVENTIONS[1],
        module_kept_var_idx=tuple(lowered.kept),
        _get_vjp=lambda primal: _backward(closed, primal),
        uses_global_constants=plan is not None or lowered.refines,
    )


def _backward(closed: ClosedJaxpr, primal: Exported) -> Exported:
    """The backward pass of a program."""
    flat, n = jaxpr_as_fun(closed), len(primal.in_avals)

    def backward(*values: Any) -> Any:
        _, pull = vjp(lambda *xs: list(flat(*xs)), *values[:n])
        return pull(list(values[n:]))

    backward.__name__ = f"{primal.fun_name}_vjp"
    specs = [ShapeDtypeStruct(a.shape, a.dtype) for a in primal.in_avals]
    specs += [ShapeDtypeStruct(a.shape, _tangent_dtype(a)) for a in primal.out_avals]
    stage = trace(jit(backward), *specs)
    return _exported(stage, primal.platforms, primal.disabled_safety_checks)


def _tangent_dtype(aval: ShapedArray) -> Any:
    dtype: Any = aval.to_tangent_aval().dtype
    return dtype


# ---------------------------------------------------------------- written and read


def _written(e: Exported, vjp_order: int) -> dict[str, Any]:
    unique = list(dict.fromkeys((*e.in_avals, *e.out_avals)))
    return {
        "serialization_version": VERSION,
        "function_name": e.fun_name,
        "in_tree": written_tree(e.in_tree),
        "in_avals": list(map(written_aval, e.in_avals)),
        "out_tree": written_tree(e.out_tree),
        "out_avals": list(map(written_aval, e.out_avals)),
        "nr_devices": e.nr_devices,
        "in_shardings": [{} for _ in e.in_avals],
        "out_shardings": [{} for _ in e.out_avals],
        "platforms": list(e.platforms),
        "ordered_effects": [],
        "unordered_effects": [],
        "disabled_checks": [_written_check(c) for c in e.disabled_safety_checks],
        "mlir_module_serialized": e.mlir_module_serialized,
        "calling_convention_version": e.calling_convention_version,
        "module_kept_var_idx": list(e.module_kept_var_idx),
        "uses_global_constants": e.uses_global_constants,
        "vjp": _written(e.vjp(), vjp_order - 1) if vjp_order > 0 else None,
        "unique_avals": list(map(written_aval, unique)),
        "unique_abstract_meshes": [],
        "unique_named_shardings": [],
        "in_avals_idxs": [unique.index(a) for a in e.in_avals],
        "out_avals_idxs": [unique.index(a) for a in e.out_avals],
        "in_shardings_idxs": [0 for _ in e.in_avals],
        "out_shardings_idxs": [0 for _ in e.out_avals],
    }


def _written_check(check: DisabledSafetyCheck) -> dict[str, Any]:
    target = check.is_custom_call()
    return {"kind": 0} if target is None else {"kind": 1, "custom_call_target": target}


def read(blob: bytes | bytearray) -> Exported:
    """The program that was written as these bytes."""
    return _read(decoded(FORMAT, "Exported", bytes(blob)))


def _read(w: dict[str, Any]) -> Exported:
    if w["mlir_module_serialized"] is None or w["in_tree"] is None or w["out_tree"] is None:
        raise ValueError("these bytes hold no exported program")
    version = w["calling_convention_version"]
    if version not in CALLING_CONVENTIONS:
        raise ValueError(
            f"the program takes its arguments by convention {version}; known are"
            f" {CALLING_CONVENTIONS}: export it again"
        )
    if w["ordered_effects"] or w["unordered_effects"]:
        raise NotImplementedError("the exported program has effects, such as callbacks")
    scope = Scope()
    ins, outs = (_read_avals(w, which, scope) for which in ("in", "out"))
    backward = w["vjp"]
    return Exported(
        fun_name=w["function_name"] or "",
        in_tree=read_tree(w["in_tree"], ins),
        in_avals=ins,
        out_tree=read_tree(w["out_tree"], outs),
        out_avals=outs,
        nr_devices=w["nr_devices"] or w["nr_devices_short"] or 1,
        platforms=tuple(w["platforms"] or ()),
        disabled_safety_checks=tuple(map(_read_check, w["disabled_checks"] or ())),
        mlir_module_serialized=w["mlir_module_serialized"],
        calling_convention_version=version,
        module_kept_var_idx=tuple(w["module_kept_var_idx"] or ()),
        _get_vjp=None if backward is None else lambda _: _read(backward),
        uses_global_constants=bool(w["uses_global_constants"]),
    )


def _read_avals(w: dict[str, Any], which: str, scope: Scope) -> tuple[ShapedArray, ...]:
    unique = [read_aval(a, _key_dtype, scope) for a in w["unique_avals"] or ()]
    places = w[f"{which}_avals_idxs"]
    if places and unique:
        return tuple(unique[i] for i in places)
    return tuple(read_aval(a, _key_dtype, scope) for a in w[f"{which}_avals"] or ())


def _read_check(w: dict[str, Any]) -> DisabledSafetyCheck:
    target = w["custom_call_target"]
    return DisabledSafetyCheck.custom_call(target) if w["kind"] else DisabledSafetyCheck.platform()


def _key_dtype(name: str) -> Any:
    return next(i.dtype for i in IMPLEMENTATIONS.values() if i.dtype.name == name)


# ---------------------------------------------------------------- called


def _called(exported: Exported, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, tree = pytrees.flatten((args, kwargs))
    if tree != exported.in_tree:
        raise ValueError(
            "The invocation args and kwargs must have the same pytree structure as when the"
            f" function '{exported.fun_name}' was exported, but they have {tree}, and it"
            f" {exported.in_tree}"
        )

    return pytrees.unflatten(exported.out_tree, _flat(exported)(*leaves))


def _flat(exported: Exported) -> Callable[..., Any]:
    """The program as a function of flat arguments, with its backward pass."""

    def run(*xs: Any) -> list[Any]:
        return list(call_exported_p.bind(*xs, exported=exported))

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


@memo("exported programs at the sizes of calls", 256, programs=True)
def _loaded(exported: Exported, avals: tuple[ShapedArray, ...]) -> Callable[..., list[np.ndarray]]:
    """The program on XLA's CPU for such arguments, as a function of arrays of NumPy: the engine's
    own calls have its text inside."""
    prepared()
    devices = cpu_devices()[:1]
    closed = trace_to_jaxpr(
        lambda *xs: list(call_exported_p.bind(*xs, exported=exported)), avals, exported.fun_name
    )
    outs = closed.out_avals
    lowered = lower_module(closed, Request(name=exported.fun_name))
    places = [Place(avals[i], None, devices) for i in lowered.kept]
    results = [result_of(a, None, devices) for a in outs]
    program = loaded_program(cpu_client(), [devices[0].xla], lowered.text(), (), results)

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
    kinds = [PLATFORMS.get(p, p) for p in exported.platforms]
    if kind in kinds:
        return kinds.index(kind)
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
    if exported.nr_devices != 1:
        raise NotImplementedError(
            f"{exported.fun_name} was exported for {exported.nr_devices} devices: only programs of"
            " one device can be called"
        )
    names = argument_names(exported.in_tree)
    for k, (given, wanted, name) in enumerate(zip(avals, exported.in_avals, names, strict=True)):
        _check_given(given, wanted, name, f"argument {k} of {exported.fun_name}")
    plan = plan_of(exported.in_avals, exported.in_tree)
    if plan is None:
        return list(exported.out_avals)
    found = solved(plan, OfShapes([a.shape for a in avals]))
    return [ShapedArray(plain(a.shape, found), a.dtype, a.weak_type) for a in exported.out_avals]


call_exported_p = Primitive(
    "call_exported",
    meaning=_meaning,
    shape=_shape,
    jvp=NotApplicable("exported programs have reverse-mode gradients only: use grad or vjp"),
    transpose=NotApplicable("an exported program is no linear function"),
    batch=NotApplicable("exported programs cannot be batched: export the batched function"),
    multiple_results=True,
)


@equation_rule("call_exported")
def call_exported(b: Builder, e: Eqn, outs: Sequence[Tensor], args: Sequence[Value]) -> list[Value]:
    """A call of the program's main function, which the module takes over with all that it calls."""
    exported = e.params["exported"]
    index = platform_index(exported, b.state.platform)
    known = b.state.adopted.get(exported)
    if known is None:
        text = jaxlib.portable_text(exported.mlir_module_serialized)
        known = b.state.adopted[exported] = adopted(b, text)
    b.state.refines = b.state.refines or exported.uses_global_constants
    ahead = [b.scalar(index, INT)] if len(exported.platforms) > 1 else []
    xs = [*ahead, *(args[i] for i in exported.module_kept_var_idx)]
    declared = [type_of(exported.in_avals[i]) for i in exported.module_kept_var_idx]
    results = [type_of(a) for a in exported.out_avals]
    return called(b, known, xs, [*(x.tensor for x in ahead), *declared], results, outs)
