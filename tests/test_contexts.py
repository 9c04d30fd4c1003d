import logging

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax


def test_flags_hold_inside():
    with calque.enable_x64():
        assert jnp.ones(2).dtype == np.float64
        with calque.enable_x64(False):
            assert jnp.ones(2).dtype == np.float32
    with (
        calque.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="numpy_rank_promotion='raise'"),
    ):
        jnp.ones((2, 2)) + jnp.ones(2)
    with calque.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="strict"):
        jnp.ones(2, int) + jnp.ones(2)
    with calque.debug_nans(), pytest.raises(FloatingPointError):
        jnp.log(jnp.float32(-1.0))
    with calque.default_prng_impl("rbg"):
        assert str(calque.random.key(0).dtype) == "key<rbg>"
    with calque.default_matmul_precision("highest"):
        assert "HIGHEST" in str(calque.make_jaxpr(lambda x: x @ x)(jnp.ones((2, 2))))
    with calque.threefry_partitionable(False):
        assert calque.config.threefry_partitionable is False
    assert calque.config.threefry_partitionable is True


def test_jit_can_be_disabled():
    seen = []
    f = calque.jit(lambda x: seen.append(type(x).__name__) or x)
    with calque.disable_jit():
        f(jnp.ones(2))
    f(jnp.ones(2))
    assert seen[0] in ("Array", "ArrayImpl") and seen[1].endswith("Tracer")


def test_keys_of_both_kinds():
    with calque.enable_custom_prng():
        assert str(calque.random.PRNGKey(0).dtype) == "key<fry>"
    with calque.legacy_prng_key("error"):
        calque.random.uniform(calque.random.key(0))
        with pytest.raises(ValueError, match="Legacy uint32 key array"):
            calque.random.uniform(calque.random.PRNGKey(0))
    with calque.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32"):
        calque.random.uniform(calque.random.PRNGKey(0))


def test_short_floats_can_be_refused():
    x = jnp.ones(2, jnp.bfloat16)
    with calque.allow_f16_reductions(False):
        assert float(jnp.sum(x)) == 2.0  # computed in float32
        with pytest.raises(ValueError, match=r"reduce_sum on operand bf16\[2\] is not allowed"):
            lax.reduce_sum(x, axes=(0,))
        assert lax.reduce_sum(x[None], axes=(0,)).shape == (2,)  # nothing is added


def test_tracing_and_running_can_be_forbidden(caplog):
    f = calque.jit(lambda x: x * 3)
    f(1.0)
    with (
        calque.no_tracing(),
        pytest.raises(RuntimeError, match=r"re-tracing function .* but 'no_tracing' is set"),
    ):
        f(jnp.ones(3))
    with calque.no_execution(), pytest.raises(RuntimeError, match="tried to execute function"):
        f(1.0)
    assert float(f(1.0)) == 3.0
    with calque.explain_cache_misses(), caplog.at_level(logging.WARNING):
        f(jnp.ones(4))
    assert "TRACING CACHE MISS" in caplog.text and "now f32[4] and before f32[3]" in caplog.text
    with calque.log_compiles(), caplog.at_level(logging.WARNING):
        f(jnp.ones((5, 2)))
    assert "Finished tracing" in caplog.text and "Compiling jit(" in caplog.text
    assert "Finished XLA compilation of jit(" in caplog.text and "not XLA" in caplog.text


def test_programs_can_be_verified():
    with calque.enable_checks():
        grad = calque.jit(
            calque.grad(lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, c), x, jnp.arange(3.0))[0])
        )
        assert np.isfinite(grad(1.0))


def test_values_known_while_tracing():
    @calque.jit
    def f(x):
        with calque.ensure_compile_time_eval():
            n = int(jnp.sum(jnp.arange(3)))
        return x * n

    assert float(f(2.0)) == 6.0


def test_users_have_contexts_of_their_own():
    traces = []
    scale = calque.make_user_context(default_value=1)

    @calque.jit
    def f(x):
        traces.append(scale.value)
        return x * scale.value

    assert float(f(2.0)) == 2.0
    with scale(3):
        assert float(f(2.0)) == 6.0
        with scale(4):
            assert float(f(2.0)) == 8.0
    with scale(3):
        assert float(f(2.0)) == 6.0
    assert float(f(2.0)) == 2.0 and traces == [1, 3, 4] and scale.value == 1


def test_devices_and_transfers():
    with (
        calque.default_device(calque.devices()[0]),
        calque.default_device("cpu"),
        calque.default_device(None),
    ):
        assert jnp.ones(2).devices() == {calque.devices()[0]}
    with pytest.raises(ValueError, match="must be passed either a Device object"):
        calque.default_device(3)
    with pytest.raises(ValueError, match="must be None, a device or the name of a platform"):
        calque.config.update("calque_default_device", 3)
    with pytest.raises(RuntimeError, match="tpu"):
        calque.default_device("tpu")
    with calque.transfer_guard("disallow"), calque.transfer_guard_host_to_device("log"):
        assert float(jnp.sum(np.ones(2))) == 2.0  # nothing is transferred
    with calque.transfer_guard_host_to_device("log"), calque.transfer_guard("disallow"):
        assert calque.config.calque_transfer_guard_host_to_device == "disallow"
        assert calque.config.calque_transfer_guard_device_to_host == "disallow"
    assert calque.config.calque_transfer_guard_host_to_device is None
    with calque.thread_guard(True), calque.softmax_custom_jvp(False), calque.auto_pcast(True):
        pass


@pytest.mark.parametrize(
    "name, value, error, text",
    [
        ("transfer_guard", "never", ValueError, "must be one of None, 'allow'"),
        ("numpy_rank_promotion", "maybe", ValueError, "must be one of 'allow', 'warn', 'raise'"),
        ("enable_x64", 3, ValueError, "must be a bool"),
        ("array_garbage_collection_guard", "log", NotImplementedError, "not reported"),
        ("jax2tf_associative_scan_reductions", True, NotImplementedError, "TensorFlow"),
    ],
)
def test_bad_values(name, value, error, text):
    with pytest.raises(error, match=text), getattr(calque, name)(value):
        pass


def test_a_value_is_required():
    with pytest.raises(TypeError, match="numpy_rank_promotion config option requires an argument"):
        calque.numpy_rank_promotion()
    with pytest.raises(TypeError, match="default_device config option requires an argument"):
        calque.default_device()


def test_flags_and_contexts_are_read_and_set():
    assert calque.numpy_rank_promotion.get_global() == calque.numpy_rank_promotion.value == "allow"
    try:
        calque.numpy_rank_promotion.set_global("raise")
        assert calque.config.numpy_rank_promotion == "raise"
    finally:
        calque.numpy_rank_promotion.set_global("allow")
    mine = calque.make_user_context(default_value=1)
    f = calque.jit(lambda x: x * mine.value)
    assert f(3.0) == 3.0
    mine.set_global(2)
    assert mine.get_global() == 2 and f(3.0) == 6.0
