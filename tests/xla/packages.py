"""Packages of plugins that are none, for Python to find: see the fixture `packages`."""

import pathlib

OFFERING = ("xla_cuda_plugin.so", "pjrt_plugin_abacus.so", "libtpu.so", "only.so", "unlikely.so")


def plugin(folder: pathlib.Path, name: str, *files: str) -> pathlib.Path:
    """A package with these files; some of them look like libraries of plugins."""
    place = folder / name
    place.mkdir(parents=True)
    for file in files:
        (place / file).write_bytes(b"no library" + b"\0GetPjrtApi\0" * (file in OFFERING))
    return place
