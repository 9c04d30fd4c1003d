"""Primitives that carry programs: calls, loops, branches, custom rules, checkpoints, references."""
