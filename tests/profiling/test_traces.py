"""Timelines."""

import gzip
import json
import os

import calque as jax
import calque.numpy as jnp
from calque.profiling import traces
from calque.profiling.session import Session


def test_what_a_timeline_shows(tmp_path):
    f, x = jax.jit(lambda x: jnp.cosh(x @ x) * 0.77), jnp.ones((50, 50))
    with Session(1000) as session:
        with jax.profiler.StepTraceAnnotation("train", step_num=7):
            f(x)
        f(x)
    path = tmp_path / "t.json.gz"
    traces.write(session, str(path))
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    (step,) = [e for e in bars if e["cat"] == "step"]
    assert step["name"] == "train" and step["args"] == {"step_num": 7}
    kernels = [e for e in bars if e["cat"] == "kernel" and "matmul" in e["name"]]
    assert len(kernels) >= 2 and step["ts"] <= kernels[0]["ts"]
    assert all(e["args"]["line"].startswith(__file__ + ":") for e in kernels)
    assert kernels[0]["args"]["bytes"] > 0 and kernels[0]["args"]["function"] == "<lambda>"
    calls = [e for e in bars if e["cat"] == "call" and e["name"] == "<lambda>"]
    assert len(calls) == 2
    for call, kernel in zip(calls, [e for e in kernels if "prepare" not in e["name"]]):
        assert call["ts"] <= kernel["ts"]
        assert kernel["ts"] + kernel["dur"] <= call["ts"] + call["dur"] + 0.001
    assert {"trace", "passes", "compile", "plan"} <= {e["cat"] for e in bars}
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names.keys() >= {e["tid"] for e in bars} and "MainThread" in names.values()
    assert all(e["pid"] == os.getpid() for e in events)
    counters = [e for e in events if e["ph"] == "C"]
    assert len(counters) == 3 and all(e["args"]["in use"] >= 0 for e in counters)


def test_events_that_were_lost_are_said():
    f, x = jax.jit(lambda x: x + 1), jnp.ones(3)
    f(x)
    with Session(2) as session:
        for _ in range(10):
            f(x)
    assert any("events were lost" in e["name"] for e in traces.events(session))


def test_single_operations_and_who_calls_them():
    x = jnp.ones(100)
    with Session(1000) as session:
        jnp.sinh(x)
        jax.lax.linalg.schur(jnp.eye(3))
    bars = [e for e in traces.events(session) if e["ph"] == "X"]
    (kernel,) = [e for e in bars if e["name"] == "sinh" and e["cat"] == "kernel"]
    here = test_single_operations_and_who_calls_them.__code__
    assert kernel["args"]["line"] == f"{__file__}:{here.co_firstlineno + 3}"
    calls = [e for e in bars if e["name"] == "single operation" and e["cat"] == "call"]
    assert kernel["args"]["line"] in [e["args"]["line"] for e in calls]
    (meaning,) = [e for e in bars if e["cat"] == "NumPy" and "schur" in e["name"]]
    assert meaning["args"]["line"] == f"{__file__}:{here.co_firstlineno + 4}"
