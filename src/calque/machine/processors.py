"""The processors that this process may use, and how many threads it is to have."""

from __future__ import annotations

import os
from typing import Final

from calque.machine.once import once

MAX_THREADS: Final = 256


def available_cpus() -> int:
    """The processors this process may use at once."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    quota = _granted()
    return max(1, min(count, MAX_THREADS, int(quota + 0.5) if quota else count))


@once
def _granted() -> float:
    """The processors that this process was granted when it first asked: it reads many files."""
    return _cgroup_cpus()


def _cgroup_cpus(root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> float:
    """The processors that the control group (version 1 or 2) grants, the narrowest of its
    ancestors' grants; 0 when unbounded."""
    grants = []
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        folders = (
            [root]
            if not controllers
            else [f"{root}/cpu", f"{root}/cpu,cpuacct"]
            if "cpu" in controllers
            else []
        )
        for folder in folders:
            here = os.path.normpath(folder + path)
            while here.startswith(root):
                grants.append(_grant(here))
                here = os.path.dirname(here)
    return min((grant for grant in grants if grant), default=0.0)


def _grant(folder: str) -> float:
    modern = _text(f"{folder}/cpu.max").split()
    quota, period = (
        modern
        if len(modern) == 2
        else (_text(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    )
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return 0.0
    return int(quota) / int(period)


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def wanted_threads() -> int:
    """How many threads are to work at once, the calling one counted, until somebody says."""
    text = os.environ.get("CALQUE_NUM_THREADS", "").strip()
    if not text:
        return available_cpus()
    if not text.isdigit() or not 1 <= int(text) <= MAX_THREADS:
        raise ValueError(
            f"CALQUE_NUM_THREADS must be a whole number from 1 to {MAX_THREADS}, not {text!r}"
        )
    return int(text)
