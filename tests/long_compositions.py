"""Random programs under random transformations, by the thousand. From the root of the repository:

    python -m tests.long_compositions --programs 2000 [--seed 0] [--no-peer] [--peer-every n]
    [--no-native] [--no-shrink]

Each failure prints the seed, the program made as small as possible, its jaxpr, and a `Program(...)`
to paste into a test.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("CALQUE_VERIFY_KERNELS", "1")

from tests.compositions.checks import Checker, report
from tests.compositions.programs import Program, make, shrink


def failing(checker: Checker, what: str) -> Callable[[Program], bool]:
    return lambda p: (checker.problem(p) or "").split(":")[0] == what


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-peer", action="store_true", help="leave JAX out")
    parser.add_argument(
        "--peer-every",
        type=int,
        default=1,
        help="of programs that finite differences decide, ask JAX about every n-th",
    )
    parser.add_argument(
        "--no-native",
        action="store_true",
        help="run the meanings only: try the rules, compile nothing",
    )
    parser.add_argument(
        "--no-shrink", action="store_true", help="print failing programs as they are"
    )
    o = parser.parse_args()
    checker = Checker(peer=not o.no_peer, native=not o.no_native, peer_every=o.peer_every)
    if checker.jax is not None:
        checker.jax.config.update("jax_disable_most_optimizations", True)
    failures: list[int] = []
    done, start = 0, time.perf_counter()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the run with its summary
        for seed in range(o.seed, o.seed + o.programs):
            if not clean(checker, seed, not o.no_shrink):
                failures.append(seed)
            done += 1
            if done % 100 == 0:
                print(
                    f"{done} programs, {len(failures)} failures,"
                    f" {time.perf_counter() - start:.0f} s",
                    flush=True,
                )
    print(
        f"{done} programs, {len(failures)} failures {failures}, {time.perf_counter() - start:.0f} s"
    )
    for title, counts in (("compared", checker.done), ("skipped", checker.skipped)):
        print(f"{title}: " + ", ".join(f"{k} {n}" for k, n in counts.most_common()))
    return bool(failures)


def clean(checker: Checker, seed: int, small: bool) -> bool:
    """Whether a program passes; if not, it is printed, made as small as possible when asked for."""
    p = make(seed)
    problem = checker.problem(p)
    if problem:
        print(f"---- seed {seed}: {problem[:300]}", flush=True)
        p = shrink(p, failing(checker, problem.split(":")[0])) if small else p
        print(report(p, checker.problem(p) or problem), flush=True)
    return problem is None


if __name__ == "__main__":
    sys.exit(main())
