"""A function traced for one kind of arguments."""

import logging

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import backends, pytrees
from calque.core.config import config
from calque.core.devices import Device
from calque.sharding import SingleDeviceSharding
from calque.transforms.jit.traced import TracedFunction, log


def traced(f, *args):
    closed = calque.make_jaxpr(f)(*args)
    tree = pytrees.structure((args, {}))
    return TracedFunction(closed, [], tree, pytrees.structure(f(*args)), "f")


X = jnp.arange(3.0)


def test_a_program_is_compiled_once(monkeypatch):
    compiled = []
    compile_program = backends.compile_program

    def counting(*args):
        compiled.append(args[1].name)
        return compile_program(*args)

    monkeypatch.setattr(backends, "compile_program", counting)
    t = traced(lambda x: (x * 2, x.sum()), X)
    for _ in range(3):
        outs, placed, *_ = t.run([X])
        assert not placed and [np.asarray(o).tolist() for o in outs] == [[0, 2, 4], 3]
    assert compiled == ["f"] and t.compiled() is t.executable


def test_what_is_compiled_while_a_flag_changes_is_not_kept():
    t = traced(jnp.sin, X)
    t.settings = None  # another thread changed the configuration
    assert t.compiled() is not t.compiled() and t.executable is None


def test_results_are_where_the_program_says():
    mesh = calque.sharding.Mesh(np.array(calque.devices()[:1]), ("x",))
    s = calque.sharding.NamedSharding(mesh, calque.sharding.PartitionSpec("x"))
    t = traced(lambda x: calque.lax.with_sharding_constraint(x * 2, s), X)
    (out,), placed, *_ = t.run([X])
    assert placed and out.sharding == s and t.own_place() is None
    (moved,), placed, *_ = traced(jnp.sin, X).run([calque.device_put(X, s)])
    assert placed and moved.sharding == s


def test_sizes_that_are_found():
    def count(x):
        return jnp.nonzero(x)[0].sum()

    assert traced(count, X).finds and not traced(jnp.sum, X).finds


def test_what_is_said_of_compilations(caplog):
    with caplog.at_level(logging.WARNING, logger="calque"):
        log("nothing")
        with config.override("log_compiles", True):
            traced(lambda x: x * 7, X).compiled()
    begun, ended = caplog.messages
    assert begun == "Compiling jit(f) for ShapedArray(float32[3])"
    assert ended.startswith("Finished XLA compilation of jit(f) in ")


class OtherDevice(Device):
    engine = "other"


def test_programs_run_on_the_engine_of_their_arguments():
    here, there, beside = map(
        SingleDeviceSharding, (calque.devices()[0], OtherDevice(0), OtherDevice(1))
    )
    t = traced(jnp.sin, X)
    assert t.place_of([None, here], []) is None
    assert t.place_of([None, there], []) == backends.Places(there.device_order)
    assert t.place_of([None], [None, there]) == backends.Places(there.device_order)
    for pair in ([there, beside], [there, here]):
        with pytest.raises(ValueError, match="f: the arguments and results of a program are on"):
            t.place_of(pair, [])


def test_programs_on_several_devices_of_another_engine():
    devices = np.array([OtherDevice(1), OtherDevice(0)])
    mesh = calque.sharding.Mesh(devices, ("x",))
    s = calque.sharding.NamedSharding(mesh, calque.sharding.PartitionSpec("x"))
    t = traced(jnp.add, X, X)
    where = backends.Places(tuple(devices), (None, s), (s,), (True,), (True, False))
    assert t.place_of([None, s], [s]) == where
    with pytest.raises(ValueError, match="the same devices of one engine"):
        t.place_of([s, SingleDeviceSharding(devices[0])], [])
