"""Run JAX's own tests, and those of the libraries built on it, with calque in JAX's place.

    CONFORMANCE_KIT=dir make conformance        (or: python tools/conformance.py dir)

The kit is no part of calque: a folder with `run_jax_suite.py`, `env.sh` and `clients/`, which reads
the tests out of git mirrors. Where it is not to be had this says so and ends well. These variables
are read: CONFORMANCE_PYTHON, the interpreter that has JAX and the libraries (otherwise the kit's
`env.sh` makes one); CONFORMANCE_SECONDS, how long each library's tests may run; CONFORMANCE_OUT,
where records are kept. The rates go into docs/conformance.md by hand, with the date."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = ("run_jax_suite.py", "env.sh", "clients/run_clients.py", "clients/run_programs.py")


def reason_to_skip(kit: str | None) -> str | None:
    """Why there is nothing to run, if so."""
    if not kit:
        return "set CONFORMANCE_KIT to the folder of the kit"
    missing = [n for n in NEEDED if not (pathlib.Path(kit) / n).exists()]
    return f"{kit} has no {', '.join(missing)}" if missing else None


def interpreter(kit: pathlib.Path) -> str:
    """The Python that has JAX, the libraries, and calque from this checkout."""
    named = os.environ.get("CONFORMANCE_PYTHON")
    if named:
        return named
    command = ["bash", str(kit / "env.sh"), str(ROOT)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def commands(kit: pathlib.Path, python: str, out: pathlib.Path, seconds: str) -> list[list[str]]:
    """What is run, in this order: JAX's tests; the libraries' tests on calque, then on JAX what
    failed, then the report; typical programs."""
    suite = [
        [python, str(kit / "run_jax_suite.py"), "--impl", package, "--tests", "all", "--cases", "1",
         "--json", str(out / f"suite.{package}.json"), *more]
        for package, more in (
            ("jax", []),
            ("calque", ["--pythonpath", str(ROOT / "src"),
                        "--control", str(out / "suite.jax.json")]),
        )
    ]  # fmt: skip
    clients = [python, str(kit / "clients" / "run_clients.py"), "--level", "own", "--out",
               str(out / "clients"), "--work", str(out / "work")]  # fmt: skip
    return [
        *suite,
        [*clients, "--more", "--impl", "calque", "--seconds", seconds],
        [*clients, "--more", "--impl", "jax", "--seconds", seconds],
        [*clients, "--report"],
        [python, str(kit / "clients" / "run_programs.py"), "--level", "own"],
    ]


def main(arguments: list[str]) -> int:
    kit = arguments[0] if arguments else os.environ.get("CONFORMANCE_KIT")
    why = reason_to_skip(kit)
    if why is not None or kit is None:
        print(f"conformance: skipped, {why}")
        return 0
    folder = pathlib.Path(kit).resolve()
    named = os.environ.get("CONFORMANCE_OUT")
    out = pathlib.Path(named or tempfile.mkdtemp(prefix="conformance-")).resolve()
    (out / "work" / "extra").mkdir(parents=True, exist_ok=True)
    here = out / "work" / "extra" / "calque"  # on the path of the libraries' tests, before others
    if not here.exists():
        here.symlink_to(ROOT / "src" / "calque")
    python, seconds = interpreter(folder), os.environ.get("CONFORMANCE_SECONDS", "1200")
    print(f"conformance: records in {out}", flush=True)
    failed = 0
    for command in commands(folder, python, out, seconds):
        print("$", *command, flush=True)
        failed += subprocess.run(command, cwd=pathlib.Path(command[1]).parent).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
