"""Flags: names in both spellings, choices, overrides."""

import concurrent.futures
import gc
import os
import threading

import numpy as np
import pytest

import calque
from calque.core.config import _CHOICES, Config, config
from calque.machine.code import diskcache


def test_both_spellings():
    assert (
        calque.config.read("calque_enable_x64") is False and calque.config.jax_enable_x64 is False
    )
    with calque.config.override("jax_enable_x64", True):
        assert calque.config.calque_enable_x64 is True
    assert calque.config.enable_x64 is False


def test_what_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match="Unrecognized config option: calque_nonsense"):
        calque.config.update("calque_nonsense", 1)
    with pytest.raises(ValueError, match="must be one of 'standard', 'strict'"):
        calque.config.update("calque_numpy_dtype_promotion", "loose")
    with pytest.raises(ValueError, match="must be a bool"):
        calque.config.update("calque_enable_x64", "yes")


def test_a_flag_changes_the_key_of_traces():
    before = calque.config.trace_key()
    with calque.config.override("calque_exact", True):
        assert calque.config.trace_key() != before
    assert calque.config.trace_key() == before


def test_what_calque_sets_itself_is_not_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("CALQUE_EXPORTING_FOR", "cuda")
    monkeypatch.setenv("CALQUE_DEBUG_NANS", "1")
    assert (Config().exporting_for, Config().debug_nans) == ((), True)


@pytest.mark.parametrize("kind", ["philox4x32", "philox2x32", "threefry4x32"])
def test_kinds_of_keys_that_do_not_exist_are_no_default(kind):
    with pytest.raises(ValueError, match=r"default_prng_impl must be one of 'threefry2x32', 'rbg'"):
        calque.config.update("calque_default_prng_impl", kind)
    with pytest.raises(ValueError, match=kind):
        calque.default_prng_impl(kind).__enter__()


def test_every_kind_of_key_that_is_allowed_makes_keys():
    for kind in _CHOICES["default_prng_impl"]:
        with calque.default_prng_impl(kind):
            assert calque.random.uniform(calque.random.key(0), (2,)).shape == (2,)


def test_options_that_an_engine_heeds_are_not_called_without_effect(caplog):
    before = calque.config.jax_enable_compilation_cache
    try:
        calque.config.update("jax_enable_compilation_cache", not before)
        assert calque.config.jax_enable_compilation_cache is not before
    finally:
        calque.config.update("jax_enable_compilation_cache", before)
    assert "no effect" not in caplog.text


def test_the_folder_of_compiled_programs(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("CALQUE_CACHE_DIR", os.environ.get("CALQUE_CACHE_DIR", ""))
    before = diskcache.directory()
    try:
        calque.config.update("jax_compilation_cache_dir", tmp_path / "here")
        assert diskcache.directory().startswith(str(tmp_path / "here"))
        assert os.environ["CALQUE_CACHE_DIR"] == str(
            tmp_path / "here"
        )  # of processes started later
    finally:
        calque.config.update("jax_compilation_cache_dir", None)
    assert diskcache.directory() == before and "no effect" not in caplog.text
    monkeypatch.delenv("CALQUE_CACHE_DIR")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "there"))
    try:
        calque.config.update_from_environment()
        assert diskcache.directory().startswith(str(tmp_path / "there"))
    finally:
        monkeypatch.undo()
        calque.config.update("jax_compilation_cache_dir", None)


def in_thread(function):
    """What a function gives in a thread of its own."""
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def test_a_block_holds_for_its_thread_alone():
    def outside():
        return config.enable_x64, calque.numpy.array(np.float64(0)).dtype, config.trace_key()

    key = config.trace_key()
    with calque.enable_x64():
        assert calque.numpy.array(np.float64(0)).dtype == np.float64
        assert in_thread(outside) == (False, np.float32, key)
        assert config.trace_key() != key
        assert calque.enable_x64.value is True and calque.enable_x64.get_global() is False
    assert type(config) is Config  # reading a flag costs nothing again


def test_blocks_of_two_threads_that_overlap_end_as_they_began():
    """Each restores its own: the value that the other had when it began is nothing to it."""
    first, second, done = (threading.Event() for _ in range(3))

    def early():
        with calque.enable_x64():
            first.set()
            second.wait()
        done.set()

    def late():
        first.wait()
        with calque.enable_x64():
            second.set()
            done.wait()
            assert config.enable_x64
        return config.enable_x64

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        one, two = threads.submit(early), threads.submit(late)
        one.result()
        assert two.result() is False
    assert config.enable_x64 is False


def test_the_value_of_the_process_changes_behind_a_block():
    before = config.numpy_rank_promotion
    try:
        with calque.numpy_rank_promotion("raise"):
            config.update("calque_numpy_rank_promotion", "warn")
            assert config.numpy_rank_promotion == "raise"
            assert in_thread(lambda: config.numpy_rank_promotion) == "warn"
        assert config.numpy_rank_promotion == "warn"
    finally:
        config.update("calque_numpy_rank_promotion", before)


def test_blocks_that_are_left_in_another_order():
    outer, inner = calque.debug_nans(True), calque.debug_nans(False)
    outer.__enter__()
    inner.__enter__()
    inner.__exit__(None, None, None)
    assert config.debug_nans is True
    outer.__exit__(None, None, None)
    assert config.debug_nans is False


def test_a_thread_that_ends_inside_a_block_leaves_nothing():
    blocks, seen = [calque.enable_x64()], []

    def enter():
        blocks[0].__enter__()
        seen.append(config.enable_x64)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [True]
    assert not config.of_threads() and type(config) is Config
    with calque.enable_x64():
        blocks.clear()  # it ends now, in this thread
        gc.collect()
        assert config.enable_x64 is True


def test_options_without_effect_have_values_in_blocks_too():
    assert config.jax_pgle_profiling_runs != 7
    with config.override("jax_pgle_profiling_runs", 7):
        assert config.jax_pgle_profiling_runs == 7
        assert in_thread(lambda: config.jax_pgle_profiling_runs) != 7
    assert config.jax_pgle_profiling_runs != 7


def test_a_flag_that_is_added_inside_a_block():
    with calque.enable_x64():
        context = calque.make_user_context(1)
        with context(2):
            assert context.value == 2 and context.get_global() == 1
            assert in_thread(lambda: context.value) == 1
    assert context.value == 1


@pytest.mark.parametrize("flag", ["debug_nans", "debug_infs"])
def test_results_are_looked_at_in_the_thread_that_asks(flag):
    x = calque.numpy.zeros(3)
    with getattr(calque, flag)(True):
        assert in_thread(lambda: bool(calque.numpy.isfinite(1 / x - 1 / x).any())) is False
        with pytest.raises(FloatingPointError):
            1 / x - 1 / x


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore")  # a peer that was imported before warns of any fork
def test_a_child_has_the_flags_of_the_thread_that_forked():
    inside, go_on = threading.Event(), threading.Event()

    def stay():
        with calque.enable_x64():
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if not config.of_threads() and config.enable_x64 is False else 1)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
