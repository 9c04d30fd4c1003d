"""The declaration of what arrays offer agrees with what is attached to them."""

import ast
import inspect
import pathlib

import pytest

import calque.numpy as jnp
from calque.core import arrays
from calque.numpy.indexing.at import Updates

STUB = pathlib.Path(arrays.__file__).with_name("array_interface.pyi")
CLASSES = {c.name: c for c in ast.parse(STUB.read_text()).body if isinstance(c, ast.ClassDef)}
ARRAY = type(jnp.ones(2))

# given by the type itself or by Python, with other parameter names
OF_PYTHON = {"__array__", "__getitem__", "__dlpack_device__", "__copy__", "item"}


def declared(name: str) -> dict[str, ast.FunctionDef]:
    return {f.name: f for f in CLASSES[name].body if isinstance(f, ast.FunctionDef)}


def is_property(f: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in f.decorator_list)


def shape_of(f: ast.FunctionDef) -> list[tuple[str, str, bool]]:
    """(name, kind, has a default) of each parameter after `self`."""
    a = f.args
    positional = [*a.posonlyargs, *a.args]
    with_default = len(positional) - len(a.defaults)
    out = [(p.arg, "positional", i >= with_default) for i, p in enumerate(positional)][1:]
    out += [(a.vararg.arg, "several", False)] if a.vararg else []
    out += [(p.arg, "keyword", d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    return out + ([(a.kwarg.arg, "options", False)] if a.kwarg else [])


def shape_of_function(f: object) -> list[tuple[str, str, bool]]:
    kinds = {
        inspect.Parameter.VAR_POSITIONAL: "several",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_KEYWORD: "options",
    }
    parameters = list(inspect.signature(f).parameters.values())[1:]  # type: ignore[arg-type]
    return [(p.name, kinds.get(p.kind, "positional"), p.default is not p.empty) for p in parameters]


def is_operator(f: ast.FunctionDef) -> bool:
    return [p.arg for p in f.args.posonlyargs] == ["self", "other"]


@pytest.mark.parametrize("name", sorted(declared("ArrayInterface")))
def test_arrays_have_what_is_declared(name: str) -> None:
    f, attribute = declared("ArrayInterface")[name], getattr(ARRAY, name)
    if is_property(f):
        assert not inspect.isfunction(attribute)
    elif inspect.isfunction(attribute) and name not in OF_PYTHON and not is_operator(f):
        assert shape_of(f) == shape_of_function(attribute)
    else:
        assert callable(attribute)


@pytest.mark.parametrize("name", sorted(declared("Updates")))
def test_updates_have_what_is_declared(name: str) -> None:
    assert shape_of(declared("Updates")[name]) == shape_of_function(getattr(Updates, name))


def test_everything_that_arrays_have_is_declared() -> None:
    own = {n for n in dir(ARRAY) if n not in dir(object) and not n.startswith("_")}
    assert own <= declared("ArrayInterface").keys()
    updates = {n for n in dir(Updates) if not n.startswith("_")} - {"array", "index"}
    assert updates == declared("Updates").keys()


@pytest.mark.parametrize("cls", ["ArrayInterface", "Updates"])
def test_editors_show_what_each_member_is(cls: str) -> None:
    without = [n for n, f in declared(cls).items() if n[0] != "_" and not ast.get_docstring(f)]
    assert not without
