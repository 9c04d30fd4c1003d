"""The flags of the configuration as command-line flags of absl, for programs that parse theirs with
it: `--jax_enable_x64` on the command line is `config.update("jax_enable_x64", True)`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from typing import Any, Final

from calque.machine.lazy import LazyModule

app: Final = LazyModule("absl.app")
flags: Final = LazyModule("absl.flags")


def define(config: Any, defaults: Mapping[str, Any]) -> None:
    """Define a flag for each name; what the command line says of them is taken over when absl has
    read it."""
    makers = {
        bool: flags.DEFINE_boolean,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
    }
    new = [name for name in defaults if f"jax_{name}" not in flags.FLAGS]
    for name in new:
        make = makers.get(type(defaults[name]), flags.DEFINE_string)
        make(f"jax_{name}", defaults[name], f"the flag jax_{name} of the configuration")
    if new:
        app.call_after_init(lambda: take_over(config, defaults))


def parse(config: Any, defaults: Mapping[str, Any]) -> None:
    """Define the flags, and take them over from the command line now: only what begins with --jax,
    as far as the first `--`."""
    define(config, defaults)
    given = itertools.takewhile(lambda a: a != "--", sys.argv)
    flags.FLAGS(["", *[a for a in given if a.startswith("--jax")]], known_only=True)
    take_over(config, defaults)


def take_over(config: Any, defaults: Mapping[str, Any]) -> None:
    for name in defaults:
        key = f"jax_{name}"
        if key in flags.FLAGS and flags.FLAGS[key].present:
            config.update(name, flags.FLAGS[key].value)
