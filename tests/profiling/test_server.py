"""Profiles over HTTP."""

import gzip
import json
import threading
import urllib.error
import urllib.request

import pytest

import calque as jax
import calque.numpy as jnp


@pytest.fixture
def address():
    server = jax.profiler.start_server(0)
    yield f"http://127.0.0.1:{server.port}"
    jax.profiler.stop_server()


def test_a_timeline_of_what_other_threads_do(address):
    f, x, over = jax.jit(lambda x: jnp.cosh(x) * 0.3311), jnp.ones(9), threading.Event()

    def work():
        while not over.wait(0.001):  # that leaves the other threads their turns
            f(x)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        with urllib.request.urlopen(f"{address}/trace?seconds=0.3") as answer:
            events = json.loads(gzip.decompress(answer.read()))["traceEvents"]
    finally:
        over.set()
        worker.join()
    assert any(e["name"] == "cosh mul" for e in events)


def test_memory_and_what_there_is_not(address):
    with urllib.request.urlopen(f"{address}/memory") as answer:
        assert gzip.decompress(answer.read())
    with urllib.request.urlopen(address) as answer:
        assert b"/trace" in answer.read()
    for path, status in (("nothing", 404), ("trace?seconds=x", 400), ("trace?seconds=-1", 400)):
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(f"{address}/{path}")
        assert error.value.code == status
        error.value.close()


def test_one_server_at_a_time(address):
    with pytest.raises(ValueError, match="Only one profiler server"):
        jax.profiler.start_server(0)


def test_none_to_stop():
    with pytest.raises(ValueError, match="No active profiler server"):
        jax.profiler.stop_server()
