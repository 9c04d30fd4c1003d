"""Where equations are said to be made."""

import calque
import calque.numpy as jnp
from calque.extend import source_info_util as places


def sine(x):
    with calque.named_scope("wave"):
        return jnp.sin(x)


EQN = calque.make_jaxpr(sine)(1.0).eqns[0]


def cosine(x, **options):
    with places.user_context(EQN.source_info.traceback, **options):
        return calque.make_jaxpr(jnp.cos)(x).eqns[0].source_info


def test_operations_are_said_to_be_made_at_the_place_of_another() -> None:
    there = EQN.source_info
    found = cosine(1.0)
    assert (found.file, found.line) == (there.file, there.line)
    assert "sine" in places.summarize(found) and found.name_stack == ""
    assert cosine(1.0, name_stack=there.name_stack).name_stack == "wave"
    with calque.named_scope("outer"):
        stack = places.current_name_stack() + there.name_stack
    assert cosine(1.0, name_stack=stack).name_stack == "outer/wave"


def test_without_a_place_the_line_stays() -> None:
    def f(x):
        with places.user_context(None, name_stack="given"):
            return jnp.cos(x)

    found = calque.make_jaxpr(f)(1.0).eqns[0].source_info
    assert found.function == "f" and found.name_stack == "given"
    with places.user_context(None):
        assert places.current().function == "test_without_a_place_the_line_stays"


def test_stacks() -> None:
    with places.extend_name_stack("a"), places.transform_name_stack("jvp"):
        stack = places.current_name_stack()
    assert stack + "b" == "a/jvp(b)" == stack.extend("b")
    assert places.new_name_stack() == "" and places.summarize(None) == "unknown"
    assert places.new_name_stack("x").transform("vmap") + places.new_name_stack("y") == "x/vmap(y)"
