"""The command line: `python -m calque`, or `calque`."""

from calque.command_line.commands import main

__all__ = ["main"]
