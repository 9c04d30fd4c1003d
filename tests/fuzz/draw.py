"""What a recipe draws from: random numbers, the arrays of the program so far, new inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.programs import Ref
from tests.fuzz.values import KINDS, TINY, TINY_KINDS, WIDE, Input, value

SIZES = (1, 2, 3, 5, 7)
RARE_SIZES = (0, 4, 8, 16, 17, 31, 33)
LARGE = ((70_001,), (300, 257), (3, 130, 211), (262_144,))
CODES = {
    "any": "biufcV",
    "real": "iufV",
    "number": "iufcV",
    "float": "fV",
    "inexact": "fcV",
    "int": "iu",
    "signed": "i",
    "unsigned": "u",
    "integral": "iub",
    "bool": "b",
    "complex": "c",
    "single": "f",
}


class Draw:
    """The state of a program that is being drawn."""

    def __init__(
        self,
        rng: np.random.Generator,
        x64: bool,
        large: bool,
        dtypes: frozenset[str] = frozenset(KINDS["any"]),
    ):
        self.rng, self.x64, self.large, self.dtypes = rng, x64, large, dtypes
        self.inputs: list[Input] = []
        self.arrays: dict[Ref, np.ndarray] = {}

    # ------------------------------------------------------------ choices

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def number(self, low: float = -2.0, high: float = 2.0) -> float:
        return round(float(self.rng.uniform(low, high)), 3)

    def size(self) -> int:
        return int(self.choose(RARE_SIZES if self.chance(0.15) else SIZES))

    def shape(self, low: int = 0, high: int = 3) -> tuple[int, ...]:
        fits = [s for s in LARGE if low <= len(s) <= high]
        if self.large and fits and self.chance(0.6):
            return tuple(self.choose(fits))
        return tuple(self.size() for _ in range(self.whole(low, high)))

    def dtype(self, kind: str = "any") -> str:
        if kind in TINY_KINDS and self.chance(0.03):
            return str(self.choose(TINY))
        some = [name for name in KINDS[kind] if name in self.dtypes]
        name = str(self.choose(some or KINDS[kind]))
        return WIDE.get(name, name) if self.x64 and self.chance(0.6) else name

    # ------------------------------------------------------------ arrays

    def new(
        self,
        kind: str = "any",
        shape: tuple[int, ...] | None = None,
        fill: str = "plain",
        dtype: str | None = None,
    ) -> Ref:
        """A new input."""
        shape = self.shape() if shape is None else shape
        if fill == "plain" and self.chance(0.08):
            fill = "edges"
        x = Input(dtype or self.dtype(kind), shape, fill, self.whole(0, 9999))
        self.inputs.append(x)
        ref = Ref(None, len(self.inputs) - 1)
        self.arrays[ref] = value(x)
        return ref

    def array(
        self,
        kind: str = "any",
        low: int = 0,
        high: int = 3,
        fill: str = "plain",
        shape: tuple[int, ...] | None = None,
    ) -> Ref:
        """An array of the program that fits, or a new input."""
        if fill == "plain" and self.chance(0.6):
            fits = [
                r
                for r, a in self.arrays.items()
                if self.code(r) in CODES[kind]
                and low <= a.ndim <= high
                and (shape is None or a.shape == shape)
            ]
            if fits:
                return fits[-1 - int(self.rng.integers(min(len(fits), 3)))]
        return self.new(kind, self.shape(low, high) if shape is None else shape, fill)

    def like(self, ref: Ref, same_dtype: bool = True, fill: str = "plain") -> Ref:
        """An array of the same shape, and dtype if asked."""
        a = self.arrays[ref]
        if same_dtype:
            fits = [
                r
                for r, b in self.arrays.items()
                if (b.shape, b.dtype) == (a.shape, a.dtype) and fill == "plain"
            ]
            if self.chance(0.4) and fits:
                return fits[int(self.rng.integers(len(fits)))]
            return self.new(shape=a.shape, dtype=str(a.dtype), fill=fill)
        return self.array(shape=a.shape)

    def broadcastable(self, ref: Ref, kind: str = "any", fill: str = "plain") -> Any:
        """What broadcasts with an array: an array of some of its axes, or a Python number."""
        if self.chance(0.15) and kind in ("any", "real", "number"):
            return self.choose((2, -1, 3, 0.5, -1.5, True))
        shape = self.arrays[ref].shape
        cut = self.whole(0, len(shape)) if self.chance(0.3) else 0
        new = tuple(1 if self.chance(0.2) else n for n in shape[cut:])
        return self.array(kind, shape=new, fill=fill)

    # ------------------------------------------------------------ what is known of an array

    def of(self, x: Any) -> np.ndarray:
        """The array behind an argument."""
        if isinstance(x, Ref):
            return self.arrays[x]
        if isinstance(x, (list, tuple)) and any(isinstance(a, Ref) for a in x):
            return self.of(x[0])
        return np.asarray(x)

    def code(self, ref: Ref) -> str:
        return self.arrays[ref].dtype.kind

    def axis(self, x: Any) -> int:
        n = max(self.of(x).ndim, 1)
        return self.whole(-n, n - 1)

    def axes(self, x: Any, low: int = 0) -> tuple[int, ...]:
        """Some axes, each once, now and then counted from the end."""
        n = self.of(x).ndim
        picked = self.rng.permutation(n)[: self.whole(min(low, n), n)]
        return tuple(int(d) - n if self.chance(0.3) else int(d) for d in picked)

    def axis_or_axes(self, x: Any) -> Any:
        kind = self.whole(0, 3)
        return None if kind == 0 else self.axes(x) if kind == 1 else self.axis(x)

    def factored(self, count: int) -> tuple[int, ...]:
        """A shape of so many elements."""
        out: list[int] = []
        rest = count
        for _ in range(self.whole(0, 2)):
            divisors = [d for d in range(1, min(rest, 64) + 1) if rest % d == 0] or [1]
            out.append(int(self.choose(divisors)))
            rest //= max(out[-1], 1)
        return (*out, rest) if count else (0, *out)
