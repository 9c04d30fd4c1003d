"""Arrays without data: `ShapeDtypeStruct`, and running functions on shapes alone."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from calque.core import pytrees
from calque.core.adopting import refuse_masked
from calque.core.avals import ShapedArray
from calque.core.dtypes import ExtendedDType, as_dtype, canonicalize
from calque.core.jaxprs import ClosedJaxpr, drop_unused
from calque.core.trace import HIGH_TYPES, trace_to_jaxpr, typeof, typing
from calque.core.tracebacks import boundary
from calque.transforms.engines import axes
from calque.transforms.engines.signatures import ArgumentNames, as_tuple, check_callable
from calque.transforms.engines.trees import FlatFunction, argument_name, name_of, wrapping
from calque.transforms.primitives.high_values import Opening
from calque.transforms.primitives.refs import values_of
from calque.transforms.primitives.refs_arguments import fresh, with_values

if TYPE_CHECKING:
    from calque.core.generics import Asked


def _check_given(dtype: Any, is_ref: bool) -> None:
    if dtype is None:
        raise ValueError("ShapeDtypeStruct: dtype must be specified.")
    if is_ref:
        raise NotImplementedError(
            "ShapeDtypeStruct: is_ref=True is not offered: pass the reference itself, or the type"
            " of its value"
        )


def _as_said(dtype: Any) -> Any:
    """A dtype of the width that its name says."""
    return dtype if isinstance(dtype, ExtendedDType) else as_dtype(dtype)


class ShapeDtypeStruct:
    """The type of an array without its data: shape, dtype and where it lives.

    Args:
        shape: The size of each dimension; for `calque.export_library` also the name of one that
            is free, such as "n".
        dtype: The dtype. What is traced for it has the 32-bit one where 64-bit ones are not
            enabled.
        sharding: How the array is laid out over devices, or None.
        weak_type: Whether the dtype gives way to that of another operand, as a Python number's
            does.
        manual_axis_type: Accepted: how values relate to the axes of `shard_map` follows from what
            makes them.
        is_ref: False: the type of a mutable reference is asked of the reference.

    >>> jax.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)"""

    __slots__ = ("_aval", "_sharding")

    def __new__(cls, shape: Any = (), *_: Any, **__: Any) -> ShapeDtypeStruct:
        named = cls is ShapeDtypeStruct and any(isinstance(d, str) for d in shape)
        return object.__new__(NamedSizes if named else cls)

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ):
        _check_given(dtype, is_ref)
        shape = tuple(shape)
        entries = getattr(getattr(sharding, "spec", sharding), "partitions", ())
        if len(entries) > len(shape):
            raise ValueError(
                f"ShapeDtypeStruct: sharding {sharding} is only valid for values of rank at least"
                f" {len(entries)}, but was applied to a value of rank {len(shape)}"
            )
        self._aval = ShapedArray(shape, _as_said(dtype), weak_type)
        self._sharding = sharding

    @property
    def sharding(self) -> Any:
        """The sharding; a PartitionSpec is one over the mesh that is set when this is asked."""
        return None if self._sharding is None else typing.value.resolved(self._sharding)

    @property
    def aval(self) -> ShapedArray:
        where, said = self.sharding, self._aval
        dtype = canonicalize(said.dtype)
        aval = said if dtype == said.dtype else ShapedArray(said.shape, dtype, said.weak_type)
        return aval if where is None else typing.value.placed(aval, where)

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    weak_type = property(lambda self: self._aval.weak_type)
    size = property(lambda self: self._aval.size)
    ndim = property(lambda self: self._aval.ndim)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            "A ShapeDtypeStruct does not have a value and cannot be used as a constant in a JAX"
            " function: return or use an array of this type instead."
        )

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Gives the type of an array, and where it lives if it was put there.

        Args:
            x: An array, traced or not, or a number.

        Returns:
            A ShapeDtypeStruct.

        >>> jax.ShapeDtypeStruct.like(jnp.ones((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)"""
        aval = typeof(x)
        traced = aval.place is not None  # the type of a traced value says it
        committed = traced or getattr(x, "committed", False)
        sharding = aval.sharding if traced else getattr(x, "sharding", None) if committed else None
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Gives the same type with other attributes.

        Args:
            **changes: New values by name: `shape`, `dtype`, `sharding`, `weak_type`.

        Returns:
            A new ShapeDtypeStruct.

        >>> jax.ShapeDtypeStruct((2, 3), "float32").update(shape=(4,))
        ShapeDtypeStruct(shape=(4,), dtype=float32)"""
        new = {
            "shape": self.shape,
            "dtype": self.dtype,
            "weak_type": self.weak_type,
            "sharding": self._sharding,
            **changes,
        }
        return ShapeDtypeStruct(**new)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        name = getattr(self.dtype, "name", self.dtype)
        extra = f", sharding={self._sharding}" if self._sharding is not None else ""
        return (
            f"ShapeDtypeStruct(shape={self.shape},"
            f" dtype={name}{extra}{', weak_type=True' if self.weak_type else ''})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> tuple[Any, ...]:
        """What it says by itself: a PartitionSpec says more where a mesh is set."""
        is_spec = hasattr(self._sharding, "partitions")
        return (self._aval if is_spec else self.aval, self.dtype, self._sharding)


class NamedSizes(ShapeDtypeStruct):
    """A ShapeDtypeStruct in whose shape names stand for sizes that are free. It is no type of a
    value: who takes it asks for its `shape`, all others are told so."""

    __slots__ = ("_dtype", "_shape", "_weak_type")  # without the type of a value

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ):
        _check_given(dtype, is_ref)
        for d in shape:
            if isinstance(d, str) and not (d.isidentifier() and d.isascii()):
                raise ValueError(
                    f"ShapeDtypeStruct: the size {d!r} is no name: a free size is called by"
                    ' letters, digits and _, such as "n"'
                )
        self._shape = tuple([d if isinstance(d, str) else operator.index(d) for d in shape])
        self._dtype, self._weak_type = _as_said(dtype), weak_type
        self._sharding = sharding

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    weak_type = property(lambda self: self._weak_type)
    ndim = property(lambda self: len(self._shape))

    @property
    def aval(self) -> Any:  # type: ignore[override]
        raise TypeError(
            f"the sizes {self._shape} have names, which calque.export_library takes: give a number"
            " for each here; jit takes free sizes as dynamic={argument: axes}"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSizes) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[Any, ...]:
        return (self._shape, self._dtype, self._weak_type, self._sharding)


def aval_of(x: Any) -> ShapedArray:
    """The type of an array, a number, or anything with a shape and a dtype."""
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval"):
        refuse_masked(x)
        return ShapedArray(
            tuple(x.shape), canonicalize(x.dtype), bool(getattr(x, "weak_type", False))
        )
    return typeof(x)


def _avals(
    leaves: Sequence[Any], what: str, fun: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[ShapedArray]:
    out = []
    for i, x in enumerate(leaves):
        try:
            out.append(aval_of(x))
        except TypeError:
            if isinstance(x, NamedSizes):
                raise
            raise TypeError(
                f"{what}: argument {argument_name(fun, args, kwargs, i)} of {name_of(fun)} is {x!r}"
                f" of type {type(x)}: pass an array, a number or a ShapeDtypeStruct, or make the"
                " argument static"
            ) from None
    return out


@boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Asked:  # type: ignore[type-var]
    """Gives the shapes and dtypes of what `fun` would return, without any arithmetic.

    Args:
        fun: The function; it is traced.
        *args: Its positional arguments: arrays, or ShapeDtypeStructs in place of them.
        **kwargs: Its keyword arguments, likewise.

    Returns:
        The result of `fun` with a ShapeDtypeStruct in place of each array.

    >>> a, x = jax.ShapeDtypeStruct((2, 3), "float32"), jax.ShapeDtypeStruct((3,), "float32")
    >>> jax.eval_shape(jnp.dot, a, x)
    ShapeDtypeStruct(shape=(2,), dtype=float32)"""
    leaves, in_tree = pytrees.flatten((args, kwargs))
    if HIGH_TYPES:
        opening = Opening(in_tree, leaves, name_of(fun))
        opened = opening.function(fun)
        return opening.close(_shapes(opened, opening.args, opening.kwargs), write=False)
    return _shapes(fun, args, kwargs)


def _shapes(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, in_tree = pytrees.flatten((args, kwargs))
    flat = FlatFunction(fun, in_tree, "eval_shape")
    closed = trace_to_jaxpr(flat, _avals(leaves, "eval_shape", fun, args, kwargs), name_of(fun))
    return pytrees.unflatten(flat.out_tree, [struct(a) for a in closed.out_avals])


def struct(aval: ShapedArray) -> ShapeDtypeStruct:
    """A type as users see it, with the sharding that it says."""
    where = None if getattr(aval, "place", None) is None else aval.sharding
    found = ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where, weak_type=aval.weak_type)
    found._aval = aval  # all that the type says
    return found


@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: Literal[False] = False,
    abstracted_axes: Any = None,
) -> Callable[..., ClosedJaxpr]: ...


@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    *,
    return_shape: Literal[True],
    abstracted_axes: Any = None,
) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...


@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]: ...


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """Makes a function that gives the program which `fun` records for such arguments.

    Of a Ref the program takes the value, and gives what it holds at last after the other results.

    Args:
        fun: The function to trace.
        static_argnums: Positions of arguments that stay Python values.
        axis_env: Pairs (name, size) of axes that collectives inside may speak of.
        return_shape: Whether to return the types of the results as well.
        abstracted_axes: Must be None: sizes become free by themselves under `jit`.

    Returns:
        A function of the arguments of `fun`, arrays or ShapeDtypeStructs. It returns a ClosedJaxpr,
        with `return_shape` a pair of it and the results as ShapeDtypeStructs.

    >>> jax.make_jaxpr(lambda x: 2 * x + 1)(3.0)
    { lambda ; a:f32[]. let
        b:f32[] = mul 2.0:f32[] a
        c:f32[] = add b 1.0:f32[]
      in (c,) }"""
    check_callable(fun)
    if abstracted_axes is not None:
        raise NotImplementedError(
            "make_jaxpr with abstracted_axes: leave it out; shapes become symbolic by themselves"
            " under jit"
        )
    static = as_tuple(static_argnums, int, "static_argnums")
    scope = [axes.Axis(name, size) for name, size in axis_env or ()]

    @boundary
    def made(*args: Any, **kwargs: Any) -> Any:
        fixed = {i % len(args): args[i % len(args)] for i in static if -len(args) <= i < len(args)}
        dynamic = [None if i in fixed else a for i, a in enumerate(args)]

        (dynamic, kwargs), _, places = with_values((dynamic, kwargs), "make_jaxpr")

        def call(*values: Any, **named: Any) -> Any:
            (values, named), made = fresh((values, named), places)
            out = fun(*[fixed.get(i, v) for i, v in enumerate(values)], **named)
            return (out, values_of(made)) if made else out

        leaves, in_tree = pytrees.flatten((dynamic, kwargs))
        flat = FlatFunction(call, in_tree, "make_jaxpr")
        avals = _avals(leaves, "make_jaxpr", fun, dynamic, kwargs)
        with axes.bound(scope):
            closed = trace_to_jaxpr(
                flat,
                avals,
                name_of(fun),
                ArgumentNames(fun, dynamic, kwargs, fixed),
                hoisting=True,
            )
        closed = ClosedJaxpr(drop_unused(closed.jaxpr), closed.consts)
        if return_shape:
            return closed, pytrees.unflatten(flat.out_tree, [struct(a) for a in closed.out_avals])
        return closed

    wrapping(made, fun, "The program that the function records for arguments of these types.")
    made.__name__, made.__qualname__ = (
        f"make_jaxpr({made.__name__})",
        f"make_jaxpr({made.__qualname__})",
    )
    made.__module__ = __name__.partition(".")[0]
    return made
