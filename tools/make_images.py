"""Packs of images: the compiled runtime and its routines, which a wheel carries, so that the first
process on a machine compiles none of them.

    python tools/make_images.py [--keep] [--best] [LEVEL ...]

A pack is made for each level of x86-64 (all, unless some are named; `--best`: the best one alone)
that this machine can run, for the Python that runs this. `--keep` adds to the packs that another
Python made.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile

LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"


def units():
    """Everything of the runtime that is compiled as one: units, and the networks of sorts."""
    import calque.machine
    from calque.machine.lang.types import Function
    from calque.machine.lang.unit import Unit

    found = {}
    for entry in pkgutil.walk_packages(calque.machine.__path__, "calque.machine."):
        things = [*vars(importlib.import_module(entry.name)).values()]
        named = [*things]
        for table in [v for v in things if isinstance(v, dict)]:
            named += table.values()
        things += [f.unit for f in named if isinstance(f, Function)]
        found |= {id(v): v for v in things if isinstance(v, Unit)}
    network = importlib.import_module("calque.machine.routines.sort.network")
    return [*sorted(found.values(), key=lambda unit: unit.name), network]


def make_pack(level: str, keep: bool, directory: str) -> None:
    """Write the pack of a level; the processor of this process is that level."""
    from calque.machine.code import image, shipped

    if not image.usable() or shipped.level() != level:
        raise SystemExit(f"{level}: this machine runs no images of it")
    path = shipped.pack_of(level, directory)
    images = shipped.read(path) if keep else {}
    images |= dict(unit.image(level) for unit in units())
    shipped.write(path, images)
    print(f"{path}: {len(images)} images, {os.path.getsize(path):,} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("levels", nargs="*", metavar="LEVEL")
    parser.add_argument("--keep", action="store_true", help="add to the packs that are there")
    parser.add_argument("--best", action="store_true", help="only the best level there is")
    parser.add_argument("--to", default=str(SOURCE / "calque" / "images"), metavar="DIRECTORY")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path.insert(0, str(SOURCE))
    if given.here:
        make_pack(given.levels[0], given.keep, given.to)
        return 0
    made = 0
    for level in given.levels or LEVELS:
        command = [sys.executable, __file__, "--here", level, "--to", given.to]
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "CALQUE_CPU": level, "CALQUE_CACHE_DIR": cache}
            done = subprocess.run(
                command + ["--keep"] * given.keep, env=environment, capture_output=True, text=True
            )
        made += done.returncode == 0
        said = done.stderr.strip().splitlines() or ["no word of why"]
        print((done.stdout or f"{level}: not made: {said[-1]}").strip())
        if made and given.best:
            break
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
