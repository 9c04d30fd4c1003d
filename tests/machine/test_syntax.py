"""Syntax trees of source texts, for many threads at once."""

import ast
import threading

import pytest

from calque.machine.syntax import syntax_tree

TEXT = "def f(x):\n    return [x + k for k in range(3)]\n" * 20


def test_a_tree_is_that_of_the_text():
    assert ast.dump(syntax_tree(TEXT)) == ast.dump(ast.parse(TEXT))


def test_many_threads_at_once():
    want, found = ast.dump(ast.parse(TEXT)), []

    def work():
        found.extend(ast.dump(syntax_tree(TEXT)) == want for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 40


def test_an_interpreter_that_stumbles_is_asked_again(monkeypatch):
    calls, parse = [], ast.parse

    def stumbling(text):
        calls.append(text)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(text)

    monkeypatch.setattr(ast, "parse", stumbling)
    assert isinstance(syntax_tree("x = 1"), ast.Module) and len(calls) == 3
    monkeypatch.setattr(ast, "parse", lambda text: calls.append(text) or 1 // 0)
    with pytest.raises(ZeroDivisionError):
        syntax_tree("x = 1")


def test_what_is_no_python():
    with pytest.raises(SyntaxError):
        syntax_tree("def f(:")
