"""Where the libraries of plugins of XLA are, and which of them programs run on unasked.

They are found by path, in `PJRT_NAMES_AND_LIBRARY_PATHS` ("name:path,name:path"), and as packages:
those in the namespace `jax_plugins`, those that name themselves by an entry point of the group
`jax_plugins`, and `libtpu`. A package is not imported (it would import jax). Nothing of the engine
is imported here, either: a process whose accelerator has no plugin does not wait for it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import mmap
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from calque.core.backends import PLUGIN_PATHS, plugins

GROUP: Final = "jax_plugins"
ENTRY: Final = b"GetPjrtApi\0"  # the function of every plugin, as libraries list names
_LOG: Final = logging.getLogger("calque")


def libraries() -> dict[str, str]:
    """The libraries of plugins that are there, by the name of their platform."""
    found = dict(_packages())
    found.update(_named_by_the_user())
    return found


def _named_by_the_user() -> Iterator[tuple[str, str]]:
    for entry in filter(None, os.environ.get(PLUGIN_PATHS, "").split(",")):
        name, colon, path = entry.partition(":")
        if not (name and colon and path):
            raise ValueError(f"{PLUGIN_PATHS} is a list of name:path, got {entry!r}")
        yield name.strip(), path.strip()


def _packages() -> Iterator[tuple[str, str]]:
    folders = [os.path.join(p, GROUP) for p in sys.path]
    for folder in filter(os.path.isdir, folders):
        for name in sorted(os.listdir(folder)):
            yield from _in_folder(name, os.path.join(folder, name))
    for point in importlib.metadata.entry_points(group=GROUP):
        module = point.value.partition(":")[0]
        try:
            spec = importlib.util.find_spec(module)
        except ImportError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from _in_folder(point.name, folder)
    spec = importlib.util.find_spec("libtpu")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from _in_folder("tpu", folder)


def _in_folder(package: str, folder: str) -> Iterator[tuple[str, str]]:
    """The library of a package that offers PJRT's function, whatever it is called; its platform is
    in the name of the package: cuda of xla_cuda12."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else ()
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith((".so", ".dylib", ".dll")) and offers_pjrt(path):
            yield _platform(package), path
            return


def _platform(package: str) -> str:
    accelerator = re.fullmatch(r"xla_(cuda|rocm)\d*", package)
    return accelerator[1] if accelerator else package


def offers_pjrt(path: str) -> bool:
    """Whether a library names the function by which plugins are entered."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
            return m.find(ENTRY) >= 0
    except (OSError, ValueError):  # not to be read, or empty
        return False


def incomplete(platform: str) -> str:
    """The folder of a package for this platform that has no library of PJRT; "" if there is
    none."""
    for root in sys.path:
        folder = os.path.join(root, GROUP)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            place = os.path.join(folder, name)
            if _platform(name) == platform and not any(_in_folder(name, place)):
                return place
    return ""


def expected(here: Sequence[str]) -> list[str]:
    """The platforms with a plugin that programs run on where none is chosen, the first that can be
    opened: those that the user names, then those of `here`, whose drivers this machine has."""
    named = dict(_named_by_the_user())
    there = libraries() if here else named
    return [*named, *[p for p in here if p in there and p not in named]]


def opened_unasked(here: Sequence[str]) -> Sequence[Any]:
    """The devices of the first of the `expected` platforms; none, and a word of why, where they
    cannot be opened: programs that ask for nothing run then as on a machine without."""
    failed = []
    try:
        for platform in expected(here):
            try:
                return plugins.call(platform)
            except Exception as e:  # whatever a plugin does
                failed.append(f"{platform!r}: {e}")
    except ValueError as e:
        failed.append(str(e))
    if failed:
        _LOG.warning(
            "An accelerator has its plugin here and cannot be used, so that programs run on the"
            " CPU: %s. Set CALQUE_PLATFORMS=cpu to ask for the CPU, and this is not said.",
            "; ".join(failed),
        )
    return ()
