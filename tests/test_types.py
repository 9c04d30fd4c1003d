"""calque says that it is typed, and says its types."""

import ast
import pathlib

import calque

ROOT = pathlib.Path(calque.__file__).parent


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").exists()
    assert "py.typed" in (ROOT.parent.parent / "pyproject.toml").read_text()


def _untyped(function: ast.FunctionDef) -> list[str]:
    a = function.args
    parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
    missing = [p.arg for p in parameters if p is not None and p.annotation is None]
    return missing + ["return"] * (function.returns is None)


def test_every_function_of_numpy_says_its_types() -> None:
    files = sorted((ROOT / "numpy").rglob("*.py"))
    assert files
    bare = [
        (file.name, f.name, names)
        for file in files
        for f in ast.walk(ast.parse(file.read_text()))
        if isinstance(f, ast.FunctionDef)
        and not f.name.startswith("_")
        and (names := [n for n in _untyped(f) if n not in ("self", "cls")])
    ]
    assert not bare
