"""What steps are called, and whose line they are."""

import calque as jax
import calque.numpy as jnp
from calque.machine.driver.interpreter import Op
from calque.profiling.session import Session
from calque.profiling.steps import described, executables, kernel_names, programs_of


def helper(x, w):
    return jnp.tanh(x @ w)


def several(x, w):
    y = helper(x, w)
    z = jnp.sort(y.ravel())
    return jnp.cos(z) * 2, jnp.linalg.eigvals(w[:3, :3]).real


ARGUMENTS = jnp.ones((100, 40)), jnp.ones((40, 30))


def facts(f, *args):
    return list(described(jax.jit(f).lower(*args).compile()._executable).steps.values())


def test_names_kinds_and_lines():
    found = {f.kind: f for f in facts(several, *ARGUMENTS) if "prepare" not in f.name}
    first = several.__code__.co_firstlineno
    assert found["routine"].name == "sort" and found["routine"].sources[0].line == first + 2
    assert found["host call"].name == "eig"
    product = next(f for f in facts(several, *ARGUMENTS) if f.name == "matmul tanh")
    (source,) = product.sources
    assert source.line == helper.__code__.co_firstlineno + 1 and source.function == "helper"


def test_what_prepares_is_named_by_what_it_is_for():
    w = jnp.ones((300, 300))
    names = [f.name for f in facts(lambda x, w: x @ w, w, w)]
    assert names in (["matmul"], ["prepare for matmul", "matmul"])


def test_the_parts_of_a_loop_are_not_counted_as_the_loop():
    def f(x):
        return jax.lax.scan(lambda c, row: (jnp.sort(c) + row, c.sum()), x[0], x)

    for step in facts(f, jnp.ones((300, 64))):
        assert "scan" not in step.name and (step.flops or 0) <= 2 * 64


def test_programs_are_found_with_their_executables():
    f = jax.jit(several)
    f(*ARGUMENTS)
    known = programs_of(executables())
    with Session() as session:
        f(*ARGUMENTS)
    ran = [t.program for t in session.timing.steps() if t.number is None and t.turns]
    assert [known[id(p)].options.name for p in ran if id(p) in known] == ["several"]


def test_the_kernels_of_single_operations_have_names():
    jnp.sin(jnp.ones(5)) + 1
    assert any("sin" in name for name in kernel_names().values())


def test_every_step_of_the_code_is_described():
    e = jax.jit(several).lower(*ARGUMENTS).compile()._executable
    code = e.program.code.tolist()
    assert Op.CALL in code or Op.CALL_RANGE in code
    with Session() as session:
        e.call(list(ARGUMENTS))
    mine = [m for m in session.measured() if m.time.program is e.program and m.facts is not None]
    assert mine and all(m.facts.sources and m.time.turns == 1 for m in mine)


class Asked(type):
    """A type that does not want to be compared."""

    def __hash__(cls) -> int:
        raise AssertionError("hashed")

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("compared")


class Strange(metaclass=Asked):
    pass


def test_programs_are_found_by_their_exact_types():
    strange, x = Strange(), jnp.ones(3)
    made = [jax.jit(lambda x: x + 1.25).lower(x).compile()._executable]
    sized = jax.jit(lambda x: x * 1.75)
    for n in (3, 4, 5):
        sized(jnp.ones(n))
    found = executables()
    assert any(e is made[0] for e in found) and type(strange).__name__ == "Strange"
    assert {type(e).__name__ for e in found} >= {"NativeExecutable", "SymbolicExecutable"}
