#!/usr/bin/env python3
"""Installs a wheel into a bare environment and measures what a user gets: what the wheel holds, how
many megabytes it brings and whose they are, how long a process takes to start.

    python tools/check_install.py [dist/calque-0.1.0-py3-none-any.whl] [--with numpy==1.26.4]

Without a wheel it builds one. Exits with 1 where something is missing, where the installation is
larger than the limit, or where the installed package does not compute.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 430  # megabytes, of 10**6 bytes
NEEDED = {
    "types": r"calque/py\.typed",
    "stubs": r"calque/core/vocabulary\.pyi",
    "licence": r"calque-[^/]*\.dist-info/licenses/LICENSE",
    "commands": r"calque-[^/]*\.dist-info/entry_points\.txt",
}
IMAGES = r"calque/images/.*\.pack"
DECLARED = ("Requires-Python: >=3.11", "License-Expression: Apache-2.0", "Classifier: Typing ::")

# What a new user runs first: the value is checked, the time taken, and what was imported for it.
PROGRAM = """
import json, sys, time
start = time.perf_counter()
import calque as jax, calque.numpy as jnp
imported = time.perf_counter()
x = jnp.linspace(0.0, 1.0, 1000)
value = float(jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))(x)[0])
done = time.perf_counter()
print(json.dumps({"import": imported - start, "call": done - imported, "value": value,
    "loaded": [m for m in ("llvmlite", "scipy") if m in sys.modules],
    "numpy": sys.modules["numpy"].__version__}))
"""
EXPECTED = 272.757  # the sum of sin(x)**2 at these places


def lacks(wheel: str, images: bool) -> list[str]:
    """What a wheel should hold and does not."""
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
        text = file.read(metadata).decode()
    needed = NEEDED | ({"images": IMAGES} if images else {})
    found = [what for what, p in needed.items() if not any(re.fullmatch(p, n) for n in names)]
    return found + [line for line in DECLARED if f"\n{line}" not in text]


def shares(packages: pathlib.Path) -> dict[str, int]:
    """The bytes under site-packages, by what they belong to, the largest first."""
    sizes: collections.Counter[str] = collections.Counter()
    for path in packages.rglob("*"):
        if path.is_file() and not path.is_symlink():
            top = path.relative_to(packages).parts[0]
            # numpy, numpy.libs and numpy-2.4.dist-info are one thing
            sizes[re.split(r"\.libs$|-\d|\.py$", top)[0]] += path.stat().st_size
    return dict(sizes.most_common())


def build(directory: str) -> str:
    """A wheel of this checkout, without what an earlier build left."""
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", directory]
    subprocess.run([*command, str(ROOT)], check=True)
    return str(next(pathlib.Path(directory).glob("calque-*.whl")))


def install(wheel: str, directory: str, others: list[str]) -> tuple[str, pathlib.Path]:
    """A new environment with the wheel: its Python, and where its packages are."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    python = os.path.join(directory, "bin", "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    # with a path to a checkout, pip would find calque there and install nothing
    own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([*command, wheel, *others], check=True, env=own)
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]
    return python, pathlib.Path(subprocess.check_output(where, text=True).strip())


def first_program(python: str, cache: str) -> dict:
    """What the program of a new user says, in a process without variables of ours."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CALQUE", "PYTHON", "JAX"))}
    out = subprocess.check_output(
        [python, "-c", PROGRAM], env={**kept, "CALQUE_CACHE_DIR": cache}, text=True, cwd=cache
    )
    return json.loads(out)


def measure(python: str) -> dict[str, dict]:
    """The first process on a machine, and the best of three after it."""
    with tempfile.TemporaryDirectory() as cache:
        first = first_program(python, cache)
        later = [first_program(python, cache) for _ in range(3)]
    return {"first process": first, "later processes": min(later, key=lambda f: f["import"])}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("wheel", nargs="?", help="built from this checkout unless it is given")
    parser.add_argument("--with", dest="others", action="append", default=[], metavar="PACKAGE")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="MEGABYTES")
    parser.add_argument("--images", action="store_true", help="the wheel must hold images")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        wheel = os.path.abspath(given.wheel or build(os.path.join(directory, "wheel")))
        problems = [f"the wheel lacks {what}" for what in lacks(wheel, given.images)]
        print(f"{os.path.basename(wheel)}: {os.path.getsize(wheel) / 1e6:.1f} MB")
        python, packages = install(wheel, os.path.join(directory, "bare"), given.others)
        sizes = shares(packages)
        total = sum(sizes.values()) / 1e6
        print(f"installed: {total:.0f} MB of at most {given.limit:.0f}")
        for name, size in sizes.items():
            if size > 1e6:
                print(f"  {name:<12} {size / 1e6:6.1f} MB  {size / 1e4 / total:4.0f} %")
        if total > given.limit:
            problems.append(f"{total:.0f} MB are installed, at most {given.limit:.0f} are allowed")
        for when, found in measure(python).items():
            loaded = " and ".join(found["loaded"]) or "neither llvmlite nor SciPy"
            print(
                f"{when}: import {found['import']:.2f} s, first call {found['call']:.2f} s,"
                f" loads {loaded}; NumPy {found['numpy']}"
            )
            if abs(found["value"] - EXPECTED) > 0.01:
                problems.append(f"{when}: the value is {found['value']}, not {EXPECTED}")
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
