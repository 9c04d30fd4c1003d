"""Traces of libraries: classes derived from `core.Trace`, made current by `set_current_trace`."""

import gc
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.errors import UnexpectedTracerError
from calque.extend import core
from calque.extend import linear_util as lu
from calque.extend.programs import trace_state_clean


class Seen(calque.core.Tracer):
    """A value that `Watching` has seen."""

    def __init__(self, trace: Any, value: Any):
        super().__init__(trace, calque.typeof(value))
        self.value = value


class Watching(calque.core.Trace):
    """Writes down what goes through it, and has it done by the trace around it."""

    def __init__(self, parent: Any, log: list[str]):
        super().__init__()
        self.parent, self.log = parent, log

    def inside(self, x: Any) -> Any:
        return x.value if isinstance(x, Seen) and x._trace is self else x

    def outside(self, xs: Any) -> Any:
        return calque.tree.map(lambda x: Seen(self, x), xs)

    def bound(self, primitive: Any, tracers: Any, params: dict[str, Any]) -> Any:
        self.log.append(primitive.name)
        values = [self.inside(t) for t in tracers]
        avals = [calque.typeof(v) for v in values]
        return self.outside(primitive.bind_with_trace(self.parent, values, avals, params))

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any]) -> Any:
        return self.bound(primitive, tracers, params)

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, *, symbolic_zeros: bool
    ) -> Any:
        assert fun.__name__ == jvp.__name__
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        return self.bound(primitive, tracers, params)

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, **params: Any
    ) -> Any:
        return self.bound(primitive, tracers, {**params, "subfuns": (fun, fwd, bwd)})


def watched(f: Any, log: list[str]) -> Any:
    def run(*args: Any) -> Any:
        with core.take_current_trace() as parent:
            trace = Watching(parent, log)
            with core.set_current_trace(trace):
                out = f(*trace.outside(args))
            return calque.tree.map(trace.inside, out)

    return run


def f(x: Any) -> Any:
    return jnp.sin(x) * x + 1


@pytest.mark.parametrize(
    "through",
    [
        lambda w: w(f),
        lambda w: calque.jit(w(f)),
        lambda w: calque.grad(w(f)),
        lambda w: w(calque.grad(f)),
        lambda w: w(calque.jit(calque.grad(f))),
        lambda w: w(w(f)),
        lambda w: w(calque.checkpoint(calque.grad(f))),
        lambda w: lambda x: calque.vmap(w(f))(x[None]),
        lambda w: lambda x: w(calque.vmap(f))(x[None]),
        lambda w: lambda x: calque.vmap(calque.grad(w(f)))(x[None]),
    ],
)
def test_between_transformations(through):
    log: list[str] = []
    x = jnp.float32(0.5)
    made = through(lambda g: watched(g, log))
    np.testing.assert_allclose(made(x), through(lambda g: g)(x), rtol=1e-6)
    assert {"sin", "jit", "remat2"} & set(log)


def test_what_it_sees():
    log: list[str] = []
    np.testing.assert_allclose(watched(f, log)(2.0), f(2.0))
    assert log == ["sin", "mul", "add"]
    log.clear()
    # operations on plain arrays are its own, too, and so are calls that machine code would serve
    double = calque.jit(lambda x: x * 2)
    double(jnp.ones(2))
    out = watched(lambda: double(jnp.ones(2)), log)()
    assert log[-1] == "jit" and list(out) == [2, 2] and isinstance(out, calque.Array)
    log.clear()
    double(jnp.ones(2))
    assert log == []


def test_control_flow():
    log: list[str] = []
    carry, ys = watched(lambda x: lax.scan(lambda c, v: (c + v, c * v), x, jnp.arange(3.0)), log)(
        2.0
    )
    assert float(carry) == 5 and list(ys) == [0, 2, 6] and "scan" in log
    assert float(watched(lambda x: lax.cond(x > 1, lambda v: -v, f, x), log)(2.0)) == -2
    assert float(watched(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), log)(2.0)) == 16
    assert "cond" in log


@pytest.mark.parametrize("symbolic", [False, True])
def test_custom_jvp(symbolic):
    kinds, log = [], list[str]()
    g = calque.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        kinds.append(type(tangents[1]).__name__)
        return g(*primals), 3 * tangents[0] * primals[1]

    g.defjvp(rule, symbolic_zeros=symbolic)

    def h(x):
        return g(x, 2.0)

    assert float(watched(h, log)(5.0)) == 10 and log == ["custom_jvp_call"]
    for made in (calque.grad(watched(h, log)), watched(calque.grad(h), log)):
        assert float(made(5.0)) == float(calque.jit(made)(5.0)) == 6
        assert list(calque.vmap(made)(jnp.ones(2))) == [6, 6]
    assert (set(kinds) == {"SymbolicZero"}) == symbolic


@pytest.mark.parametrize("symbolic", [False, True])
def test_custom_vjp(symbolic):
    seen, log = [], list[str]()
    g = calque.custom_vjp(lambda x, y: (x * y, y))

    def fwd(x, y):
        if symbolic:
            seen.append((x.perturbed, y.perturbed))
            x, y = x.value, y.value
        return (x * y, y), (x, y)

    def bwd(residuals, cts):
        seen.append(type(cts[1]).__name__)
        return 7 * residuals[1] * cts[0], None

    g.defvjp(fwd, bwd, symbolic_zeros=symbolic)

    def h(x):
        return g(x, 2.0)[0]

    assert float(watched(h, log)(5.0)) == 10 and log == ["custom_vjp_call"]
    for made in (calque.grad(watched(h, log)), watched(calque.grad(h), log)):
        assert float(made(5.0)) == float(calque.jit(made)(5.0)) == 14
        assert list(calque.vmap(made)(jnp.ones(2))) == [14, 14]
    assert not symbolic or {(True, False), "SymbolicZero"} <= set(seen)


def test_calls_of_a_custom_function_inside_a_program():
    g = calque.custom_jvp(jnp.sin)
    g.defjvp(lambda primals, tangents: (g(*primals), 3 * tangents[0]))
    closed = calque.make_jaxpr(lambda x: g(x) * 2)(1.0)
    log: list[str] = []
    run = watched(lambda x: calque.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0], log)
    assert float(calque.grad(run)(1.0)) == 6 and "custom_jvp_call" in log


def test_rules_that_are_dropped():
    class Plain(Watching):
        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            with core.set_current_trace(self.parent):
                return self.outside(fun.call_wrapped(*map(self.inside, tracers)))

    with core.take_current_trace() as parent:
        trace = Plain(parent, [])
        with core.set_current_trace(trace):
            out = calque.nn.relu(Seen(trace, jnp.float32(-2)))
    assert float(trace.inside(out)) == 0


def test_what_a_trace_lacks():
    class Bare(calque.core.Trace):
        pass

    g = calque.custom_vjp(jnp.sin)
    g.defvjp(lambda x: (g(x), x), lambda r, ct: (ct,))
    trace, x = Bare(), jnp.ones(2)
    assert trace.is_valid() and trace.requires_low and trace.main is trace
    with core.set_current_trace(trace):
        with pytest.raises(NotImplementedError, match="must override process_primitive"):
            lax.sin(x)
        with pytest.raises(NotImplementedError, match="must override process_custom_jvp_call"):
            calque.nn.relu(x)
        with pytest.raises(NotImplementedError, match="must override process_custom_vjp_call"):
            g(x)
        with pytest.raises(NotImplementedError, match="must override process_call"):
            trace.process_call(None, None, (), {})
    assert list(x + 1) == [2, 2]


def test_values_that_outlive_it():
    kept = []

    def keep(x):
        kept.append(x)
        return x

    assert float(watched(keep, [])(1.0)) == 1
    with pytest.raises(UnexpectedTracerError):
        kept[0] + 1
    assert isinstance(kept[0], calque.Array) and kept[0].full_lower() is kept[0]
    with pytest.raises(calque.errors.ConcretizationTypeError):
        float(kept[0])


def test_entered_again():
    trace = Watching(core.find_top_trace([]), [])
    for _ in range(2):
        with core.set_current_trace(trace), core.set_current_trace(trace):
            x = trace.inside(Seen(trace, jnp.float32(2)) * 3)
            assert float(x) == 6 and not trace_state_clean() and gc.isenabled()
    assert not trace.is_valid()
    trace.invalidate()
    assert not trace.is_valid()


def test_values_of_a_program():
    def g(x):
        parent = core.find_top_trace([x])
        y = parent.stage_value(np.float32(3))
        assert isinstance(y, calque.core.Tracer) and parent.stage_value(x).aval is x.aval
        assert parent.full_raise(x) is x
        return x * y

    assert float(calque.jit(g)(2.0)) == 6


def test_transformations_that_are_generators():
    """What a generator has entered it leaves with the call, also by an error."""
    entered = []

    @lu.transformation
    def inside(x):
        entered.append(x)
        try:
            y = yield (x,), {}
            yield y
        finally:
            entered.pop()

    assert inside(lu.wrap_init(abs)).call_wrapped(-3) == 3 and entered == []
    with pytest.raises(ZeroDivisionError) as failed:
        inside(lu.wrap_init(lambda x: x / 0)).call_wrapped(1)
    assert entered == [] and failed.traceback


def test_either_of_two_stores():
    @lu.transformation_with_aux2
    def noting(f, store, x):
        store.store(x)
        return f(x)

    (a, first), (b, second) = noting(lu.wrap_init(abs)), noting(lu.wrap_init(abs))
    with pytest.raises(lu.StoreException, match="neither"):
        lu.merge_linear_aux(first, second)
    b.call_wrapped(-3)
    assert lu.merge_linear_aux(first, second) == (False, -3)
    a.call_wrapped(4)
    with pytest.raises(lu.StoreException, match="both"):
        lu.merge_linear_aux(first, second)
