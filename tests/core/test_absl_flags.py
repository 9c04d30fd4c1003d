"""The flags of the configuration as command-line flags of absl."""

import importlib.util
from types import SimpleNamespace

import pytest

from calque.core import absl_flags
from tests.compat.shared import run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("absl") is None, reason="absl is not installed"
)


@pytest.mark.skipif(importlib.util.find_spec("absl") is None, reason="absl is not installed")
def test_flags_of_absl():
    code = """
import calque; calque.as_jax()
import sys, jax
assert "absl" not in sys.modules
sys.argv = ["program", "--jax_enable_x64", "--jax_num_cpu_devices=2", "mine", "--", "--jax_no"]
jax.config.parse_flags_with_absl()
print(jax.config.jax_enable_x64, jax.config.jax_debug_nans, jax.device_count())
from absl import app
sys.argv = ["program", "--jax_debug_nans", "--nojax_enable_x64", "mine"]
jax.config.config_with_absl()  # once more changes nothing
app.run(lambda left: print(left, jax.config.jax_debug_nans, jax.config.jax_enable_x64))
"""
    assert run("-c", code).splitlines() == ["True False 2", "['program', 'mine'] True False"]


@pytest.fixture
def absl(monkeypatch):
    """A table of flags of its own, and what waits for the command line to be read."""
    from absl import app, flags

    own, waiting = flags.FlagValues(), []

    def define(make):
        return lambda name, default, text: make(name, default, text, flag_values=own)

    monkeypatch.setattr(absl_flags, "app", SimpleNamespace(call_after_init=waiting.append))
    fake = SimpleNamespace(
        FLAGS=own,
        **{n: define(getattr(flags, n)) for n in dir(flags) if n.startswith("DEFINE_")},
    )
    monkeypatch.setattr(absl_flags, "flags", fake)
    assert app is not None
    return own, waiting


class Config:
    def __init__(self):
        self.told = {}

    def update(self, name, value):
        self.told[name] = value


DEFAULTS = {"fast": False, "count": 3, "share": 0.5, "mode": "plain", "path": None}


def test_flags_have_the_types_of_their_defaults(absl):
    own, waiting = absl
    config = Config()
    absl_flags.define(config, DEFAULTS)
    own(["program", "--jax_fast", "--jax_count=7", "--jax_share=0.25", "--jax_path=/x"])
    assert config.told == {}
    (ready,) = waiting
    ready()
    assert config.told == {"fast": True, "count": 7, "share": 0.25, "path": "/x"}  # mode: not said
    absl_flags.define(config, DEFAULTS)  # they are there already
    assert len(waiting) == 1


def test_the_command_line_is_read_at_once_up_to_two_dashes(absl, monkeypatch):
    config = Config()
    monkeypatch.setattr(
        absl_flags.sys, "argv",
        ["program", "mine", "--other=1", "--jax_count=9", "--", "--jax_fast"],
    )  # fmt: skip
    absl_flags.parse(config, DEFAULTS)
    assert config.told == {"count": 9}
