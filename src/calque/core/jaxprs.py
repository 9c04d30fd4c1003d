"""Jaxprs: programs as immutable lists of equations over typed variables, and a verifier for
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from calque.core.avals import ShapedArray
from calque.core.lazy import LazyModule
from calque.core.primitives import REGISTRY, Primitive
from calque.core.source import Source
from calque.core.symbols import Symbols
from calque.machine.state import Hook, process

notebooks = LazyModule("calque.core.notebooks")


class Var:
    """A variable of a program: nothing but its type. Identity is equality.

    Args:
        aval: Its type.

    >>> jaxpr = jax.make_jaxpr(lambda x: x + 1)(2.0).jaxpr
    >>> jaxpr.invars[0].aval
    ShapedArray(float32[], weak_type=True)"""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self) & 0xFFFFFF:x}):{self.aval.str_short()}"


class DropVar(Var):
    """The variable of a result that nobody reads.

    Args:
        aval: Its type.

    >>> issubclass(jax.extend.core.DropVar, jax.extend.core.Var)
    True"""

    __slots__ = ()


class Literal:
    """A scalar constant that stands in the text of a program.

    Args:
        val: Its value, a NumPy scalar of exactly the dtype of `aval`.
        aval: Its type.
        written: Whether it is a number of the user's text, rather than an array whose value is
            known.

    >>> jax.make_jaxpr(lambda x: x + 1)(2.0).eqns[0].invars[1]
    Literal(1.0)"""

    __slots__ = ("aval", "val", "written")

    def __init__(self, val: Any, aval: ShapedArray, written: bool = True):
        self.val, self.aval, self.written = val, aval, written

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal
ParamDict = dict[str, Any]  # the parameters of an equation
Value = Any  # what programs are run on: arrays, tracers, numbers


class Eqn:
    """An equation of a program: outvars = primitive[params](invars).

    Args:
        primitive: The operation.
        invars: Its operands, variables and literals.
        outvars: The variables of its results.
        params: Its parameters by name.
        source: Where it was made in the user's code.

    >>> e = jax.make_jaxpr(jnp.sin)(2.0).eqns[0]
    >>> e.primitive, e.params
    (sin, {})"""

    __slots__ = ("invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        source: Source | None = None,
    ):
        self.primitive, self.params, self.source = primitive, params, source
        self.invars, self.outvars = list(invars), list(outvars)

    def replace(
        self,
        *,
        primitive: Primitive | None = None,
        invars: Sequence[Atom] | None = None,
        outvars: Sequence[Var] | None = None,
        params: ParamDict | None = None,
        source: Source | None = None,
        source_info: Source | None = None,
        effects: Any = None,
        ctx: Any = None,
    ) -> Eqn:
        """Gives the equation with some of its parts replaced.

        Args:
            primitive: Another operation; None keeps the old one.
            invars: Other operands; None keeps the old ones.
            outvars: Other results; None keeps the old ones.
            params: Other parameters; None keeps the old ones.
            source: Another place; None keeps the old one.
            source_info: Another name for `source`.
            effects: They follow from the operation: what is given is not kept.
            ctx: Equations keep no context of configuration: what is given is not kept.

        Returns:
            An Eqn."""
        return Eqn(
            self.primitive if primitive is None else primitive,
            self.invars if invars is None else invars,
            self.outvars if outvars is None else outvars,
            self.params if params is None else params,
            source or source_info or self.source,
        )

    @property
    def effects(self) -> frozenset[str]:
        """The name of its primitive if that has an effect."""
        return frozenset((self.primitive.name,)) if self.primitive.effect else frozenset()

    @property
    def source_info(self) -> Source | None:
        """Where it was made, and in which `named_scope`: `.file`, `.line`, `.function`,
        `.name_stack`, and `.traceback`, the place that `user_context` takes."""
        return self.source

    def __str__(self) -> str:
        return printer.call(self, {})

    __repr__ = __str__


class DebugInfo(NamedTuple):
    """Names for messages.

    Args:
        traced_for: What the function was traced for.
        func_src_info: Where the function stands.
        arg_names: What its arguments are called, or None.
        result_paths: What its results are called, or None.

    >>> jax.extend.core.DebugInfo("jit", None, ("x",)).arg_names
    ('x',)"""

    traced_for: str
    func_src_info: str | None
    arg_names: tuple[str, ...] | None = None
    result_paths: Any = None


_NO_NAMES: Final = DebugInfo("unknown", None)


class Jaxpr:
    """A program: constvars and invars in, equations in order, outvars out.

    Args:
        constvars: Variables of captured values.
        invars: Variables of the arguments.
        outvars: What it gives: variables and literals.
        eqns: The equations.
        effects: They follow from the equations: what is given is not kept.
        debug_info: Names for messages, a DebugInfo; None for none.
        is_high: It follows from the equations: what is given is not kept.

    >>> jax.make_jaxpr(lambda x: x + 1)(2.0).jaxpr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }"""

    __slots__ = ("__weakref__", "constvars", "debug_info", "eqns", "invars", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: Any = None,
        debug_info: DebugInfo | None = None,
        is_high: bool | None = None,
    ):
        self.constvars, self.invars = list(constvars), list(invars)
        self.outvars, self.eqns = list(outvars), list(eqns)
        self.debug_info = _NO_NAMES if debug_info is None else debug_info

    def replace(
        self,
        *,
        constvars: Sequence[Var] | None = None,
        invars: Sequence[Var] | None = None,
        outvars: Sequence[Atom] | None = None,
        eqns: Sequence[Eqn] | None = None,
        effects: Any = None,
        debug_info: DebugInfo | None = None,
        is_high: bool | None = None,
    ) -> Jaxpr:
        """Gives the program with some of its parts replaced.

        Args:
            constvars: Other variables of captured values; None keeps the old ones.
            invars: Other arguments; None keeps the old ones.
            outvars: Other results; None keeps the old ones.
            eqns: Other equations; None keeps the old ones.
            effects: They follow from the equations: what is given is not kept.
            debug_info: Other names for messages; None keeps the old ones.
            is_high: It follows from the equations: what is given is not kept.

        Returns:
            A Jaxpr."""
        return Jaxpr(
            self.constvars if constvars is None else constvars,
            self.invars if invars is None else invars,
            self.outvars if outvars is None else outvars,
            self.eqns if eqns is None else eqns,
            debug_info=self.debug_info if debug_info is None else debug_info,
        )

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    @property
    def effects(self) -> frozenset[str]:
        return frozenset(e.primitive.name for e in self.eqns if e.primitive.effect)

    def pretty_print(self, **options: Any) -> str:
        """Gives the program as text.

        Args:
            **options: `source_info` and `name_stack` add the user's line and the named scopes of
                each equation, `print_shapes=False` leaves out types, `custom_pp_eqn_rules=False`
                shows parameters that are left out else.

        Returns:
            A string."""
        return printer.call(self, options)

    def _repr_html_(self) -> str:
        shown: str = notebooks.program_html(str(self))
        return shown

    def __str__(self) -> str:
        return printer.call(self, {})

    __repr__ = __str__


_new_eqn: Final = Eqn.__new__


def recorded(
    primitive: Primitive,
    invars: list[Any],
    outvars: list[Any],
    params: dict[str, Any],
    source: Source | None,
) -> Eqn:
    """An equation that keeps these very lists, as tracing makes them for it alone."""
    e = _new_eqn(Eqn)
    e.primitive, e.params, e.source = primitive, params, source
    e.invars, e.outvars = invars, outvars
    return e


class ClosedJaxpr:
    """A program with the values that it has captured.

    Args:
        jaxpr: The program.
        consts: The values of its constvars.

    >>> closed = jax.make_jaxpr(lambda x: x + 1)(2.0)
    >>> closed.in_avals, len(closed.eqns)
    ([ShapedArray(float32[], weak_type=True)], 1)"""

    __slots__ = ("__weakref__", "cache", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"{len(jaxpr.constvars)} constvars but {len(consts)} constants")
        self.jaxpr, self.consts = jaxpr, list(consts)
        self.cache: dict[
            Any, Any
        ] = {}  # what transformations derived from this program, by their own keys

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def eqns(self) -> list[Eqn]:
        return self.jaxpr.eqns

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> DebugInfo:
        return self.jaxpr.debug_info

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def effects(self) -> frozenset[str]:
        return self.jaxpr.effects

    def replace(
        self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None
    ) -> ClosedJaxpr:
        """Gives the program with other parts.

        Args:
            jaxpr: Another program; None keeps the old one.
            consts: Other values; None keeps the old ones.

        Returns:
            A ClosedJaxpr."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def pretty_print(self, **options: Any) -> str:
        """Gives the program as text.

        Args:
            **options: `source_info` and `name_stack` add the user's line and the named scopes of
                each equation, `print_shapes=False` leaves out types, `custom_pp_eqn_rules=False`
                shows parameters that are left out else.

        Returns:
            A string."""
        return printer.call(self.jaxpr, options)

    def _repr_html_(self) -> str:
        return self.jaxpr._repr_html_()

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


printer: Final[Hook[Callable[[Any, dict[str, Any]], str]]] = process.hook(
    "printed programs", lambda program, options: object.__repr__(program)
)


def subjaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    for value in params.values():
        for v in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(v, ClosedJaxpr):
                yield v.jaxpr
            elif isinstance(v, Jaxpr):
                yield v


def all_equations(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a program and of those in it, at any depth."""
    todo = [jaxpr]
    while todo:
        for e in todo.pop().eqns:
            yield e
            if e.params:
                todo += subjaxprs(e.params)


# primitive name -> an equation as a program of ordinary ones: compiled code has that in its place
expansions: Final[dict[str, Callable[[Eqn], ClosedJaxpr]]] = process.container(
    "expansions of equations", {}
)


def without_places(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program whose types say nothing of where values are, as it is compiled."""
    if "without places" not in closed.cache:
        closed.cache["without places"] = (
            ClosedJaxpr(_without_places(closed.jaxpr), closed.consts)
            if _has_places(closed.jaxpr)
            else closed
        )
    found: ClosedJaxpr = closed.cache["without places"]
    return found


def _has_places(jaxpr: Jaxpr) -> bool:
    todo = [jaxpr]
    while todo:
        j = todo.pop()
        for v in (*j.constvars, *j.invars):
            if getattr(v.aval, "place", None) is not None:
                return True
        for e in j.eqns:
            for v in e.outvars:
                if getattr(v.aval, "place", None) is not None:
                    return True
            if e.primitive.name in expansions:
                return True
            if e.params:
                todo += subjaxprs(e.params)
    return False


def _without_places(jaxpr: Jaxpr) -> Jaxpr:
    known: dict[Var, Var] = {}

    def plain(a: Any) -> Any:
        if getattr(a.aval, "place", None) is None:
            return a
        if isinstance(a, Literal):
            return Literal(a.val, a.aval.without_place())
        if a not in known:
            known[a] = type(a)(a.aval.without_place())
        return known[a]

    def inner(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return without_places(value)
        if isinstance(value, Jaxpr):
            return _without_places(value) if _has_places(value) else value
        if isinstance(value, (tuple, list)) and any(
            isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value
        ):
            made = [inner(v) for v in value]
            return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
        return value

    eqns = []
    for e in jaxpr.eqns:
        ins, outs = [plain(a) for a in e.invars], [plain(v) for v in e.outvars]
        expand = expansions.get(e.primitive.name)
        if expand is None:
            params = {k: inner(v) for k, v in e.params.items()}
            eqns.append(e.replace(invars=ins, outvars=outs, params=params))
        else:
            call = {"jaxpr": expand(e), "name": e.primitive.name}
            eqns.append(e.replace(primitive=REGISTRY["jit"], invars=ins, outvars=outs, params=call))
    return jaxpr.replace(
        constvars=[plain(v) for v in jaxpr.constvars],
        invars=[plain(v) for v in jaxpr.invars],
        outvars=[plain(a) for a in jaxpr.outvars],
        eqns=eqns,
    )


def has_effects(jaxpr: Jaxpr) -> bool:
    """Whether anything in the program, at any depth, has an effect."""
    return any([e.primitive.effect for e in all_equations(jaxpr)])  # a list: most have none


def primitives_of(closed: ClosedJaxpr) -> frozenset[Primitive]:
    """The operations of a program, at any depth. Most questions that are asked of a whole program
    are about these: it is walked through once."""
    found: frozenset[Primitive] | None = closed.cache.get("primitives")
    if found is None:
        found = frozenset([e.primitive for e in all_equations(closed.jaxpr)])
        closed.cache["primitives"] = found
    return found


def symbols_found_by(closed: ClosedJaxpr) -> Symbols | None:
    """As `found_symbols`, of a program that is asked more."""
    finds = any([p.name == "let_size" for p in primitives_of(closed)])
    return found_symbols(closed.jaxpr) if finds else None


def found_symbols(jaxpr: Jaxpr) -> Symbols | None:
    """The free sizes of a program that finds sizes while it runs, at any depth; None of others."""
    if not has_effects(jaxpr):
        return None
    for e in all_equations(jaxpr):
        if e.primitive.name == "let_size":
            symbols: Symbols = e.params["size"].symbols
            return symbols
    return None


class JaxprTypeError(TypeError):
    """A jaxpr breaks the rules of its own language."""


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Checks a program: variables defined once and before use, types those of the operations.

    Args:
        jaxpr: The program.

    Raises:
        JaxprTypeError: Something is wrong with it.

    >>> jax.extend.core.check_jaxpr(jax.make_jaxpr(jnp.sin)(1.0).jaxpr)"""
    defined: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        if v in defined:
            raise JaxprTypeError(f"variable {v} is bound twice")
        defined.add(v)
    for e in jaxpr.eqns:
        _check_eqn(e, defined)
        if e.primitive.name in expansions:  # checked where its axes could be named
            continue
        for sub in subjaxprs(e.params):
            check_jaxpr(sub)
    for a in jaxpr.outvars:
        if isinstance(a, Var) and a not in defined:
            raise JaxprTypeError(f"output {a} is not defined")


def _check_eqn(e: Eqn, defined: set[Var]) -> None:
    for a in e.invars:
        if isinstance(a, Var) and a not in defined:
            raise JaxprTypeError(
                f"{e.primitive}: operand {a} is used before it is defined ({e.source})"
            )
    out = e.primitive.shape(*(a.aval for a in e.invars), **e.params)
    avals = out if e.primitive.multiple_results else [out]
    if len(avals) != len(e.outvars):
        raise JaxprTypeError(
            f"{e.primitive}: {len(e.outvars)} results, its shape rule says {len(avals)}"
        )
    for v, aval in zip(e.outvars, avals):
        if v.aval.shape != aval.shape or v.aval.dtype != aval.dtype:
            raise JaxprTypeError(
                f"{e.primitive}: result {v.aval} but its shape rule says {aval} ({e.source})"
            )
        if v in defined:
            raise JaxprTypeError(f"variable {v} is bound twice")
        if not isinstance(v, DropVar):
            defined.add(v)


def drop_unused(jaxpr: Jaxpr) -> Jaxpr:
    """Name the results that nobody reads `_`."""
    used: set[Atom] = set(jaxpr.outvars)
    for e in jaxpr.eqns:
        used.update(e.invars)
    eqns = [
        (
            e
            if used.issuperset(e.outvars)
            else e.replace(outvars=[v if v in used else DropVar(v.aval) for v in e.outvars])
        )
        for e in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=eqns)
