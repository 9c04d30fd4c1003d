"""Mistakes in calls of functions: names of other libraries, arguments that mean something else."""

from typing import Any

from tests.mistakes.table import mistake

# ---------------------------------------------------------------- what other libraries call it


@mistake("better", "calque.random", "keys")
def numbers_of_numpy_random(jax: Any, jnp: Any) -> None:
    jnp.random.rand(3)


@mistake("better", "concatenate")
def the_cat_of_pytorch(jax: Any, jnp: Any) -> None:
    jnp.cat([jnp.ones(2), jnp.ones(2)])


@mistake("better", "float32")
def the_float_of_old_numpy(jax: Any, jnp: Any) -> None:
    jnp.zeros(3, jnp.float)


# ---------------------------------------------------------------- arguments that are no numbers


@mistake("better", "one list", "f32[3,4]")
def concatenate_of_two_arguments(jax: Any, jnp: Any) -> None:
    jnp.concatenate(jnp.ones((3, 4)), jnp.ones((3, 4)))


@mistake("better", "linspace", "2.5")
def a_fraction_of_points(jax: Any, jnp: Any) -> None:
    jnp.linspace(0, 1, 2.5)


@mistake("better", "arange", "step")
def a_range_without_a_step(jax: Any, jnp: Any) -> None:
    jnp.arange(0, 1, 0)


@mistake("better", "(3, 4)", "array_str")
def a_format_for_numbers(jax: Any, jnp: Any) -> None:
    print(f"{jnp.ones((3, 4)):.2f}")


@mistake("better", "(3, 4)", "tolist")
def the_item_of_many(jax: Any, jnp: Any) -> None:
    jnp.ones((3, 4)).item()


@mistake("better", "finfo")
def the_integers_of_a_float(jax: Any, jnp: Any) -> None:
    jnp.iinfo(jnp.float32)


@mistake("better", "3 places and 4 values")
def a_polynomial_through_other_points(jax: Any, jnp: Any) -> None:
    jnp.polyfit(jnp.arange(3.0), jnp.arange(4.0), 1)


@mistake("better", "(n->(n)", "(m,n),(n)->(m)")
def a_signature_that_lacks_a_bracket(jax: Any, jnp: Any) -> None:
    jnp.vectorize(lambda x: x, signature="(n->(n)")(jnp.ones(3))


@mistake("better", "set", "values", "indices_are_sorted")
def an_update_without_values(jax: Any, jnp: Any) -> None:
    jnp.ones(3).at[0].set()


@mistake("equal", "'dtype'", "ArrayImpl")
def a_dtype_that_is_set(jax: Any, jnp: Any) -> None:
    jnp.ones(3).dtype = "int32"


@mistake("better", "at_the_squares", "jacrev")
def grad_of_many_outputs(jax: Any, jnp: Any) -> None:
    def at_the_squares(x):
        return x**2

    jax.grad(at_the_squares)(jnp.ones(3))
