"""Which seeds were run, and what they found: a file of lines that several processes add to, so that
a run that ended goes on where it was."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Find = dict[str, Any]  # seed, problem, test


class Ledger:
    """A file of lines {"seeds": [first, past the last], "finds": […]}; without a path it keeps
    nothing."""

    def __init__(self, path: str | None):
        self.path = None if path is None else Path(path)

    def add(self, seeds: range, finds: Sequence[Find]) -> None:
        """Notes that these seeds were run. One write, so that lines of processes stay whole."""
        if self.path is None or not seeds:
            return
        line = json.dumps({"seeds": [seeds.start, seeds.stop], "finds": list(finds)}) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def entries(self) -> list[tuple[range, list[Find]]]:
        if self.path is None or not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # the machine stopped while it was written
                continue
            found.append((range(*entry["seeds"]), entry["finds"]))
        return found

    def left(self, seeds: range) -> Iterator[range]:
        """The parts of these seeds that no line names."""
        at = seeds.start
        for done, _ in sorted(self.entries(), key=lambda entry: entry[0].start):
            if done.start >= seeds.stop:
                break
            if done.start > at:
                yield range(at, done.start)
            at = max(at, done.stop)
        if at < seeds.stop:
            yield range(at, seeds.stop)

    def summary(self) -> str:
        entries = self.entries()
        finds = [find for _, some in entries for find in some]
        count = len(set().union(*(seeds for seeds, _ in entries)))
        seeds = " ".join(str(find["seed"]) for find in finds)
        return f"{self.path}: {count} programs, {len(finds)} finds{': ' * bool(finds)}{seeds}"
