"""Modules for platforms that were asked for: one, or several, of which an argument says which it
is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calque.core.jaxprs import ClosedJaxpr
from calque.xla.lower.module import LoweredModule, Request, lower_module


def for_platforms(closed: ClosedJaxpr, request: Request, platforms: Sequence[str]) -> LoweredModule:
    """The module of a program for these platforms, each of whose forms is written once where all
    have the same."""

    def lowered(platform: str, each: Sequence[str] = ()) -> LoweredModule:
        wanted = replace(request, platform=platform, platforms=each, names=platforms)
        return lower_module(closed, wanted)

    if len(platforms) == 1:
        return lowered(platforms[0])
    alike = [lowered(p, [p] * len(platforms)) for p in dict.fromkeys(platforms)]
    same = len({each.text() for each in alike}) == 1
    return alike[0] if same else lowered(platforms[0], platforms)
