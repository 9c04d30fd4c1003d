"""What the benchmarks share: timing in turn, and a table of ratios."""

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def seconds(call: Call, budget: float = 0.02) -> float:
    """Seconds per call: the best of three batches that fill the budget."""
    start = time.perf_counter()
    call()
    n = max(1, int(budget / max(time.perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(n):
            call()
        best = min(best, (time.perf_counter() - start) / n)
    return best


def compare(rows: dict[str, dict[str, Call]], rounds: int = 3) -> None:
    """Print for each row the time of each implementation and the ratios to calque."""
    ratios: dict[str, list[float]] = {}
    for name, calls in rows.items():
        times: dict[str, list[float]] = {k: [] for k in calls}
        for call in calls.values():
            call()
        for _ in range(rounds):
            for k, call in calls.items():
                times[k].append(seconds(call))
        ours = times["calque"]
        text = f"{name:36s} calque {statistics.median(ours) * 1e6:10.2f} us"
        for k in times:
            if k != "calque":
                r = statistics.median(t / o for t, o in zip(times[k], ours))
                ratios.setdefault(k, []).append(r)
                text += f"   {k} {statistics.median(times[k]) * 1e6:10.2f} us  {r:6.2f}x"
        print(text, flush=True)
    for k, values in ratios.items():
        print(
            f"against {k}: geometric mean {statistics.geometric_mean(values):.2f}x, ahead in"
            f" {sum(v >= 1 for v in values)} of {len(values)}"
        )


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
