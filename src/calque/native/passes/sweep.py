"""The one forward walk over a program that every rewriting pass uses: substitution of variables,
fresh equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calque.core.avals import ShapedArray
from calque.core.jaxprs import Atom, Eqn, Jaxpr, Literal, Var
from calque.core.primitives import REGISTRY

# A rule looks at an equation whose operands are already rewritten. It returns None (keep it), an
# atom (its single result is that atom), or another equation with the same results.
Rule = Callable[["Sweep", Eqn], "Atom | Eqn | None"]


class Sweep:
    """What a rewriting pass knows at an equation: what every variable has become, and who made
    it."""

    __slots__ = ("env", "eqns", "jaxpr", "maker", "uses")

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.uses: Counter[Atom] | None = None
        self.env: dict[Var, Atom] = {}
        self.eqns: list[Eqn] = []
        self.maker: dict[Var, Eqn] = {}

    def atoms(self, xs: Sequence[Atom]) -> list[Atom]:
        env = self.env
        return [env.get(a, a) if a.__class__ is not Literal else a for a in xs]  # type: ignore[arg-type]

    def made_by(self, a: Atom, name: str) -> Eqn | None:
        """The equation that made `a`, when it is one of primitive `name`."""
        e = self.maker.get(a) if isinstance(a, Var) else None
        return e if e is not None and e.primitive.name == name else None

    def read_once(self, v: Var) -> bool:
        """Whether a single equation reads this variable, by its own name."""
        if self.uses is None:
            self.uses = Counter(
                a for e in self.jaxpr.eqns for a in e.invars if a.__class__ is not Literal
            )
            self.uses.update(a for a in self.jaxpr.outvars if a.__class__ is not Literal)
        return self.uses[v] == 1 and not any(a is v for a in self.env.values())

    def new(self, name: str, invars: Sequence[Atom], outvar: Var, like: Eqn, **params: Any) -> Eqn:
        """An equation of another primitive in place of `like`."""
        return Eqn(REGISTRY[name], invars, [outvar], params, like.source)

    def emit(
        self, name: str, invars: Sequence[Atom], aval: ShapedArray, like: Eqn, **params: Any
    ) -> Var:
        """The result of an equation that is written ahead of what takes the place of `like`."""
        made = self.new(name, invars, Var(aval), like, **params)
        self.eqns.append(made)
        self.maker[made.outvars[0]] = made
        return made.outvars[0]


def rewrite(jaxpr: Jaxpr, rules: Mapping[str, Sequence[Rule]]) -> Jaxpr:
    """Apply the rules of each equation's primitive, in order, until none changes it; in one walk,
    linear in the program."""
    s = Sweep(jaxpr)
    changed = False
    for e in jaxpr.eqns:
        invars = s.atoms(e.invars) if s.env else e.invars
        if s.env and any(a is not b for a, b in zip(invars, e.invars)):
            e = Eqn(e.primitive, invars, e.outvars, e.params, e.source)
            changed = True
        out: Atom | Eqn = _apply(s, e, rules)
        if isinstance(out, Eqn):
            changed |= out is not e
            s.eqns.append(out)
            for v in out.outvars:
                s.maker[v] = out
        else:
            changed = True
            s.env[e.outvars[0]] = out
    return jaxpr.replace(eqns=s.eqns, outvars=s.atoms(jaxpr.outvars)) if changed else jaxpr


def _apply(s: Sweep, e: Eqn, rules: Mapping[str, Sequence[Rule]]) -> Atom | Eqn:
    # a rewritten equation may match again; the bound guards against rules that undo each other
    for _ in range(8):
        for rule in rules.get(e.primitive.name, ()):
            out = rule(s, e)
            if out is None:
                continue
            if not isinstance(out, Eqn):
                return out
            e = out
            break
        else:
            return e
    return e
