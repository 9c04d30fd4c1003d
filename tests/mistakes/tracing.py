"""Mistakes under jit: Python control flow, NumPy, leaks, static arguments, donation."""

import functools
from typing import Any

import numpy as np

from tests.mistakes.table import mistake


@mistake("better", "argument x of the function relu", ":{line} (relu)", "lax.cond")
def if_on_a_traced_value(jax: Any, jnp: Any) -> None:
    def relu(x):
        if x > 0:  # <-
            return x
        return 0.0

    jax.jit(relu)(1.0)


@mistake("better", "params['layers'][1]", ":{line} (loss)", "lax.cond")
def if_on_a_value_of_the_parameters(jax: Any, jnp: Any) -> None:
    def loss(params, x):
        scale = params["layers"][1] * 2
        return x if scale > 0 else -x  # <-

    jax.jit(loss)({"layers": [1.0, 2.0]}, 3.0)


@mistake("better", "argument n of the function count", ":{line} (count)", "while_loop")
def while_on_a_traced_value(jax: Any, jnp: Any) -> None:
    def count(n):
        i = 0
        while i < n:  # <-
            i += 1
        return i

    jax.jit(count)(3)


@mistake("better", "argument n of the function total", "fori_loop", "static_argnums")
def range_of_a_traced_value(jax: Any, jnp: Any) -> None:
    def total(x, n):
        for _ in range(n):  # <-
            x = x + 1
        return x

    jax.jit(total)(1.0, 3)


@mistake("better", "argument x of the function inside", ":{line} (inside)", "& ", " ~")
def and_of_traced_values(jax: Any, jnp: Any) -> None:
    def inside(x):
        return x > 0 and x < 1  # <-

    jax.jit(inside)(0.5)


@mistake("better", "argument x of the function inside", ":{line} (inside)")
def comparisons_in_a_chain(jax: Any, jnp: Any) -> None:
    def inside(x):
        return 0 < x < 1  # <-

    jax.jit(inside)(0.5)


@mistake("better", "argument x of the function root", ":{line} (root)")
def assert_on_a_traced_value(jax: Any, jnp: Any) -> None:
    def root(x):
        assert x >= 0, "negative"  # <-
        return x**0.5

    jax.jit(root)(0.5)


@mistake("better", "arguments x, y of the function largest", ":{line} (largest)", "jnp.where")
def max_of_python_on_traced_values(jax: Any, jnp: Any) -> None:
    def largest(x, y):
        return max(x, y)  # <-

    jax.jit(largest)(1.0, 2.0)


@mistake("better", "vmap", ":{line} (relu)", "lax.cond")
def if_under_vmap(jax: Any, jnp: Any) -> None:
    def relu(x):
        return x if x > 0 else 0.0  # <-

    jax.vmap(relu)(jnp.arange(3.0))


@mistake("better", "argument carry of the function step in scan", ":{line} (step)", "lax.cond")
def if_inside_scan(jax: Any, jnp: Any) -> None:
    def step(carry, x):
        if carry > 1:  # <-
            x = x * 2
        return carry + x, x

    jax.lax.scan(step, 0.0, jnp.arange(3.0))


@mistake("better", "argument x of the function wave", "calque.numpy", "pure_callback")
def numpy_on_a_traced_value(jax: Any, jnp: Any) -> None:
    def wave(x):
        return np.sin(x) + 1  # <-

    jax.jit(wave)(1.0)


@mistake("better", "argument x of the function copy", "calque.numpy")
def numpy_array_of_a_traced_value(jax: Any, jnp: Any) -> None:
    def copy(x):
        return np.asarray(x)  # <-

    jax.jit(copy)(1.0)


@mistake("equal", "setting an array element")
def assignment_into_a_numpy_array(jax: Any, jnp: Any) -> None:
    def fill(x):
        out = np.zeros(3)
        out[0] = x  # <-
        return out

    jax.jit(fill)(1.0)


@mistake("better", "argument x of the function scaled", "x.astype(float)", "static_argnums")
def float_of_a_traced_value(jax: Any, jnp: Any) -> None:
    def scaled(x):
        return float(x) * 2  # <-

    jax.jit(scaled)(1.0)


@mistake("better", "argument x of the function half", "x.astype(int)", "static_argnums")
def int_of_a_traced_value(jax: Any, jnp: Any) -> None:
    def half(x):
        return int(x) // 2  # <-

    jax.jit(half)(4)


@mistake("better", "argument x of the function value", ":{line} (value)", "static_argnums")
def item_of_a_traced_value(jax: Any, jnp: Any) -> None:
    def value(x):
        return x.sum().item()  # <-

    jax.jit(value)(jnp.ones(3))


@mistake("better", ":{line} (loss)", "x.astype(float)")
def float_of_a_loss_under_grad(jax: Any, jnp: Any) -> None:
    def loss(x):
        return float((x**2).sum())  # <-

    jax.grad(loss)(jnp.ones(3))


@mistake("better", ":{line} (loss)", "calque.numpy")
def numpy_under_grad(jax: Any, jnp: Any) -> None:
    def loss(x):
        return np.sum(np.exp(x))  # <-

    jax.grad(loss)(jnp.ones(3))


@mistake("better", "argument i of the function pick", "jnp.array(seq)[i]")
def a_list_indexed_by_a_traced_value(jax: Any, jnp: Any) -> None:
    def pick(i):
        return [1.0, 2.0, 3.0][i]  # <-

    jax.jit(pick)(1)


@mistake("equal", "unhashable")
def a_dict_indexed_by_a_traced_value(jax: Any, jnp: Any) -> None:
    def pick(i):
        return {0: 1.0, 1: 2.0}[i]  # <-

    jax.jit(pick)(1)


@mistake("better", "'.2f'", "argument x of the function report", "debug.print")
def a_format_of_a_traced_value(jax: Any, jnp: Any) -> None:
    def report(x):
        return x, f"{x:.2f}"  # <-

    jax.jit(report)(1.0)


@mistake("better", "<lambda> at", "str", "['name']", "arrays, numbers")
def a_result_that_is_text(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x: {"loss": x, "name": "training"})(1.0)


@mistake("better", "step at", "State", "[1]", "arrays, numbers")
def a_result_that_is_an_object(jax: Any, jnp: Any) -> None:
    class State:
        pass

    def step(x):
        return x, State()

    jax.jit(step)(1.0)


@mistake("equal", "act at", "path kind", "'tanh'", "static_argnames")
def an_argument_that_is_text(jax: Any, jnp: Any) -> None:
    def act(x, kind):
        return x if kind == "linear" else jnp.tanh(x)

    jax.jit(act)(1.0, "tanh")


@mistake("equal", "apply at", "path model", "static_argnames")
def an_argument_that_is_an_object(jax: Any, jnp: Any) -> None:
    class Model:
        scale = 2.0

    def apply(model, x):
        return model.scale * x

    jax.jit(apply)(Model(), 1.0)


@mistake("equal", "apply at", "path f", "static_argnames")
def an_argument_that_is_a_function(jax: Any, jnp: Any) -> None:
    def apply(f, x):
        return f(x)

    jax.jit(apply)(jnp.sin, 1.0)


@mistake("equal", "path self", "static_argnames")
def jit_of_a_method_with_self(jax: Any, jnp: Any) -> None:
    class Model:
        scale = 2.0

        @functools.partial(jax.jit)
        def apply(self, x):
            return self.scale * x

    Model.apply(Model(), 1.0)


@mistake("better", "'sizes' of build", "list", "pass a tuple")
def a_static_argument_that_is_a_list(jax: Any, jnp: Any) -> None:
    def build(x, sizes):
        return x * sum(sizes)

    jax.jit(build, static_argnames="sizes")(1.0, sizes=[1, 2])


@mistake("better", "argument 1 of build", "ArrayImpl", "be traced")
def a_static_argument_that_is_an_array(jax: Any, jnp: Any) -> None:
    def build(x, n):
        return x * n

    jax.jit(build, static_argnums=1)(1.0, jnp.arange(3))


@mistake("better", "static_argnums", "2 positional", "x, n")
def a_static_argument_beyond_the_last(jax: Any, jnp: Any) -> None:
    def build(x, n):
        return x * n

    jax.jit(build, static_argnums=2)(1.0, 2)


@mistake("better", "'sise'", "['x', 'size']")
def a_static_name_misspelt(jax: Any, jnp: Any) -> None:
    def build(x, size):
        return x * size

    jax.jit(build, static_argnames=("sise",))(1.0, 2)


@mistake("equal", "'n'", "static_argnames", "donate_argnames")
def a_static_and_donated_argument(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=1)(1.0, 2)


@mistake("better", "float32[1000]", "donate_argnums", "pass a copy")
def a_donated_argument_used_again(jax: Any, jnp: Any) -> None:
    x = jnp.ones(1000)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    x + 1


@mistake("better", "donate the same buffer twice", "pass a copy")
def a_donated_argument_twice(jax: Any, jnp: Any) -> None:
    x = jnp.ones(1000)
    jax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))(x, x)


@mistake("better", "step()", "'batch'", "takes (params, batch)")
def jit_called_with_too_few_arguments(jax: Any, jnp: Any) -> None:
    def step(params, batch):
        return params

    jax.jit(step)(1.0)


@mistake("better", "callable", "Array(", "jit(f) rather than jit(f(x))")
def jit_of_a_result(jax: Any, jnp: Any) -> None:
    jax.jit(jnp.sin(1.0))


@mistake("equal", "'static_args'")
def jit_with_an_unknown_option(jax: Any, jnp: Any) -> None:
    jax.jit(jnp.sin, static_args=(0,))


LEAKED: list[Any] = []


@mistake("better", "function step", ":{line} (step)", "Return it instead")
def a_tracer_leaked_into_a_list(jax: Any, jnp: Any) -> None:
    def step(x):
        y = x * 2  # <-
        LEAKED.append(y)
        return y

    LEAKED.clear()
    jax.jit(step)(1.0)
    LEAKED.pop() + 1


@mistake("better", "function step", ":{line} (step)", "it leaked")
def a_tracer_leaked_and_given_to_numpy(jax: Any, jnp: Any) -> None:
    def step(x):
        LEAKED.append(jnp.sin(x))  # <-
        return x

    LEAKED.clear()
    jax.jit(step)(jnp.ones(3))
    np.asarray(LEAKED.pop())


@mistake("better", "function step", ":{line} (step)", "it leaked")
def a_tracer_leaked_and_printed_as_a_float(jax: Any, jnp: Any) -> None:
    def step(x):
        LEAKED.append((x**2).sum())  # <-
        return x

    LEAKED.clear()
    jax.jit(step)(jnp.ones(3))
    float(LEAKED.pop())


@mistake("equal", "function apply", ":{line} (apply)", "Return it instead")
def a_tracer_leaked_into_an_attribute(jax: Any, jnp: Any) -> None:
    class Model:
        last: Any = None

    def apply(x):
        Model.last = jnp.tanh(x)  # <-
        return Model.last

    jax.jit(apply)(1.0)
    jnp.sin(Model.last)


@mistake("equal", "step in scan", ":{line} (step)", "Return it instead")
def a_tracer_leaked_from_scan(jax: Any, jnp: Any) -> None:
    def step(carry, x):
        LEAKED.append(carry + x)  # <-
        return carry, x

    LEAKED.clear()
    jax.lax.scan(step, 0.0, jnp.arange(3.0))
    LEAKED[0] * 2


@mistake("equal", "float32[3]", "Return it instead")
def a_tracer_leaked_from_grad(jax: Any, jnp: Any) -> None:
    def loss(x):
        LEAKED.append(x * 2)
        return (x**2).sum()

    LEAKED.clear()
    jax.jit(jax.grad(loss))(jnp.ones(3))
    LEAKED[0].sum()


@mistake("better", "function step", "a list", "must return")
def a_tracer_leaked_and_checked(jax: Any, jnp: Any) -> None:
    def step(x):
        LEAKED.append(x * 2)
        return x

    LEAKED.clear()
    with jax.checking_leaks():
        jax.jit(step)(1.0)


@mistake("equal", "function step", ":{line} (step)", "Return it instead")
def a_leaked_tracer_given_to_another_jit(jax: Any, jnp: Any) -> None:
    def step(x):
        LEAKED.append(x + 1)  # <-
        return x

    LEAKED.clear()
    jax.jit(step)(1.0)
    jax.jit(lambda x: x * 2)(LEAKED[0])


@mistake("better", "1099511627776", "int32", "enable_x64")
def an_argument_too_large(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x: x + 1)(2**40)
