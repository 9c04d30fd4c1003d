"""What editors read in the source is what `help` shows: signatures and help of every function."""

import ast
import importlib
import inspect
import pathlib
import types

import pytest

import calque.numpy as jnp
from calque.core.lazy import imports_of, source_of

PLACES = imports_of(source_of("calque.numpy", jnp.__file__))
# objects without parameters, and functions that are NumPy's own
OBJECTS = {"c_", "index_exp", "mgrid", "ogrid", "r_", "s_"}
OBJECTS |= {"get_printoptions", "printoptions", "set_printoptions"}
FUNCTIONS = sorted(n for n in PLACES if n not in OBJECTS and not n.startswith("_"))


def written(module_name: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """The last definition of a name in the source of a module, found through its aliases."""
    module = importlib.import_module(module_name)
    found = None
    for node in ast.parse(pathlib.Path(module.__file__).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            found = node
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            if name in [t.id for t in node.targets if isinstance(t, ast.Name)]:
                return written(module_name, node.value.id)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_editors_read_what_help_shows(name: str) -> None:
    f = getattr(jnp, name)
    if isinstance(f, types.ModuleType):
        return
    node = written(*PLACES[name])
    assert node is not None, "an assignment, of which editors show neither arguments nor help"
    assert ast.get_docstring(node) == inspect.cleandoc(f.__doc__)
    if isinstance(node, ast.FunctionDef):
        arguments = node.args
        names = [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
        shown = inspect.signature(f).parameters.values()
        plain = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        assert names == [p.name for p in shown if p.kind not in plain]
