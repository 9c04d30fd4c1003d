"""`python -m calque`: what it understands.

A command is a function of what `argparse` has found; it returns the status for the shell: 0, 1
where something is wrong with what it looked at, 2 where it was called wrongly."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
import time
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.command_line import caching, checking, information
from calque.command_line.targets import TargetError, called
from calque.compat.running import problem_of, run
from calque.compat.switch import as_jax
from calque.explaining.report import Report, explain
from calque.explaining.showing import show
from calque.profiling import perf, traces
from calque.profiling.report import Profile, profile
from calque.profiling.session import EVENTS, Session
from calque.transforms.jit.decorator import jit

PROGRAM: Final = "python -m calque"
DESCRIPTION: Final = """\
Runs Python programs for JAX on calque, and says what becomes of them.

  python -m calque script.py [arguments ...]     run a program; `import jax` is served by calque
  python -m calque -m module [arguments ...]     run a module
  python -m calque -c code [arguments ...]       run code"""
PROGRAMS: Final = "A program is script.py, -m module or -c code, with its arguments"
TARGET: Final = """\
A function is FILE.py:NAME or MODULE:NAME; it is compiled, as by `jit`. Its arguments are types such
as 'f32[100,10]' or 'i32' (arrays of ones are made of them), or Python numbers, strings, None, and
tuples, lists and dicts of all that, such as '{"w": f32[10,3], "b": f32[3]}'."""


class Takes(NamedTuple):
    """How a command that has a program is called: what it takes, and what stands before the
    program."""

    usage: str
    with_value: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


COMMANDS: Final = ("run", "explain", "show", "profile", "info", "cache", "doctor")
ACTIONS: Final = ("show", "where", "size", "clear", "warm")
WITH_PROGRAM: Final = {
    "run": Takes("program [arguments ...]"),
    "profile": Takes("[--trace FILE] [--perf-map] program [arguments ...]", ("--trace",)),
    "cache": Takes(f"[{' | '.join(ACTIONS)}] [program [arguments ...]]", words=ACTIONS),
}


def parser() -> argparse.ArgumentParser:
    """What the command line is."""
    p = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--version", action="store_true", help="print the version and end")
    commands = p.add_subparsers(metavar="command", dest="command")

    def command(
        name: str, help: str, function: Callable[[Any], int], epilog: str = ""
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(function=function)
        if name in WITH_PROGRAM:
            options = made.format_usage().removeprefix("usage: ").strip()
            made.usage = f"{options} {WITH_PROGRAM[name].usage}"
        return made

    command("run", "run a program, as without a command", _run, PROGRAMS)
    c = command("explain", "say what calque makes of a function", _explain, TARGET)
    _add_target(c)
    c.add_argument("--html", metavar="FILE", help="write a page for a browser instead of text")
    c = command("show", "draw a function: graph, timeline and loops, as a page", _show, TARGET)
    _add_target(c)
    c.add_argument("-o", "--output", metavar="FILE", help="the page; NAME.html unless told")
    c.add_argument("--open", action="store_true", help="show it in a browser")
    c = command(
        "profile",
        "say where the time of a program, or of a function, goes",
        _profile,
        f"{PROGRAMS}, or a function and its arguments.\nThe table of a program goes to the standard"
        f" error, behind what the program prints.\n\n{TARGET}",
    )
    c.add_argument("--trace", metavar="FILE", help="write a timeline for https://ui.perfetto.dev")
    c.add_argument("--perf-map", action="store_true", help="let `perf` know the names of kernels")
    c = command("info", "print versions, machine, cache, engines, for a report", information.main)
    c.add_argument("--json", action="store_true", help="print JSON")
    c = command(
        "cache", "look at compiled code on disk, delete it, or make it", caching.main, PROGRAMS
    )
    c.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=ACTIONS,
        help="show: both of the next (default); where: its folder; size: its bytes; clear: delete"
        " all; warm: run the program that follows so that its code is there, or without one"
        " compile what most programs need",
    )
    command("doctor", "check the installation", checking.main)
    return p


def _add_target(p: argparse.ArgumentParser) -> None:
    p.add_argument("target", help="FILE.py:NAME or MODULE:NAME")
    p.add_argument("arguments", nargs="*", help="types or values of its arguments")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; the status for the shell."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    p = parser()
    if not given:
        p.print_help(sys.stderr)
        return 2
    if _is_program(given[0]):
        return _checked_run(given)
    own, program = _split(given)
    if given[0] == "cache" and len(own) == 1 and program and not os.path.exists(program[0]):
        own, program = list(given), []  # no action, and no program: the parser says what there is
    found = p.parse_args(own)
    found.program = program
    if found.version:
        print(importlib.import_module("calque").__version__)
        return 0
    status: int = found.function(found)
    return status


def _split(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is ours, and from where on a program and its arguments begin, whose options are its
    own."""
    takes = WITH_PROGRAM.get(given[0])
    if takes is None:
        return list(given), []
    at = 1
    while at < len(given) and given[at] not in ("-m", "-c"):
        if given[at] in takes.with_value:
            at += 2
        elif given[at].startswith("-") or given[at] in takes.words:
            at += 1
        else:
            break
    return list(given[:at]), list(given[at:])


def _is_program(first: str) -> bool:
    """Whether it is a program rather than a command: a file of the name of a command is one with
    its folder, `./cache`."""
    return first not in ("-h", "--help", "--version", *COMMANDS)


def _checked_run(arguments: Sequence[str]) -> int:
    problem = problem_of(arguments) if arguments else "there is no program to run"
    if problem:
        near = difflib.get_close_matches(arguments[0], COMMANDS, 1) if arguments else []
        remedy = f"did you mean `{near[0]}`?" if near else f"`{PROGRAM} --help` shows what there is"
        print(f"{PROGRAM}: {problem}; {remedy}", file=sys.stderr)
        return 2
    run(arguments)
    return 0


def _run(found: Any) -> int:
    return _checked_run(found.program)


def _explain(found: Any) -> int:
    try:
        function, args = called(found.target, found.arguments)
    except TargetError as error:
        return _wrong(error)
    report: Report = explain(function, *args)
    if found.html:
        report.save(found.html)
        print(found.html)
    else:
        print(report)
    return 0


def _show(found: Any) -> int:
    try:
        function, args = called(found.target, found.arguments)
    except TargetError as error:
        return _wrong(error)
    path = found.output or f"{found.target.rpartition(':')[2]}.html"
    show(function, *args).save(path)
    print(path)
    if found.open:
        webbrowser.open(f"file://{os.path.abspath(path)}")
    return 0


def _wrong(error: Exception) -> int:
    print(f"{PROGRAM}: {error}", file=sys.stderr)
    return 2


def _profile(found: Any) -> int:
    arguments = found.program
    if arguments and ":" in arguments[0] and not os.path.exists(arguments[0]):
        try:
            function, args = called(arguments[0], arguments[1:])
        except TargetError as error:
            return _wrong(error)
        made = profile(function if hasattr(function, "_function") else jit(function), *args)
        print(made)
        _write(made.session, found)
        return 0
    problem = problem_of(arguments) if arguments else "there is no program to profile"
    if problem:
        return _wrong(ValueError(problem))
    as_jax()
    session = Session(EVENTS if found.trace else 0)
    begun = time.perf_counter()
    session.start()
    try:
        run(arguments)
    finally:
        elapsed = time.perf_counter() - begun
        session.stop()
        sys.stdout.flush()
        print(Profile(arguments[0], session, 1, None, elapsed), file=sys.stderr)
        _write(session, found)
    return 0


def _write(session: Session, found: Any) -> None:
    if found.trace:
        traces.write(session, found.trace)
        print(f"timeline: {found.trace}", file=sys.stderr)
    if found.perf_map:
        print(f"names for perf: {perf.perf_map()}", file=sys.stderr)
