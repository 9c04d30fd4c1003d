"""StableHLO as text: types, constants, operations, and how they are printed."""
