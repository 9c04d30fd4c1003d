"""Exported programs: made of jitted functions, read from bytes, called from other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.key_paths import keystr
from calque.core.trace import jaxpr_as_fun
from calque.machine.call import functions as callpath
from calque.ops.random.keys import IMPLEMENTATIONS
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_constraint import constrained
from calque.transforms.devices.type_constraints import stated, with_constraints
from calque.transforms.functions.autodiff import vjp
from calque.transforms.functions.shapes import ShapeDtypeStruct
from calque.transforms.jit.decorator import jit
from calque.transforms.jit.donation import warn_unusable
from calque.transforms.jit.platforms import check_donation, checked_platforms
from calque.transforms.jit.stages import trace
from calque.xla import jaxlib, mlir
from calque.xla.exporting.calling import called
from calque.xla.exporting.checks import DisabledSafetyCheck, refuse_unstable
from calque.xla.exporting.flat_buffers import decoded, encoded
from calque.xla.exporting.modules import Called, Inputs, Spread, module_of
from calque.xla.exporting.scopes import Scope, is_named
from calque.xla.exporting.shardings import (
    Where,
    device_count,
    on_mesh,
    portable,
    shardings_in,
    shardings_out,
    shardings_said,
    types_on_meshes,
    written,
)
from calque.xla.exporting.shardings import read as read_shardings
from calque.xla.exporting.solving import plan_of
from calque.xla.exporting.written import (
    FORMAT,
    VERSION,
    read_aval,
    read_tree,
    written_aval,
    written_tree,
)
from calque.xla.stages import result_names

CALLING_CONVENTIONS: Final = (9, 10)  # how modules take their arguments: the versions known here


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
        nr_devices: how many devices it is for.
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
    _in_named_shardings: Where
    _out_named_shardings: Where
    uses_global_constants: bool = False

    ordered_effects = unordered_effects = ()

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """Nothing: programs of today say where their arguments live by meshes, see
        `in_shardings_jax`."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """Nothing: see `out_shardings_jax`."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: Any) -> tuple[NamedSharding | None, ...]:
        """The shardings of the arguments on a mesh.

        Args:
            mesh: a mesh with the axes of the one that it was exported with; its devices are free.
        Returns:
            A sharding for each flat argument, None where nothing is said of it."""
        return on_mesh(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh: Any) -> tuple[NamedSharding | None, ...]:
        """The shardings of the results on a mesh.

        Args:
            mesh: a mesh with the axes of the one that it was exported with; its devices are free.
        Returns:
            A sharding for each flat result, None where nothing is said of it."""
        return on_mesh(self._out_named_shardings, mesh)

    @property
    def shardings(self) -> list[NamedSharding]:
        """Those of its arguments and results of which something is said."""
        every = (*self._in_named_shardings, *self._out_named_shardings)
        return [s for s in every if s is not None]

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program in StableHLO.

        Args:
            serialized: whether it is given as text.
        Returns:
            A text, or a module of jaxlib's MLIR."""
        text = mlir.portable_text(self.mlir_module_serialized, located=True)
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
        return called(self, args, kwargs)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


# ---------------------------------------------------------------- made of functions


def exporter(
    function: Any,
    platforms: Sequence[str] | None,
    disabled_checks: Sequence[DisabledSafetyCheck],
    rules: Sequence[tuple[Any, Any]] | None = None,
) -> Callable[..., Exported]:
    """The function of arguments, or of their shapes and dtypes, that exports a jitted function."""
    if not isinstance(function, callpath.Jitted):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {function}")
    wanted = ("cpu",) if platforms is None else checked_platforms(platforms, "export")

    def export_for(*args: Any, **kwargs: Any) -> Exported:
        _check_scopes(function, args, kwargs)
        with config.override("calque_exporting_for", wanted):
            stage = trace(function, *args, **kwargs)
        check_donation(stage.donate_argnums, wanted)
        warn_unusable(stage._program.unusable, stage.fun_name)
        return _exported(stage, wanted, tuple(disabled_checks), dict(rules or ()))

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
    stage: Any,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
    rules: dict[Any, Any],
) -> Exported:
    closed: ClosedJaxpr = with_constraints(stage.jaxpr)
    name = stage.fun_name
    devices = device_count(closed.jaxpr, stage._placements)
    ins: Sequence[Any] = (None,) * len(closed.in_avals)
    outs: Sequence[Any] = (None,) * len(closed.out_avals)
    said: Sequence[Any] = outs  # of the results; of some more it follows where they live
    if devices > 1:
        ins = shardings_in(closed, stage._placements)
        said, outs = shardings_said(closed), shardings_out(closed, ins, name)
        closed = stated(stage.jaxpr)
    plan = plan_of(closed.in_avals, stage.in_tree)
    names = Called(name, stage._shown.names, result_names(stage._program))
    inputs = Inputs(stage.donate_argnums, stage._shown.keep_unused)
    spread = Spread(devices, ins, said)
    lowered = module_of(closed, names, platforms, plan, spread, rules, inputs)
    if lowered.callbacks:
        raise ValueError(
            f"Cannot serialize {name}: it calls Python on the host, in"
            f" {', '.join(map(repr, lowered.callbacks))}, which no other process has"
        )
    where_in, where_out = portable(ins), portable(outs)
    text = lowered.text(located=True)
    refuse_unstable(name, text, checks)
    return Exported(
        fun_name=name,
        in_tree=stage.in_tree,
        in_avals=types_on_meshes(closed.in_avals, where_in),
        out_tree=stage.out_tree,
        out_avals=types_on_meshes(closed.out_avals, where_out),
        nr_devices=devices,
        platforms=platforms,
        disabled_safety_checks=checks,
        mlir_module_serialized=mlir.portable(text),
        calling_convention_version=CALLING_CONVENTIONS[1],
        module_kept_var_idx=tuple(lowered.kept),
        _get_vjp=lambda primal: _backward(closed, primal, (*ins, *said), rules),
        _in_named_shardings=where_in,
        _out_named_shardings=where_out,
        uses_global_constants=plan is not None or lowered.refines or len(platforms) > 1,
    )


def _backward(
    closed: ClosedJaxpr, primal: Exported, where: Sequence[Any], rules: dict[Any, Any]
) -> Exported:
    """The backward pass of a program, whose arguments and results were said to live there:
    cotangents live where their values do."""
    flat, n = jaxpr_as_fun(closed), len(primal.in_avals)

    def backward(*values: Any) -> Any:
        _, pull = vjp(lambda *xs: list(flat(*xs)), *values[:n])
        cts = pull(list(values[n:]))
        return [ct if s is None else constrained(ct, s) for ct, s in zip(cts, where)]

    backward.__name__ = f"{primal.fun_name}_vjp"
    dtypes = [a.dtype for a in primal.in_avals] + list(map(_tangent_dtype, primal.out_avals))
    specs = [
        ShapeDtypeStruct(a.shape, dtype, sharding=s)
        for a, dtype, s in zip((*primal.in_avals, *primal.out_avals), dtypes, where, strict=True)
    ]
    with config.override("calque_exporting_for", primal.platforms):
        stage = trace(jit(backward), *specs)
    return _exported(stage, primal.platforms, primal.disabled_safety_checks, rules)


def _tangent_dtype(aval: ShapedArray) -> Any:
    dtype: Any = aval.to_tangent_aval().dtype
    return dtype


# ---------------------------------------------------------------- written and read


def _written(e: Exported, vjp_order: int) -> dict[str, Any]:
    in_avals, out_avals = (
        [a.without_place() for a in avals] for avals in (e.in_avals, e.out_avals)
    )  # the shardings are written for themselves
    unique = list(dict.fromkeys((*in_avals, *out_avals)))
    return {
        "serialization_version": VERSION,
        "function_name": e.fun_name,
        "in_tree": written_tree(e.in_tree),
        "in_avals": list(map(written_aval, in_avals)),
        "out_tree": written_tree(e.out_tree),
        "out_avals": list(map(written_aval, out_avals)),
        "nr_devices": e.nr_devices,
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
        "in_avals_idxs": [unique.index(a) for a in in_avals],
        "out_avals_idxs": [unique.index(a) for a in out_avals],
        **written(e._in_named_shardings, e._out_named_shardings),
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
    where_in, where_out = read_shardings(w, "in", len(ins)), read_shardings(w, "out", len(outs))
    backward = w["vjp"]
    return Exported(
        fun_name=w["function_name"] or "",
        in_tree=read_tree(w["in_tree"], ins),
        in_avals=types_on_meshes(ins, where_in),
        out_tree=read_tree(w["out_tree"], outs),
        out_avals=types_on_meshes(outs, where_out),
        nr_devices=w["nr_devices"] or w["nr_devices_short"] or 1,
        platforms=tuple(w["platforms"] or ()),
        disabled_safety_checks=tuple(map(_read_check, w["disabled_checks"] or ())),
        mlir_module_serialized=w["mlir_module_serialized"],
        calling_convention_version=version,
        module_kept_var_idx=tuple(w["module_kept_var_idx"] or ()),
        _get_vjp=None if backward is None else lambda _: _read(backward),
        _in_named_shardings=where_in,
        _out_named_shardings=where_out,
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
