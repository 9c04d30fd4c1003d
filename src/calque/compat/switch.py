"""The switch: from `as_jax()` on, `import jax` gives calque's own modules.

`jax.X` and `calque.X` are one module object, so that classes, registries and pickles agree. A
finder ahead of all others answers for the names `jax` and `jaxlib`; child processes inherit the
switch through the environment."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, Final

from calque.compat import moved, versions
from calque.machine import foreign_parts
from calque.machine.lazy import LazyModule

# Modules of JAX whose names are all in one module here.
_LAX: Final = (
    "control_flow", "convolution", "lax", "other", "parallel", "slicing", "special",
    "windowed_reductions",
)  # fmt: skip
_NUMPY: Final = (
    "array_creation", "einsum", "indexing", "lax_numpy", "reductions", "setops", "sorting",
    "tensor_contractions", "ufunc_api", "ufuncs", "vectorize", "window_functions",
)  # fmt: skip
_MLIR: Final = ("dialects", "ir", "passmanager")  # of the real jaxlib
# Modules that are not at the same place in both packages.
_ELSEWHERE: Final = {
    "jax": "calque",
    "jax._src": "calque.compat.private",
    "jax._src.clusters": "calque.compat.private.helpers.clusters",
    "jax._src.frozen_dict": "calque.compat.private.helpers.frozen_dict",
    "jax._src.interpreters": "calque.interpreters",
    "jax._src.public_test_util": "calque.compat.private.testing.public_test_util",
    "jax._src.test_util": "calque.compat.private.testing.test_util",
    **{f"jax._src.lax.{part}": "calque.lax" for part in _LAX},
    **{f"jax._src.numpy.{part}": "calque.numpy" for part in _NUMPY},
    "jax._src.numpy.fft": "calque.numpy.fft",
    "jax._src.numpy.linalg": "calque.numpy.linalg",
    **{
        f"jax.experimental.sparse.{part}": f"calque.experimental.sparse.{place}"
        for part, place in (
            ("ad", "differentiation"),
            ("api", "making"),
            ("coo", "matrices"),
            ("csr", "matrices"),
            ("random", "making"),
            ("transform", "environment"),
            ("util", "base"),
        )
    },
    **{f"jax.extend.mlir.{part}": f"jaxlib.mlir.{part}" for part in _MLIR},
    **{f"jax._src.lib.mlir.{part}": f"jaxlib.mlir.{part}" for part in _MLIR if part != "dialects"},
    "jax.version": "calque.compat.version",
    "jax.lib": "calque.compat.lib",
    "jaxlib": "calque.compat.jaxlib",
}
# What the engine of XLA imports of jaxlib, and calque answers for where it does not.
_REAL_FIRST: Final = ("jaxlib._jax", "jaxlib.xla_client")
_mlir = LazyModule("calque.extend.mlir")
VARIABLE: Final = "CALQUE_AS_JAX"  # set in the environment of a process that serves jax


def place_of(name: str) -> str:
    """The module of calque that answers for a module of jax.

    >>> from calque.compat.switch import place_of
    >>> place_of("jax.numpy.linalg")
    'calque.numpy.linalg'"""
    start = name
    while start not in _ELSEWHERE:
        start = start.rpartition(".")[0]
    return _ELSEWHERE[start] + name[len(start) :]


class _Alias:
    """Loads a module of jax: imports calque's and gives that very object."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.place)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported; the import system has put another spec in its place."""
        module.__spec__ = self.spec


class ModuleFinder:
    """Finds `jax`, `jaxlib` and all below them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in ("jax", "jaxlib"):
            return None
        place = place_of(name)
        real = _real_part(name)
        if real is not None and (name in _REAL_FIRST or not exists(place)):
            return real
        if not exists(place):
            raise ModuleNotFoundError(
                f"No module named {name!r}: calque, which serves jax {versions.JAX} here, has no"
                f" {place}",
                name=name,
            )
        return importlib.machinery.ModuleSpec(name, _Alias(place), is_package=True)  # type: ignore[arg-type]

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        """The hook of `importlib.metadata`."""
        found = importlib.import_module("calque.compat.distributions")
        return found.distributions(context or found.DistributionFinder.Context())

    def invalidate_caches(self) -> None:
        """Nothing is remembered."""


def _real_part(name: str) -> importlib.machinery.ModuleSpec | None:
    """A part of the real jaxlib, where the engine of XLA has asked for those; MLIR is asked for by
    importing it."""
    package, _, rest = name.partition(".")
    if f"{name}.".startswith("jaxlib.mlir."):
        _mlir.open_jaxlib()
    folder = foreign_parts.folder_of(package)
    if folder is None or not rest:
        return None
    parent = os.path.join(folder, *rest.split(".")[:-1])
    return importlib.machinery.PathFinder.find_spec(name, [parent])


def exists(place: str) -> bool:
    """Whether there is such a module, looked up without importing more than its packages."""
    if place in sys.modules:
        return True
    try:
        return importlib.util.find_spec(place) is not None
    except ModuleNotFoundError:
        return False


def serving() -> bool:
    """Whether `import jax` gives calque in this process."""
    return any(isinstance(f, ModuleFinder) for f in sys.meta_path)


def as_jax() -> ModuleType:
    """Serves `import jax` by calque from here on, in this process and in those it starts.

    Call it before anything imports jax: as the first line of a program or a notebook. The modules
    `jax`, `jax.numpy`, ... are calque's own, and questions about versions are answered by the
    version of JAX whose interface this is. Variables of the environment such as JAX_ENABLE_X64 are
    read, where there is none of calque's for the same flag.

    Returns:
        The package.

    Raises:
        RuntimeError: The real jax is imported already.

    Differs from JAX:
        It is calque's own.

    >>> jax = calque.as_jax()  # doctest: +SKIP
    >>> import jax.numpy  # doctest: +SKIP"""
    package = importlib.import_module("calque")
    if serving():
        return package
    loaded = sorted(
        name for name in ("jax", "jaxlib") if sys.modules.get(name) not in (None, package)
    )
    if loaded:
        raise RuntimeError(
            f"as_jax: {' and '.join(loaded)} (the real one) is imported already, so its arrays and"
            " calque's would meet. Call calque.as_jax() before anything imports jax: as the first"
            " line of the program, or start it with `python -m calque script.py`."
        )
    sys.meta_path.insert(0, ModuleFinder())  # type: ignore[arg-type]
    package.__version__ = versions.JAX  # type: ignore[attr-defined]
    package.__version_info__ = versions.as_numbers(versions.JAX)  # type: ignore[attr-defined]
    sys.modules["jax"] = package
    for name in ("version", "lib", "_src"):
        setattr(package, name, importlib.import_module(f"jax.{name}"))
    moved.offer(importlib.import_module("calque.core"))
    package.config.update_from_environment()
    _hand_on()
    return package


def _hand_on() -> None:
    """Processes started from here find packages `jax` and `jaxlib` of ours first."""
    served = os.path.join(os.path.dirname(os.path.abspath(__file__)), "served")
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if served not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([served, *paths])
    os.environ[VARIABLE] = "1"
