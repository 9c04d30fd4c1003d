"""Random programs from the whole public interface:

    python -m tests.fuzz --programs 1000 --seed 0 [--minutes M] [--no-peer] [--functions NAME …]

Each failure is made as small as possible and printed as a test. The seed of a program is the seed
given plus its number, so that `--seed S --programs 1` runs one again."""

import argparse
import os
import sys
import time
from typing import Any

os.environ.setdefault("CALQUE_VERIFY_KERNELS", "1")

from tests.fuzz.checks import Checker, by_call
from tests.fuzz.generate import Generator, Refusal, configured
from tests.fuzz.programs import Program, function, shrink, source, without_unused
from tests.fuzz.values import value


def peer_module() -> Any:
    """JAX, or None where it is not installed."""
    try:
        import jax
        import jax.dtypes
        import jax.scipy.cluster.vq
        import jax.scipy.fft
        import jax.scipy.integrate
        import jax.scipy.ndimage
        import jax.scipy.signal
        import jax.scipy.stats
        import jax.tree_util
    except ImportError:
        return None
    return jax


def refusal_of(p: Program, peer: Any) -> str | None:
    """The error of the last call, if the peer takes the program."""
    xs = [value(x) for x in p.inputs]
    with configured(p.x64, peer):
        try:
            by_call(p, xs)
        except Exception as e:
            try:
                function(peer, p)(*xs)
            except Exception:
                return None
            return f"{type(e).__name__}: {e}"
    return None


class Run:
    """The programs of some seeds, one after the other."""

    def __init__(self, options: argparse.Namespace):
        self.peer = None if options.no_peer else peer_module()
        self.generator = Generator(self.peer, tuple(options.functions))
        self.checker = Checker(self.peer)
        self.failures = 0

    def one(self, seed: int) -> None:
        try:
            p = self.generator.program(seed)
        except Refusal as e:
            small = without_unused(e.program)
            if refusal_of(small, self.peer):
                small = shrink(small, lambda q: refusal_of(q, self.peer) is not None, 30)
            self.report(seed, f"refused: {e}", small)
            return
        wrong = self.checker.problem(p)
        if wrong is not None:
            name = wrong.split(":")[0]
            what = name.split(" ")[0]

            def fails(q: Program) -> bool:
                return (self.checker.problem(q) or "").split(":")[0].split(" ")[0] == what

            small = shrink(without_unused(p), fails, 60)
            self.report(seed, self.checker.problem(small) or wrong, small)

    def report(self, seed: int, problem: str, p: Program) -> None:
        self.failures += 1
        print(f"\n# seed {seed}: {problem[:700]}\n{source(p)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--no-peer", action="store_true", help="leave JAX out")
    parser.add_argument("--functions", nargs="*", default=(), help="draw only these")
    options = parser.parse_args()
    run, start, count = Run(options), time.monotonic(), 0
    for seed in range(options.seed, options.seed + options.programs):
        if time.monotonic() - start > 60 * options.minutes:
            break
        run.one(seed)
        count += 1
    print(f"\n{count} programs from seed {options.seed}, {run.failures} failures")
    print("compared:", dict(run.checker.done.most_common()))
    print("said nothing:", dict(run.checker.skipped.most_common(30)))
    never = [n for n in run.generator.names if not run.generator.called[n]]
    print(f"{len(run.generator.called)} functions called, {len(never)} not: {never[:40]}")
    return run.failures != 0


if __name__ == "__main__":
    sys.exit(main())
