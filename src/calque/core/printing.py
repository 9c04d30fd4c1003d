"""The printed form of jaxprs: JAX's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.dtypes import ExtendedDType
from calque.core.jaxprs import Atom, ClosedJaxpr, DropVar, Eqn, Jaxpr, Var, printer

WIDTH = 88
# parameters whose functions are printed as objects, rather than by their names
_OBJECTS: Final = frozenset(
    ("infer_sharding_from_operands", "partition", "propagate_user_sharding", "sharding_rule")
)
_ADDRESS: Final = re.compile(r" at 0x([0-9a-fA-F]+)")


class Style(NamedTuple):
    """What is printed beside the equations."""

    places: bool = False  # the user's line of each
    scopes: bool = False  # the named scopes around each
    shapes: bool = True  # the types of values
    hiding: bool = True  # parameters that say nothing new are left out

    def note(self, e: Eqn) -> str:
        """What is said of an equation behind it."""
        if e.source is None:
            return ""
        scope = e.source.name_stack if self.scopes else ""
        return " ".join(filter(None, (scope, str(e.source) if self.places else "")))


class Names:
    """a, b, ... z, ba, bb, ...: in order of first appearance."""

    def __init__(self, style: Style = Style()) -> None:
        self.known: dict[Var, str] = {}
        self.count = 0
        self.style = style

    def typed(self, text: str, aval: Any) -> str:
        return f"{text}:{aval.str_short()}" if self.style.shapes else text

    def __getitem__(self, v: Var) -> str:
        if isinstance(v, DropVar):
            return "_"
        name = self.known.get(v)
        if name is None:
            name = self.known[v] = letters(self.count)
            self.count += 1
        return name

    def enter_call(self, e: Eqn) -> None:
        """Inside a called program, arguments and results go by the names they have outside."""
        inner = e.params["jaxpr"].jaxpr
        for outer, v in zip(e.invars, inner.invars, strict=True):
            if isinstance(outer, Var):
                self.known[v] = self[outer]
        for outer, v in zip(e.outvars, inner.outvars, strict=True):
            if isinstance(v, Var) and v not in inner.invars and not isinstance(outer, DropVar):
                self.known[v] = self[outer]


def letters(n: int) -> str:
    """Numbers to base 26, with letters for digits."""
    s = ""
    while True:
        n, r = divmod(n, 26)
        s = chr(97 + r) + s
        if n == 0:
            return s


def print_jaxpr(jaxpr: Jaxpr, names: Names | None = None) -> str:
    names = names or Names()
    consts, ins = binders(jaxpr.constvars, names), binders(jaxpr.invars, names)
    head = f"{{ lambda {consts}; {ins}. let" if consts else f"{{ lambda ; {ins}. let"
    used = {a for e in jaxpr.eqns for a in e.invars if isinstance(a, Var)}
    used |= {a for a in jaxpr.outvars if isinstance(a, Var)}
    eqns = [print_eqn(e, names, used) for e in jaxpr.eqns]
    outs = [atom(a, names) for a in jaxpr.outvars]
    tail = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
    flat = f"{head} {'; '.join(eqns)} {tail}"
    notes = [names.style.note(e) for e in jaxpr.eqns]
    if len(flat) <= WIDTH and "\n" not in flat and len(eqns) <= 1 and not any(notes):
        return flat
    eqns = noted(eqns, notes)
    body = "\n".join(indent(e, 4) for e in eqns)
    return f"{head}\n{body}\n  {tail}"


def noted(eqns: Sequence[str], notes: Sequence[str]) -> list[str]:
    """The equations with what is said of each behind its first line, in one column."""
    if not any(notes):
        return list(eqns)
    lines = [e.split("\n", 1) for e in eqns]
    width = max((len(first) for first, *_ in lines), default=0)
    return [
        "\n".join([f"{first:{width}} # {note}" if note else first, *rest])
        for (first, *rest), note in zip(lines, notes, strict=True)
    ]


def indent(text: str, n: int) -> str:
    return "\n".join(" " * n + line for line in text.split("\n"))


def binders(vs: Sequence[Var], names: Names) -> str:
    return " ".join(names.typed(names[v], v.aval) for v in vs)


def atom(a: Atom, names: Names) -> str:
    return names[a] if isinstance(a, Var) else names.typed(literal(a.val), a.aval)


def literal(val: Any) -> str:
    v = np.asarray(val)
    return str(v.item()) if v.dtype.kind in "bifuc" else str(v)


def print_eqn(e: Eqn, names: Names, used: set[Var]) -> str:
    outs = " ".join(names.typed(names[v] if v in used else "_", v.aval) for v in e.outvars)
    if e.primitive.name == "jit":
        names.enter_call(e)
    order = sorted(e.params, key=lambda k: (k != "name", k))
    left_out = hidden(e) if names.style.hiding else ()
    params = [f"{k}={param(e.params[k], names, k)}" for k in order if k not in left_out]
    ins = " ".join(atom(a, names) for a in e.invars)
    flat = f"[{' '.join(params)}]" if params else ""
    lead = f"{outs} = " if outs else ""
    line = (
        f"{lead}{e.primitive.name}{flat} {ins}".rstrip()
        if ins
        else f"{lead}{e.primitive.name}{flat} "
    )
    if len(line) <= WIDTH and "\n" not in line:
        return line
    inside = "\n".join(indent(p, 2) for p in params)
    return f"{lead}{e.primitive.name}[\n{inside}\n] {ins}".rstrip()


def hidden(e: Eqn) -> Sequence[str]:
    h = e.primitive.hidden
    return h(e.params) if callable(h) else h


def param(value: Any, names: Names, name: str = "") -> str:
    if isinstance(value, ClosedJaxpr):
        return print_jaxpr(value.jaxpr, names)
    if isinstance(value, Jaxpr):
        return print_jaxpr(value, names)
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, ExtendedDType):
        return value.short_name()
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
    if isinstance(value, tuple) and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        return "(\n" + "\n".join(indent(param(v, names), 2) for v in value) + "\n)"
    if name == "dimension_numbers" and type(value) is tuple:
        return str(as_lists(value))
    if name in _OBJECTS:
        return _ADDRESS.sub(lambda m: " at 0x" + "X" * len(m[1]), str(value))
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


def as_lists(value: Any) -> Any:
    """Contracting and batch dimensions print as lists in tuples."""
    inner = type(value) is tuple and all(isinstance(v, int) for v in value)
    return list(value) if inner else tuple(map(as_lists, value))


def print_as_asked(jaxpr: Jaxpr, options: dict[str, Any]) -> str:
    """The printed form with the options of `pretty_print`."""
    asked = dict(options)
    style = Style(
        places=bool(asked.pop("source_info", False)),
        scopes=bool(asked.pop("name_stack", False)),
        shapes=bool(asked.pop("print_shapes", True)),
        hiding=bool(asked.pop("custom_pp_eqn_rules", True)),
    )
    for name in asked:
        if name not in _PLAIN_ALONE:
            raise TypeError(f"pretty_print() got an unexpected keyword argument {name!r}")
        if asked[name] not in _PLAIN_ALONE[name]:
            raise NotImplementedError(
                f"pretty_print: {name} can only be one of {_PLAIN_ALONE[name]}, got {asked[name]!r}"
            )
    return print_jaxpr(jaxpr, Names(style))


# Options of JAX's printer that are known, with what they can be
_PLAIN_ALONE: Final[dict[str, tuple[Any, ...]]] = {
    "print_effects": (False,), "use_color": (False, None), "width": (None, WIDTH),
    "annotation_prefix": ("# ", " # "), "source_map": (None,),
}  # fmt: skip


def print_alone(program: Jaxpr | Eqn, options: dict[str, Any]) -> str:
    """The printed form of a program, or of an equation by itself, whose results are all named."""
    if isinstance(program, Jaxpr):
        return print_as_asked(program, options)
    return print_eqn(program, Names(), set(program.outvars))


printer.install(print_alone)
