"""What the functions of distributions look like: their parameters, by the shape parameters of
their families. `signature_of` in `scipy.stats.tables` reads them from here."""

from __future__ import annotations

from typing import Protocol

from calque.core.arrays import Array
from calque.typing import ArrayLike

# ---------------------------------------------------------------- on the real line, of vectors


class OnLine(Protocol):
    def __call__(self, x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...


class WithA(Protocol):
    def __call__(
        self, x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class WithB(Protocol):
    def __call__(
        self, x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class WithC(Protocol):
    def __call__(
        self, x: ArrayLike, c: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class WithDf(Protocol):
    def __call__(
        self, x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class WithBeta(Protocol):
    def __call__(
        self, x: ArrayLike, beta: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class WithKappa(Protocol):
    def __call__(
        self, x: ArrayLike, kappa: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class WithAB(Protocol):
    def __call__(
        self, x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
    ) -> Array: ...


class OfDirichlet(Protocol):
    def __call__(self, x: ArrayLike, alpha: ArrayLike) -> Array: ...


class OfNormal(Protocol):
    def __call__(self, x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array: ...


# ---------------------------------------------------------------- on whole numbers


class WholeWithP(Protocol):
    def __call__(self, k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


class WholeWithMu(Protocol):
    def __call__(self, k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array: ...


class WholeWithNP(Protocol):
    def __call__(self, k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...


class WholeWithNAB(Protocol):
    def __call__(
        self, k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0
    ) -> Array: ...


class OfRate(Protocol):
    def __call__(self, mu: ArrayLike, loc: ArrayLike = 0) -> Array: ...


class OfMultinomial(Protocol):
    def __call__(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
