"""jit: signatures of calls, captured values, sizes that change, the call path."""
