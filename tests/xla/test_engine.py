"""Programs on XLA's CPU: how they are asked for, where their results are, what they raise."""

import functools
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.config import config
from calque.experimental import serialize_executable
from calque.explaining import explain
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
x = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def on_xla() -> Iterator[None]:
    with config.override("calque_platforms", "xla_cpu"):
        yield


def engine(f: Any, *args: Any) -> str:
    """The module of the class that runs a program."""
    return engine_of(jax.jit(f).lower(*args).compile())


def engine_of(compiled: Any) -> str:
    return type(compiled._executable).__module__


def test_the_platform_chooses_the_engine(on_xla: None) -> None:
    assert engine(jnp.sin, x) == "calque.xla.engine"
    np.testing.assert_allclose(jax.jit(jnp.sin)(x), np.sin(x), rtol=1e-6)
    with config.override("calque_platforms", "cpu"):
        assert engine(jnp.sin, x).startswith("calque.native.")
    with config.override("calque_platforms", "xla_cpu,cpu"):
        assert engine(jnp.sin, x) == "calque.xla.engine"


def test_the_environment_chooses_it() -> None:
    script = (
        "import calque, sys, calque.numpy as jnp; calque.jit(jnp.sin)(1.0);"
        "print('jaxlib' in sys.modules, 'jax' in sys.modules)"
    )
    for platform, expected in (("xla_cpu", "True False"), ("cpu", "False False")):
        environment = {**os.environ, "CALQUE_PLATFORMS": platform}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, check=True, capture_output=True
        )
        assert done.stdout.decode().strip() == expected


def test_unknown_platforms_name_the_known_ones() -> None:
    with (
        config.override("calque_platforms", "cuda"),
        pytest.raises(RuntimeError, match=r"Unable to initialize backend 'cuda'.*cpu, xla_cpu"),
    ):
        jax.jit(jnp.sin)(x)
    with pytest.raises(RuntimeError, match="Unknown backend tpu"):
        jax.devices("tpu")


def test_a_function_may_ask_for_the_engine() -> None:
    f = jax.jit(jnp.sin, backend="xla_cpu")
    out = f(x)
    assert out.devices() == {jax.devices("xla_cpu")[0]}
    assert type(f.lower(x).compile()._executable).__module__ == "calque.xla.engine"
    runtime = f.lower(x).compile().runtime_executable()
    assert type(runtime).__name__ == "LoadedExecutable" and len(runtime.hlo_modules()) == 1
    g = jax.jit(jnp.sin, device=jax.devices("xla_cpu")[0])
    np.testing.assert_array_equal(g(x), out)


def test_programs_run_where_their_arguments_are() -> None:
    there = jax.device_put(x, jax.devices("xla_cpu")[0])
    assert there.devices() == {jax.devices("xla_cpu")[0]}
    out = jax.jit(lambda v: v * 2)(there)
    assert out.devices() == there.devices() and out.sharding == there.sharding
    back = jax.device_put(out, jax.devices()[0])
    assert back.devices() == {jax.devices()[0]}
    np.testing.assert_array_equal(back, 2 * x)


def test_what_was_put_on_the_processor_stays_there(on_xla: None) -> None:
    """Where another platform is chosen, a device of calque's own engine is a place like others."""
    here = jax.devices("cpu")[0]
    f = jax.jit(lambda v: jnp.sin(v) * 2)
    y, nowhere = jax.device_put(x, here), jnp.asarray(x)
    assert y.committed and y.devices() == {here} != nowhere.devices()
    for asked in (f, jax.jit(f, backend="cpu"), jax.jit(f, device=here)):
        for _ in range(3):  # the later ones may be served by machine code
            assert asked(y).devices() == {here}
        assert engine_of(asked.lower(y).compile()).startswith("calque.native.")
    assert jax.jit(f, backend="cpu")(nowhere).devices() == {here}
    assert f(nowhere).devices() == f(nowhere).devices() == nowhere.devices()
    assert (y + 1).devices() == jnp.dot(y, nowhere.T).devices() == {here}
    g = jax.jit(lambda a, b: a @ b)
    assert g(y, nowhere.T).devices() == g(nowhere, y.T).devices() == {here}
    with jax.default_device(here):
        z = jax.device_put(x, here)
    assert z.devices() == f(z).devices() == {here}
    with pytest.raises(ValueError, match=r"platform CPU.*platform XLA_CPU"):
        g(y, jax.device_put(x, jax.devices()[0]).T)


def test_arguments_on_two_engines_are_refused() -> None:
    script = (
        "import calque as jax, calque.numpy as jnp\n"
        "here, there = jax.devices()[0], jax.devices('xla_cpu')[1]\n"
        "a, b = jax.device_put(jnp.ones(2), here), jax.device_put(jnp.ones(2), there)\n"
        "assert jax.jit(jnp.sin)(b).devices() == {there}\n"
        "c = jax.device_put(jnp.ones(2), jax.devices('xla_cpu')[0])\n"  # has the number of `here`
        "for f in (jax.jit(jnp.add), jnp.add):\n"
        "    for v in (b, c):\n"
        "        try:\n            f(a, v)\n"
        "        except ValueError as e:\n"
        "            assert 'device' in str(e) and 'XLA_CPU' in str(e), e\n"
        "        else:\n            raise AssertionError('accepted')\n"
    )
    environment = {**os.environ, "CALQUE_NUM_CPU_DEVICES": "2"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_the_stages_of_a_compiled_program(on_xla: None) -> None:
    compiled = jax.jit(lambda v: jnp.sin(v) @ v.T).lower(x).compile()
    assert compiled.as_text().startswith("HloModule")
    assert "stablehlo.sine" in compiled.as_text("stablehlo") and "sin" in compiled.as_text("jaxpr")
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().argument_size_in_bytes == x.nbytes
    with pytest.raises(ValueError, match="hlo, stablehlo and jaxpr"):
        compiled.as_text("loops")


def test_callbacks_and_their_errors(on_xla: None, capfd: pytest.CaptureFixture[str]) -> None:
    def shown(v: Any) -> Any:
        jax.debug.print("first {}", v[0, 0], ordered=True)
        jax.debug.print("second {}", v[0, 1], ordered=True)
        return jax.pure_callback(lambda a: np.asarray(a) * 2, v, v)

    np.testing.assert_array_equal(jax.jit(shown)(x), 2 * x)
    assert capfd.readouterr().out == "first 0.0\nsecond 1.0\n"

    def fails(a: Any) -> Any:
        raise ZeroDivisionError("no such number")

    with pytest.raises(ZeroDivisionError, match="no such number"):
        jax.jit(lambda v: jax.pure_callback(fails, v, v))(x)


def test_ordered_effects_in_loops(on_xla: None, capfd: pytest.CaptureFixture[str]) -> None:
    def body(i: Any, v: Any) -> Any:
        lax.cond(
            i > 0,
            lambda: jax.debug.print("later {}", i, ordered=True),
            lambda: jax.debug.print("zero {}", i, ordered=True),
        )
        return v + 1

    jax.jit(lambda v: lax.fori_loop(0, 3, body, v))(0.0)
    assert capfd.readouterr().out == "zero 0\nlater 1\nlater 2\n"


def test_constants_large_and_small_and_keys(on_xla: None) -> None:
    table, key = np.arange(1000.0, dtype=np.float32), jax.random.key(1)

    def f(i: Any) -> Any:
        whole = jnp.asarray(table)
        return whole[i], whole.sum(), jax.random.uniform(key)

    value, total, number = jax.jit(f)(3)
    assert (float(value), float(total)) == (3.0, 499500.0)
    assert float(number) == float(jax.random.uniform(key))


def test_sizes_are_found_or_given(on_xla: None) -> None:
    np.testing.assert_array_equal(jax.jit(lambda v: v[v > 0])(x), x[x > 0])
    out = jax.jit(lambda v: jnp.nonzero(v > 0, size=6))(x)
    assert out[0].shape == (6,)


def test_derivatives_vmap_and_scans(on_xla: None) -> None:
    def loss(w: Any, rows: Any) -> Any:
        return lax.scan(lambda c, row: (jnp.tanh(c * w + row.sum()), c), 0.0, rows)[0]

    g = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(0.5, np.stack([x, 2 * x]))
    with config.override("calque_platforms", "cpu"):
        want = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(0.5, np.stack([x, 2 * x]))
    np.testing.assert_allclose(g, want, rtol=1e-5)


def test_donated_arguments_are_gone(on_xla: None) -> None:
    f = jax.jit(lambda v: v + 1, donate_argnums=0)
    v = jnp.asarray(x) + 0
    np.testing.assert_array_equal(f(v), x + 1)
    assert v.is_deleted()


def test_a_function_that_asks_for_the_engine_takes_what_it_is_given() -> None:
    """Donated arrays are gone after the first call as after later ones; copies leave theirs."""
    there = jax.devices("xla_cpu")[0]
    f = jax.jit(lambda v: v + 1, donate_argnums=0, backend="xla_cpu")
    for _ in range(3):
        v = jax.device_put(x, there)
        np.testing.assert_array_equal(f(v), x + 1)
        assert v.is_deleted()


def test_results_and_arguments_outlive_each_other(on_xla: None) -> None:
    f = jax.jit(lambda v: (v + 1, v))
    outs = [f(jnp.full((1000,), float(i))) for i in range(50)]
    for i, (a, b) in enumerate(outs):
        assert float(a[0]) == i + 1 and float(b[-1]) == i


def test_wrong_types_are_refused(on_xla: None) -> None:
    compiled = jax.jit(jnp.sin).lower(x).compile()
    with pytest.raises(TypeError, match="Argument types differ"):
        compiled(x[0])


def test_a_deleted_argument_is_named(on_xla: None) -> None:
    give, use = jax.jit(lambda v: v + 1, donate_argnums=0), jax.jit(lambda v: v * 2)
    for _ in range(3):  # calls from Python, then those that machine code has matched
        gone = jnp.asarray(x) + 0
        use(gone), give(gone)
        for f in (give, use):
            with pytest.raises(RuntimeError, match=r"deleted with shape=float32\[2,3\]"):
                f(gone)


def test_programs_for_captured_values_that_were_go(on_xla: None) -> None:
    scope: dict[str, Any] = {}
    exec("def f(v):\n return v + CAPTURED", scope)
    f = jax.jit(scope["f"], on_stale="retrace")
    values = []
    for k in range(12):
        scope["CAPTURED"] = jnp.zeros(100) + k
        values.append(weakref.ref(scope["CAPTURED"]))
        assert float(f(1.0)[0]) == float(f(1.0)[0]) == k + 1.0
    gc.collect()
    assert sum(r() is not None for r in values) <= 6


def test_explain_shows_what_xla_made(on_xla: None, tmp_path: Any) -> None:
    f = jax.jit(lambda v: jax.pure_callback(np.sin, v, v) @ v.T)
    report = explain(f, x)
    text = str(report)
    assert "Compiled by XLA" in text and "dot(" in text and "pure_callback x1" in text
    assert "XLA compiles each new one" in text and not report.assembly
    report.save(str(tmp_path / "report.html"))
    assert "Compiled by XLA" in (tmp_path / "report.html").read_text()


def test_compiled_functions_as_bytes(on_xla: None) -> None:
    compiled = jax.jit(lambda v: jax.nn.relu(v) * 2).lower(x - 2).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    np.testing.assert_array_equal(again(x - 2), np.maximum(x - 2, 0) * 2)


def test_compiled_functions_as_bytes_keep_their_device() -> None:
    last = jax.devices("xla_cpu")[-1]
    compiled = jax.jit(jnp.sin, device=last).lower(x).compile()
    written = serialize_executable.serialize(compiled)
    again = serialize_executable.deserialize_and_load(*written, "xla_cpu", [last])
    assert again(x).devices() == {last} and engine_of(again) == "calque.xla.engine"


def test_options_reach_the_compiler_of_xla(on_xla: None, tmp_path: Any) -> None:
    def shown(folder: Any) -> dict[str, Any]:
        return {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}

    f = jax.jit(lambda x: x * 3, compiler_options=shown(tmp_path / "jit"))
    assert f(x).sum() == 45 and list((tmp_path / "jit").iterdir())
    g = functools.partial(jax.jit, compiler_options=shown(tmp_path / "given"))(lambda x: x * 4)
    assert g(x).sum() == 60 and list((tmp_path / "given").iterdir())
    lowered = jax.jit(lambda x: x * 5).lower(x)
    assert lowered.compile(shown(tmp_path / "compiled"))(x).sum() == 75
    assert list((tmp_path / "compiled").iterdir()) and lowered.compile()(x).sum() == 75
    assert lowered.compile({"exec_time_optimization_effort": 0.5})(x).sum() == 75


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"xla_speed": 3}, "compiled with xla_speed=3: .*No such compile option"),
        ({"xla_cpu_enable_fast_math": 5}, "compiled with .*not a valid bool value"),
        ({"optimization_level": 0.0, "num_partitions": 2}, "compiled with "),
    ],
)
def test_options_that_xla_does_not_take_are_named(
    on_xla: None, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match=text):
        jax.jit(lambda x: x + 7, compiler_options=options)(x)
    assert jax.jit(lambda x: x + 7)(x)[0, 0] == 7  # without them it is another program


def test_compiled_functions_say_where_their_arguments_go() -> None:
    (there,) = jax.devices("xla_cpu")[:1]
    compiled = jax.jit(lambda a: a + 1, backend="xla_cpu").lower(x).compile()
    assert compiled.input_shardings[0][0].device_set == {there}
    assert compiled.output_shardings.device_set == {there}


def test_arrays_of_a_platform_are_found() -> None:
    there = jax.device_put(x, jax.devices("xla_cpu")[0])
    here = jnp.ones(3)
    found = [jax.live_arrays(p) for p in ("xla_cpu", "cpu", None)]
    assert [any(y is there for y in some) for some in found] == [True, True, True]  # both are CPUs
    assert [any(y is here for y in some) for some in found] == [False, True, True]


def test_what_is_explained_is_the_program_of_the_engine_that_runs_it() -> None:
    device, f = jax.devices("xla_cpu")[0], jnp.sin
    on_xla, there = jax.jit(f, backend="xla_cpu"), jax.device_put(x, device)
    for program, v in ((on_xla, x), (jax.jit(f, device=device), x), (jax.jit(f), there)):
        assert jax.explain(program, v).code_title.startswith("Compiled by XLA")
    assert jax.explain(jax.jit(f), x).code_title.startswith("Machine code")
