"""Functions that call a handler when an exception leaves them."""

import dis
import sys
from collections.abc import Iterator

import pytest

from calque.machine import exits

LEFT: list[tuple[str, BaseException | None]] = []


def handler() -> None:
    LEFT.append((sys._getframe(1).f_code.co_name, sys.exc_info()[1]))


def plain(x: int) -> float:
    return 1 / x


def catching(x: int) -> object:
    for _ in range(2):
        try:
            try:
                return 1 / x
            except ZeroDivisionError:
                raise KeyError(x) from None
        finally:
            x = [i for i in range(3)][2]
    return None


def closing(x: int, *, file: str = __file__) -> float:
    with open(file, encoding="utf-8") as text:
        text.readline()
        return 1 / x


def generating(x: int) -> Iterator[float]:
    yield 1 / x


FUNCTIONS = (plain, catching, closing)


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    LEFT.clear()


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_exceptions_call_the_handler_and_go_on(f, monkeypatch) -> None:
    monkeypatch.setattr(f, "__code__", exits.with_exit(f.__code__, handler))
    assert f(4) == 0.25 and not LEFT
    with pytest.raises((ZeroDivisionError, KeyError)) as e:
        f(0)
    assert [(f.__name__, e.value)] == LEFT
    assert [t.name for t in e.traceback][1:] == [f.__name__]
    assert sys.exc_info() == (None, None, None)


def test_what_runs_is_what_ran(monkeypatch) -> None:
    """The instructions of before are the first ones, and nothing leads from them to the rest but
    an exception."""
    for f in FUNCTIONS:
        code = exits.with_exit(f.__code__, handler)
        assert code.co_code.startswith(f.__code__.co_code)
        own, new = list(dis.get_instructions(f.__code__)), list(dis.get_instructions(code))
        assert [(i.opcode, i.arg) for i in own] == [(i.opcode, i.arg) for i in new][: len(own)]
        assert exits.handler_of(code) is handler and exits.handler_of(f.__code__) is None
        assert exits.with_exit(code, handler) is code
        assert max(line or 0 for *_, line in code.co_lines()) == max(
            line or 0 for *_, line in f.__code__.co_lines()
        )


def test_exceptions_caught_inside_do_not_call_it(monkeypatch) -> None:
    def f() -> int:
        try:
            raise KeyError
        except KeyError:
            return 3

    monkeypatch.setattr(f, "__code__", exits.with_exit(f.__code__, handler))
    assert f() == 3 and not LEFT


def test_a_handler_that_fails(monkeypatch) -> None:
    def failing() -> None:
        raise RuntimeError("the handler")

    def f() -> None:
        raise KeyError(1)

    f.__code__ = exits.with_exit(f.__code__, failing)
    with pytest.raises(RuntimeError, match="the handler") as e:
        f()
    assert isinstance(e.value.__context__, KeyError) and sys.exc_info() == (None, None, None)


def test_traced_and_deep_functions(monkeypatch) -> None:
    monkeypatch.setattr(plain, "__code__", exits.with_exit(plain.__code__, handler))
    before = sys.gettrace()
    sys.settrace(lambda *_: lambda *_: None)
    try:
        with pytest.raises(ZeroDivisionError):
            plain(0)
    finally:
        sys.settrace(before)

    def deep(n: int) -> int:
        return deep(n + 1)

    deep.__code__ = exits.with_exit(deep.__code__, handler)
    with pytest.raises(RecursionError):
        deep(0)


def test_many_constants() -> None:
    found: dict[str, object] = {}
    exec(
        f"def f(x):\n    y = ({','.join(f'{i}.5+x' for i in range(700))})\n    return 1 / x", found
    )
    f = found["f"]
    f.__code__ = exits.with_exit(f.__code__, handler)
    assert len(f.__code__.co_consts) > 700 and f(2) == 0.5
    with pytest.raises(ZeroDivisionError):
        f(0)
    assert [name for name, _ in LEFT] == ["f"]


def test_generators_stay_as_they_are() -> None:
    assert exits.with_exit(generating.__code__, handler) is generating.__code__


def test_an_interpreter_of_another_form_leaves_code_as_it_is(monkeypatch) -> None:
    monkeypatch.setattr(exits, "_tail", lambda: None)
    assert exits.with_exit(plain.__code__, handler) is plain.__code__
