"""Programs on XLA: lowered to StableHLO as text in plain Python; compiled and run by jaxlib, which
is imported when an engine of XLA is asked for."""
