"""Programs of a seed: functions of the catalogue, one after the other, each called while the
program is drawn, so that what nobody takes is left out."""

import functools
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import calque
from calque.core.config import config
from tests.compositions.checks import on_reference
from tests.compositions.peers import numpy_of
from tests.fuzz.catalogue import FORMS, signatures
from tests.fuzz.draw import Draw
from tests.fuzz.programs import Call, Program, Ref, call
from tests.fuzz.recipes import (  # noqa: F401  (their recipes join the table)
    decompositions,
    forms,
    indices,
    others,
    products,
    samplers,
    scalars,
    selections,
    shapes,
    windows,
)
from tests.fuzz.recipes.table import RECIPES
from tests.fuzz.roles import NoRole, arguments
from tests.fuzz.tiers import MACHINE, place, tier
from tests.fuzz.values import KINDS, value

LARGEST = 400_000  # elements of a result
MOST_BYTES = 1 << 30  # of what one call gives
NEIGHBOURS = 1000  # programs that draw from one part of the catalogue, and share what they prepare
PARTS = 8  # of the catalogue
COMMON = ("float32", "int32", "bool")
LARGE_SHARE = 0.25  # of the programs that run natively
SHARE_OF_FORMS = 0.2  # of the calls: operators, indices, control flow around functions


class Refusal(Exception):
    """calque refuses a call that JAX takes, or its meanings one that it takes itself."""

    def __init__(self, program: Program, error: Exception):
        super().__init__(f"{type(error).__name__}: {error}")
        self.program = program


class Generator:
    """Draws programs; counts which functions were called and which refused."""

    def __init__(self, peer: Any = None, names: tuple[str, ...] = ()):
        self.peer = peer
        self.signatures = catalogue()
        self.names = names or tuple(self.signatures)
        self.forms = () if names else FORMS
        self.called: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.features: Counter[str] = Counter()

    def program(self, seed: int) -> Program:
        """The program of a seed; raises Refusal."""
        rng = np.random.default_rng([seed, 17])
        name = tier(seed)
        x64, large = bool(rng.random() < 0.25), name == MACHINE and bool(rng.random() < LARGE_SHARE)
        some, dtypes = self._part(seed // NEIGHBOURS)
        d = Draw(rng, x64, large, dtypes)
        calls: list[Call] = []
        refused: list[Refusal] = []
        wanted = 1 if large else int(rng.integers(1, 5))
        with configured(x64, self.peer), place(name, seed)():
            for _ in range(3 * wanted):
                if len(calls) == wanted:
                    break
                names = self.forms if self.forms and rng.random() < SHARE_OF_FORMS else some
                self._extend(d, seed, names[int(rng.integers(len(names)))], calls, refused)
        if place(name, seed) is on_reference:
            with configured(x64, self.peer):
                for r in refused:
                    if takes(calque, r.program.calls[-1], d, r.program):
                        raise r
        p = Program(seed, x64, tuple(d.inputs), tuple(calls))
        self.features.update(features(p))
        return p

    def _part(self, number: int) -> tuple[tuple[str, ...], frozenset[str]]:
        """The functions and dtypes of a thousand programs, which find more of their code prepared
        when these are few; `PARTS` thousand in a row draw from all of them."""
        if not self.forms:
            return self.names, frozenset(KINDS["any"])
        part = number % PARTS
        rng = np.random.default_rng([number // PARTS, 23])
        order = rng.permutation(len(self.names))[part::PARTS]
        rare = rng.permutation(sorted(set(KINDS["any"]) - set(COMMON)))
        two = (rare[part % len(rare)], rare[(part + 3) % len(rare)])
        return tuple(self.names[i] for i in order), frozenset([*COMMON, *map(str, two)])

    def _extend(
        self, d: Draw, seed: int, name: str, calls: list[Call], refused: list[Refusal]
    ) -> None:
        """One more call, if calque takes it; else one more refusal."""
        before = len(d.inputs)
        try:
            args, keywords = draw(d, name, self.signatures.get(name))
        except NoRole:
            self.refused[name] += 1
            forget(d, before)
            return
        c = Call(name, tuple(args), tuple(keywords.items()))
        if d.large and bytes_of(c, given(d, name)) > MOST_BYTES:
            self.refused[name] += 1
            forget(d, before)
            return
        try:
            results = [np.asarray(numpy_of(x)) for x in call(calque, c, given(d, name))]
        except Exception as e:
            self.refused[name] += 1
            program = Program(seed, d.x64, tuple(d.inputs), (*calls, c))
            forget(d, before)
            if isinstance(e, AssertionError):  # a meaning is not what its types say
                raise Refusal(program, e) from e
            if self.peer is not None and takes(self.peer, c, d, program):
                raise Refusal(program, e) from e
            refused.append(Refusal(program, e))
            return
        self.called[name] += 1
        for leaf, x in enumerate(results):
            if x.size <= LARGEST and x.dtype.kind in "biufcV":
                d.arrays[Ref(len(calls), leaf)] = x
        calls.append(c)


def bytes_of(c: Call, inputs: Callable[[Ref], Any]) -> int:
    """What a call's results take, by their types: products of large arrays, `meshgrid` and `outer`
    among others, could take all memory. 0 where only values tell."""
    try:
        avals = calque.eval_shape(lambda: call(calque, c, inputs))
        return sum(x.size * x.dtype.itemsize for x in calque.tree.leaves(avals))
    except Exception:
        return 0


@functools.cache
def catalogue() -> dict[str, Any]:
    return signatures()


def draw(d: Draw, name: str, signature: Any) -> tuple[list[Any], dict[str, Any]]:
    return RECIPES[name](d) if name in RECIPES else arguments(d, name, signature)


def features(p: Program) -> set[str]:
    """What is remarkable about a program's inputs and calls."""
    found = {f"{len(p.calls)} calls", *(["x64"] if p.x64 else [])}
    for x in p.inputs:
        found |= {x.dtype, f"rank {len(x.shape)}", *([x.fill] if x.fill != "plain" else [])}
        found |= {f"size {n}" for n in x.shape if n < 2}
        found |= {"large"} if np.prod(x.shape) > 50_000 else set()
    return found


def given(d: Draw, name: str) -> Callable[[Ref], Any]:
    """The arrays of a program as a function takes them: NumPy's, but for methods and indices."""
    if name.startswith("forms."):
        return lambda ref: calque.numpy.asarray(d.arrays[ref])
    return d.arrays.__getitem__


def forget(d: Draw, inputs: int) -> None:
    """The inputs of a call that was not made."""
    for i in range(inputs, len(d.inputs)):
        del d.arrays[Ref(None, i)]
    del d.inputs[inputs:]


def takes(peer: Any, c: Call, d: Draw, program: Program) -> bool:
    """Whether the peer makes the call."""
    made = {Ref(None, i): value(x) for i, x in enumerate(program.inputs)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(peer, c, lambda ref: peer.numpy.asarray({**d.arrays, **made}[ref]))
        return True
    except Exception:
        return False


class configured:
    """64-bit types on or off in calque and its peer, and warnings off."""

    def __init__(self, x64: bool, peer: Any = None):
        self._peer, self._wide = peer, x64
        self._x64 = config.override("calque_enable_x64", x64)
        self._quiet = warnings.catch_warnings()

    def __enter__(self) -> None:
        self._x64.__enter__()
        if self._peer is not None:
            self._before = self._peer.config.jax_enable_x64
            self._peer.config.update("jax_enable_x64", self._wide)
        self._quiet.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: Any) -> None:
        self._quiet.__exit__(*error)
        if self._peer is not None:
            self._peer.config.update("jax_enable_x64", self._before)
        self._x64.__exit__(*error)
