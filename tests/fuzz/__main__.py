"""Random programs from the whole public interface:

    python -m tests.fuzz --programs 1000 --seed 0 [--minutes M] [--no-peer | --every-call]
                         [--every-check] [--functions NAME …] [--jobs J] [--ledger FILE]
    python -m tests.fuzz --chains …    (short chains that are compiled, of `chains.py`)

A program is one to four calls of public functions, operators or control flow, on arrays of drawn
dtypes, shapes and elements. Most programs run on the NumPy meanings and are asked for one law of
transformations, which costs little; others are compiled once and compared with the meanings; some
run natively throughout, where each call is compared with its meaning and the whole is asked one
thing: whether exact mode gives the bits of eager execution, or one of the laws. One call of each
is compared with JAX (`--every-call`: each of them). `--every-check` runs all programs natively,
and asks several things of each.

A process runs the programs of a thousand seeds, which draw from an eighth of the functions and five
dtypes, so that what one program compiled serves others; every second process verifies each kernel.
`--jobs J` runs so many processes at a time. A failure is made as small as possible and printed as a
test. The seed of a program is the seed given plus its number, so that `--seed S --programs 1` runs
one again. `--ledger FILE` keeps which seeds were run and what they found, and leaves out seeds that
the file names."""

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fuzz.catalogue import FORMS
from tests.fuzz.chains import TEXTS, ChainRun
from tests.fuzz.checks import Checker, by_call
from tests.fuzz.generate import NEIGHBOURS, Generator, Refusal, catalogue, configured
from tests.fuzz.ledger import Find, Ledger
from tests.fuzz.programs import Program, function, shrink, source, without_unused
from tests.fuzz.values import value

MEMORY = 12 << 30  # bytes of addresses that a process may have
COUNTS = "= "  # before what a process tells of its programs
NOTED = 50  # programs between two lines of the ledger
PEER = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # it runs each of its programs once


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
        self.checker = Checker(self.peer, options.every_call, options.every_check)
        # of programs that fail
        self.thorough = Checker(self.peer, every_check=options.every_check)
        self.failures = 0
        self.finds: list[Find] = []  # since the ledger was written
        self.called, self.features = self.generator.called, self.generator.features

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
                return (self.thorough.problem(q) or "").split(":")[0].split(" ")[0] == what

            small = shrink(without_unused(p), fails, 60)
            self.report(seed, self.thorough.problem(small) or wrong, small)

    def report(self, seed: int, problem: str, p: Program) -> None:
        self.failures += 1
        self.finds.append({"seed": seed, "problem": problem[:700], "test": source(p)})
        print(f"\n# seed {seed}: {problem[:700]}\n{source(p)}", flush=True)


def counted(run: Run | ChainRun, seeds: range, until: float, ledger: Ledger) -> int:
    """Runs the programs of these seeds in this process; the exit status."""
    done = noted = 0
    for seed in seeds:
        if time.monotonic() > until:
            break
        print(f"@{seed}", file=sys.stderr, flush=True)
        run.one(seed)
        done += 1
        if done - noted == NOTED:
            noted = note(run, seeds, noted, done, ledger)
    note(run, seeds, noted, done, ledger)
    print(f"{done} programs from seed {seeds.start}, {run.failures} failures")
    print("compared:", dict(run.checker.done.most_common()))
    print("said nothing:", dict(run.checker.skipped.most_common(30)))
    print(COUNTS + json.dumps(drawn(run)), file=sys.stderr, flush=True)
    return run.failures != 0


def note(run: Run | ChainRun, seeds: range, noted: int, done: int, ledger: Ledger) -> int:
    """Writes down the programs since those that are noted; how many are noted now."""
    ledger.add(seeds[noted:done], run.finds)
    run.finds = []
    return done


def drawn(run: Run | ChainRun) -> dict[str, dict[str, int]]:
    """How often programs held each function, form and feature, and what they were asked."""
    asked = dict(run.checker.asked)
    return {"calls": dict(run.called), "features": dict(run.features), "asked": asked}


def coverage(found: Sequence[dict[str, dict[str, int]]], names: Sequence[str]) -> str:
    """What the programs of all processes held, and what they did not."""
    calls: Counter[str] = Counter()
    features: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for each in found:
        asked.update(each["asked"])
        calls.update(each["calls"])
        features.update(each["features"])
    never = [name for name in names if not calls[name]]
    forms = {n.removeprefix("forms."): k for n, k in calls.most_common() if n in FORMS}
    return (
        f"drawn: {len(names) - len(never)} of {len(names)} functions in {calls.total()} calls;"
        f" not: {' '.join(never[:60])}{' …' * (len(never) > 60)}\n"
        f"forms: {forms}\nfeatures: {dict(features.most_common())}\n"
        f"asked: {dict(asked.most_common())}"
    )


class Blocks:
    """Blocks of programs, each in processes of its own: a crash costs one program. Several threads
    take them one after the other."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.until = time.monotonic() + 60 * options.minutes
        self.found: list[dict[str, dict[str, int]]] = []
        self.failed = 0
        self._turn = threading.Lock()
        self.ledger = Ledger(options.ledger)
        asked = range(options.seed, options.seed + options.programs)
        self._waiting = deque(
            block for part in self.ledger.left(asked) for block in blocks(part.start, part.stop)
        )

    def run(self) -> int:
        """The exit status of all."""
        others = [threading.Thread(target=self._work) for _ in range(self.options.jobs - 1)]
        for thread in others:
            thread.start()
        self._work()
        for thread in others:
            thread.join()
        if self.found:
            print(coverage(self.found, names(self.options)))
        if self.ledger.path is not None:
            print(self.ledger.summary())
        return self.failed != 0

    def _work(self) -> None:
        while time.monotonic() < self.until:
            with self._turn:
                if not self._waiting:
                    return
                seeds = self._waiting.popleft()
            rest = self._child(seeds)
            with self._turn:
                if rest:
                    self._waiting.appendleft(rest)

    def _child(self, seeds: range) -> range:
        """Runs these seeds in a process; those that it left because it died."""
        o = self.options
        left = min((self.until - time.monotonic()) / 60, 1e6)
        command = [sys.executable, "-m", "tests.fuzz", "--here", "--seed", str(seeds.start)]
        command += ["--programs", str(len(seeds)), "--minutes", f"{left:.2f}"]
        command += ["--no-peer"] * o.no_peer + ["--every-call"] * o.every_call
        command += ["--every-check"] * o.every_check + ["--chains"] * o.chains
        command += ["--ledger", o.ledger] if o.ledger else []
        command += ["--functions", *o.functions] if o.functions else []
        verified = {"CALQUE_VERIFY_KERNELS": str(int(seeds.start // NEIGHBOURS % 2 == 0))}
        child = subprocess.run(
            command,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**verified, **os.environ, **PEER},
        )
        lines = child.stderr.splitlines()
        with self._turn:
            self.failed += child.returncode != 0
            self.found += [
                json.loads(x.removeprefix(COUNTS)) for x in lines if x.startswith(COUNTS)
            ]
        if child.returncode in (0, 1):
            return range(0)
        marks = [line for line in lines if line.startswith("@")]
        last = int(marks[-1][1:]) if marks else seeds.stop - 1
        problem = f"the process ended with {child.returncode}\n{child.stderr[-2000:]}"
        print(f"# seed {last}: {problem}")
        died = {"seed": last, "problem": problem, "test": ""}
        self.ledger.add(range(last, last + 1), [died])
        return range(last + 1, seeds.stop)


def names(options: argparse.Namespace) -> Sequence[str]:
    """What programs draw from."""
    if options.chains:
        return tuple(TEXTS)
    return options.functions or [*catalogue(), *FORMS]


def blocks(start: int, stop: int) -> Iterator[range]:
    """The seeds in parts that draw from one part of the catalogue each."""
    while start < stop:
        end = min(start - start % NEIGHBOURS + NEIGHBOURS, stop)
        yield range(start, end)
        start = end


def limit_memory() -> None:
    """What asks for too much gets a MemoryError; the machine stays."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--no-peer", action="store_true", help="leave JAX out")
    parser.add_argument("--every-call", action="store_true", help="ask JAX about each call")
    parser.add_argument("--every-check", action="store_true", help="ask several laws of each")
    parser.add_argument("--functions", nargs="*", default=(), help="draw only these")
    parser.add_argument("--chains", action="store_true", help="short chains, compiled")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--ledger", help="a file of the seeds that were run and of their finds")
    parser.add_argument("--here", action="store_true", help="all in this process")
    options = parser.parse_args()
    if not options.here:
        return Blocks(options).run()
    limit_memory()
    seeds = range(options.seed, options.seed + options.programs)
    until = time.monotonic() + 60 * options.minutes
    run = ChainRun() if options.chains else Run(options)
    return counted(run, seeds, until, Ledger(options.ledger))


if __name__ == "__main__":
    sys.exit(main())
