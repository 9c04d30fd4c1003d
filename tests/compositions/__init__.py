"""Random programs under random stacks of transformations; `tests/long_compositions.py` runs them by
the thousand."""
