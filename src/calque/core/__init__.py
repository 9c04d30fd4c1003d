"""What a program is: dtypes, avals, primitives, jaxprs, traces, arrays and pytrees."""
