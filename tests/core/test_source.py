"""Places in the user's code."""

import _thread
import sys
import types

import calque
from calque import lax
from calque.core import source
from calque.core.source import Source


def line_of(frame):
    return frame.f_lineno


def test_the_line_that_is_running():
    place, line = source.here(), line_of(sys._getframe())
    assert place.file == __file__ and place.line == line
    assert place.function == "test_the_line_that_is_running"
    assert str(place) == f"{__file__}:{line} (test_the_line_that_is_running)"


def test_each_line_of_a_function_is_told_apart():
    places = [
        source.here(),
        source.here(),
    ]
    assert places[1].line == places[0].line + 1


def test_the_column_and_the_functions_around():
    def inner():
        return [source.here()]

    (place,) = inner()
    assert place.column == 16
    where = "test_the_column_and_the_functions_around.<locals>.inner"
    assert place.exact == f"{__file__}:{place.line}:16 ({where})"


def test_another_place_can_be_named():
    outer = source.here()
    with source.at(outer) as place:
        assert source.here() is outer
        place.source = None
        assert source.here() != outer
    assert source.here() is not outer


def test_scopes_nest():
    with source.scope("a"), source.scope("b"):
        assert source.here().name_stack == "a/b"
        with source.at(Source(source.here().code, 0, ("c",))):
            assert source.here().name_stack == "c"
    assert source.here().name_stack == ""


def test_transformations_stand_around_scopes():
    def stack():
        return source.here().name_stack

    place = source.here()
    inner = place._replace(scopes=("p(", "q(", "a/b", "c"))
    assert inner.name_stack == "p(q(a/b))/c"
    with source.transformed("vmap"):
        assert stack() == "vmap()"
        with source.scope("a/b"), source.transformed("x"), source.transformed("y"):
            assert stack() == "vmap(a/b)/x(y())"
            with source.scope("c"):
                assert stack() == "vmap(a/b)/x(y(c))"
                with source.untransformed():
                    assert stack() == "a/b/c"
        assert source.in_scopes(place).name_stack == "vmap()"
        assert source.in_scopes(inner).name_stack == "vmap(p(q(a/b)))/c"
        assert source.in_scopes(None) is None
    assert source.in_scopes(place) is place and stack() == ""
    assert source.since(("p(", "q("), inner).name_stack == "a/b/c"
    assert source.since(("x",), inner) is inner and source.since(("x",), None) is None


def test_what_is_internal():
    assert source.is_internal(source.here.__code__)
    assert not source.is_internal(test_what_is_internal.__code__)


def calls_back(name, tmp_path):
    """A function of a file of its own, which calls what it is given."""
    path = tmp_path / name
    path.write_text("def call(f):\n    return f()\n")
    module = types.ModuleType("calls_back")
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return str(path), module.call


def test_files_that_are_left_out(tmp_path):
    path, call = calls_back("library.py", tmp_path)
    assert call(source.user_frame).f_code.co_filename == path
    assert source.asked_by_user(()) is True
    source.register_exclusion(path)
    source.register_exclusion(path)
    try:
        assert call(source.user_frame).f_code.co_filename == __file__
        assert source.excluded_files.count(path) == 1
    finally:
        source.excluded_files.remove(path)
    # libraries change the list themselves
    assert call(source.user_frame).f_code.co_filename == path
    for add in (source.excluded_files.append, lambda p: source.excluded_files.extend([p])):
        add(path)
        assert call(source.user_frame).f_code.co_filename == __file__
        source.excluded_files.remove(path)
    assert call(source.user_frame).f_code.co_filename == path


def test_who_asks(tmp_path):
    _, call = calls_back("caller.py", tmp_path)
    assert call(lambda: source.asked_by_user((__file__,)))
    assert source.asked_by_user((source.__file__,))


def test_functions_of_a_room_can_be_scopes():
    with source.scope("mine"), source.callers("random"):
        closed = calque.make_jaxpr(lambda key: calque.random.normal(key))(calque.random.key(0))
    stacks = {e.source_info.name_stack for e in closed.eqns}
    assert "mine/random.normal" in stacks and stacks <= {"mine", "mine/random.normal"}
    with source.callers("random"):
        assert source.here().name_stack == ""


def test_an_operation_and_its_derivatives_look_for_their_place_once(monkeypatch):
    import calque.numpy as jnp

    looked = []
    counted = {"looked": looked, "found": source.user_frame}
    # a frame of calque, by its file, which is looked past
    lines = "def user_frame(inner=0):\n    looked.append(1)\n    return found(inner)"
    exec(compile(lines, source.__file__, "exec"), counted)
    monkeypatch.setattr(source, "user_frame", counted["user_frame"])

    def f(x):
        y = jnp.sin(x)
        return jnp.tanh(y).sum()

    line = f.__code__.co_firstlineno
    closed = calque.make_jaxpr(lambda x: calque.jvp(f, (x,), (x,)))(jnp.ones(3))
    lines = [e.source.line - line for e in closed.eqns]
    assert sorted(lines) == lines and set(lines) == {1, 2}
    assert len(closed.eqns) > 6 and len(looked) < len(closed.eqns)


def test_a_place_holds_for_one_call_alone():
    def place_of_two():
        return source.here(), source.here()

    first = source.at_one_place(place_of_two)
    assert first[0] == first[1] and first[0].function == "test_a_place_holds_for_one_call_alone"
    with source.at(first[0]):
        assert source.at_one_place(place_of_two)[0] is first[0]
        assert source.here() is first[0]
    again = source.here()
    assert again != first[0] and again.file == __file__

    def fails():
        raise ValueError

    for _ in range(2):
        try:
            source.at_one_place(fails)
        except ValueError:
            assert source.here() != first[0]


def test_a_thread_may_begin_inside_of_calque():
    assert source.user_frame(10**6) is None and source.here(10**6) is None
    found = []

    def f(x):
        lock = _thread.allocate_lock()
        lock.acquire()

        def bind():
            found.append(lax.sin_p.bind(x))
            lock.release()

        _thread.start_new_thread(bind, ())
        lock.acquire()
        return found[0]

    closed = calque.make_jaxpr(f)(1.0)
    assert [e.primitive.name for e in closed.eqns] == ["sin"]
