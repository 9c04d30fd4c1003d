"""Help: the docstring of every public function and method names every parameter, says what is
returned and has an example, which runs.

What still lacks something stands in `without_help.txt`, which may only become shorter. After work
on docstrings, `python -m tests.test_help` prints what is left and writes that list anew;
`python -m tests.test_help calque.numpy.sum calque.lax` checks functions or modules and runs their
examples.
"""

from __future__ import annotations

import collections
import contextlib
import doctest
import enum
import importlib
import inspect
import io
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import pytest

import calque

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LEFT = pathlib.Path(__file__).with_name("without_help.txt")

# module -> how many tests share its names
MODULES = {
    "calque": 1,
    "calque.ad_checkpoint": 1,
    "calque.api_util": 1,
    "calque.custom_batching": 1,
    "calque.custom_derivatives": 1,
    "calque.debug": 1,
    "calque.distributed": 1,
    "calque.dlpack": 1,
    "calque.dtypes": 1,
    "calque.errors": 1,
    "calque.example_libraries.optimizers": 1,
    "calque.example_libraries.stax": 1,
    "calque.experimental.buffer_callback": 1,
    "calque.experimental.checkify": 1,
    "calque.experimental.compute_on": 1,
    "calque.experimental.control_deps": 1,
    "calque.experimental.hijax": 1,
    "calque.experimental.jet": 1,
    "calque.experimental.layout": 1,
    "calque.experimental.mesh_utils": 1,
    "calque.experimental.multihost_utils": 1,
    "calque.experimental.ode": 1,
    "calque.experimental.pallas.ops.tpu.splash_attention": 1,
    "calque.experimental.rnn": 1,
    "calque.experimental.scheduling_groups": 1,
    "calque.experimental.serialize_executable": 1,
    "calque.experimental.shard_alike": 1,
    "calque.experimental.sparse": 1,
    "calque.experimental.topologies": 1,
    "calque.experimental.xla_metadata": 1,
    "calque.export": 1,
    "calque.extend.core": 1,
    "calque.extend.linear_util": 1,
    "calque.ffi": 1,
    "calque.flatten_util": 1,
    "calque.image": 1,
    "calque.lax": 4,
    "calque.lax.linalg": 1,
    "calque.monitoring": 1,
    "calque.nn": 1,
    "calque.nn.initializers": 1,
    "calque.numpy": 8,
    "calque.numpy.fft": 1,
    "calque.numpy.linalg": 1,
    "calque.profiler": 1,
    "calque.random": 1,
    "calque.ref": 1,
    "calque.scipy.cluster.vq": 1,
    "calque.scipy.fft": 1,
    "calque.scipy.integrate": 1,
    "calque.scipy.interpolate": 1,
    "calque.scipy.linalg": 1,
    "calque.scipy.ndimage": 1,
    "calque.scipy.optimize": 1,
    "calque.scipy.signal": 1,
    "calque.scipy.sparse.linalg": 1,
    "calque.scipy.spatial.transform": 1,
    "calque.scipy.special": 1,
    "calque.scipy.stats": 1,
    "calque.sharding": 1,
    "calque.stages": 1,
    "calque.test_util": 1,
    "calque.tree": 1,
    "calque.tree_util": 1,
}
# packages of modules whose functions are public: `calque.scipy.stats.norm.pdf`
OF_MODULES = {"calque.scipy.stats"}


# ---------------------------------------------------------------- what is public


def public(module_name: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of a module by their full names, and the methods of its classes."""
    module = importlib.import_module(module_name)
    listed = getattr(module, "__all__", None)
    names = listed or [n for n in dir(module) if not n.startswith("_")]
    for name in sorted(names):
        value = getattr(module, name)
        if not listed and not is_own_of(module_name, value):
            continue
        if inspect.ismodule(value):
            if module_name in OF_MODULES:
                functions = vars(value).items()
                yield from ((f"{value.__name__}.{n}", f) for n, f in functions if callable(f))
        elif callable(value) and is_ours(value):
            full = f"{module_name}.{name}"
            yield full, value
            if isinstance(value, type) and not issubclass(value, BaseException):
                yield from methods(full, value)


def is_own_of(module_name: str, value: Any) -> bool:
    """Whether a module that lists no names made this one, rather than imported it."""
    return inspect.ismodule(value) or str(getattr(value, "__module__", "")).startswith(module_name)


def is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("calque")


def methods(full: str, cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(cls).items()):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if not name.startswith("_") and inspect.isfunction(value) and not is_lent(value):
            yield f"{full}.{name}", value


def is_lent(f: Any) -> bool:
    """Whether a method is a public function of a module, which explains itself there."""
    return f.__qualname__ == f.__name__ and not f.__name__.startswith("_")


def is_method(value: Any) -> bool:
    owner, _, _ = getattr(value, "__qualname__", "").rpartition(".")
    return bool(owner) and not owner.endswith("<locals>") and inspect.isfunction(value)


# ---------------------------------------------------------------- what a docstring says

_SECTION = re.compile(r"^(\w[\w ]*):$")
_NAMED = re.compile(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: |$)", re.MULTILINE)


def sections(doc: str) -> dict[str, str]:
    """The text under each heading (`Args:`); what stands before the first is under ''."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    heading = ""
    for line in inspect.cleandoc(doc).splitlines():
        match = _SECTION.match(line)
        heading = match.group(1) if match else heading
        if not match:
            found[heading].append(line)
    return {k: "\n".join(v) for k, v in found.items()}


def parameters(f: Any) -> list[str]:
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return []
    return [n for n in names if n not in ("self", "cls") and not n.startswith("_")]


def lacks(f: Any) -> list[str]:
    """What the docstring of a function or class does not say."""
    doc = getattr(f, "__doc__", None)
    if not doc or not doc.strip():
        return ["a docstring"]
    if isinstance(f, type) and (
        issubclass(f, (BaseException, enum.Enum)) or getattr(f, "_is_protocol", False)
    ):
        return []
    parts = sections(doc)
    told = {
        name.strip(" *")
        for names in _NAMED.findall(parts.get("Args", ""))
        for name in names.split(",")
    }
    out = [f"the parameter {p}" for p in parameters(f) if p not in told]
    if not {"Returns", "Yields"} & set(parts) and returns_something(f):
        out.append("what is returned")
    if ">>>" not in doc and not is_method(f):
        out.append("an example")
    return out


def returns_something(f: Any) -> bool:
    if isinstance(f, type):
        return False
    try:
        said = inspect.signature(f).return_annotation
    except (TypeError, ValueError):
        return True
    return said not in (None, "None", "NoReturn", NoReturn)


def left() -> set[str]:
    return set(LEFT.read_text().split())


# ---------------------------------------------------------------- the examples


def names_in_examples(full: str) -> dict[str, Any]:
    """What the examples of something with this full name may use without an import."""
    names = {"calque": calque, "jax": calque, "jnp": calque.numpy, "lax": calque.lax, "np": np}
    parts = full.split(".")
    for k in range(2, len(parts)):  # a package by its own name: `sparse.eye(2)`
        if ".".join(parts[:k]) in sys.modules:
            names.setdefault(parts[k - 1], sys.modules[".".join(parts[:k])])
    return names


def run_example(full: str, doc: str) -> str:
    """The report of the examples that print something else than they say."""
    names = names_in_examples(full)
    test = doctest.DocTestParser().get_doctest(doc, names, full, None, None)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    with contextlib.redirect_stdout(io.StringIO()):
        runner.run(test, out=report.write)
    return report.getvalue()


# ---------------------------------------------------------------- the tests

SHARES = [(m, part, parts) for m, parts in MODULES.items() for part in range(parts)]


@pytest.mark.parametrize(("module", "part", "parts"), SHARES)
def test_docstrings_say_what_a_caller_needs(module: str, part: int, parts: int) -> None:
    known = left()
    wrong = {}
    for full, f in list(public(module))[part::parts]:
        missing = lacks(f)
        if bool(missing) != (full in known):
            wrong[full] = missing or "nothing: strike it out of without_help.txt"
    assert not wrong


@pytest.mark.parametrize(("module", "part", "parts"), SHARES)
def test_examples_print_what_they_say(module: str, part: int, parts: int) -> None:
    reports = ""
    for full, f in list(public(module))[part::parts]:
        doc = getattr(f, "__doc__", None)
        if doc and ">>>" in doc:
            reports += run_example(full, doc)
    assert not reports, reports


def test_what_is_left_exists() -> None:
    names = {full for module in MODULES for full, _ in public(module)}
    assert left() <= names


def test_a_docstring_that_lacks_something_is_found() -> None:
    def f(x: int, y: int) -> int:
        """Adds.

        Args:
            x: one number.
        """
        return x + y

    assert lacks(f) == ["the parameter y", "what is returned", "an example"]
    assert "Got:" in run_example("f", ">>> 1 + 1\n3\n")


@pytest.mark.parametrize("module", ["calque.numpy", "calque.scipy.special"])
def test_what_is_said_to_give_complex_numbers_takes_them(module: str) -> None:
    z, refused = np.complex64(0.5 + 0.1j), []
    for full, f in public(module):
        said = sections(f.__doc__ or "").get("Returns", "")
        if isinstance(f, type) or full.count(".") > module.count(".") + 1:
            continue
        if "or complex numbers" in said:
            needed = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty]
            try:
                f(*[z] * len(needed))
            except (TypeError, ValueError) as error:
                refused.append((full, str(error)))
    assert refused == []


# ---------------------------------------------------------------- at work


def check(names: list[str]) -> None:
    """Prints what the docstrings of modules and functions lack, and the examples that fail."""
    for module in MODULES:
        for full, f in public(module):
            if module in names or full in names:
                for missing in lacks(f):
                    print(f"{full} lacks {missing}")
                print(run_example(full, f.__doc__ or ""), end="")


def write() -> None:
    lines = []
    for module in MODULES:
        found = list(public(module))
        without = [full for full, f in found if lacks(f)]
        print(f"{module:40s} {len(without):4d} of {len(found):4d} lack something")
        lines += without
    LEFT.write_text("".join(f"{n}\n" for n in sorted(set(lines))))


if __name__ == "__main__":
    check(sys.argv[1:]) if sys.argv[1:] else write()
