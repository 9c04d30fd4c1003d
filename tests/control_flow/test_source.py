"""The syntax tree of a function, found in its file."""

import ast
import functools
import importlib.util
import os

import pytest

from calque.control_flow.source import cannot, refusal, tree_of
from calque.errors import ControlFlowError


def plain(x):
    return x


@functools.lru_cache
@functools.wraps(plain)
def decorated(x, *, y=1):
    """Doc."""
    return x + y


class Own:
    def method(self):
        return self.__private

    def __hidden(self):
        return 1


first, second = (lambda x: x + 1), (lambda x: x + 2)
nested = lambda x: lambda y: y * x  # noqa: E731


def test_definitions_are_found():
    node = tree_of(plain)
    assert isinstance(node, ast.FunctionDef) and node.name == "plain"
    assert node.lineno == plain.__code__.co_firstlineno
    inner = tree_of(decorated.__wrapped__)
    assert inner.name == "decorated" and len(inner.decorator_list) == 2
    assert tree_of(Own.method).name == "method"
    assert tree_of(Own._Own__hidden).name == "__hidden"


def test_lambdas_of_one_line_are_told_apart():
    assert [ast.unparse(tree_of(f)) for f in (first, second)] == [
        "lambda x: x + 1", "lambda x: x + 2",
    ]  # fmt: skip
    assert ast.unparse(tree_of(nested(3))) == "lambda y: y * x"
    assert ast.unparse(tree_of(nested)) == "lambda x: lambda y: y * x"


def test_trees_are_fresh():
    node = tree_of(plain)
    node.body.clear()
    assert len(tree_of(plain).body) == 1


def made(tmp_path, text):
    path = tmp_path / "module.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path


@pytest.mark.parametrize(
    "edited",
    [
        "\n\ndef f(x):\n    return x\n",
        "def g(x):\n    return x\n",
        "def f(x, y):\n    return x\n",
        "def f(x): return x\n",
        "def f(x:\n",
    ],
)
def test_files_that_were_edited_are_noticed(tmp_path, edited):
    module, path = made(tmp_path, "def f(x):\n    return x\n")
    assert tree_of(module.f).name == "f"
    path.write_text(edited)
    os.utime(path, (1, 1))
    with pytest.raises(ControlFlowError, match=r"control flow of f .*module.py:1\) cannot be conv"):
        tree_of(module.f)


def test_what_has_no_tree():
    def generator():
        yield 1

    async def coroutine():
        pass

    for f, words in (
        (generator, "generator or a coroutine"),
        (coroutine, "generator or a coroutine"),
        (eval("lambda x: x"), r"its source \(<string>\) is not available"),
    ):
        assert refusal(f.__code__) is not None
        with pytest.raises(ControlFlowError, match=words):
            tree_of(f)
    assert refusal(plain.__code__) is None
    assert "of plain (" in str(cannot(plain, "why")) and str(cannot(plain, "why")).endswith("why.")
