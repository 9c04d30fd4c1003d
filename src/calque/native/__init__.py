"""Programs on this CPU: array equations become loop nests over interned expressions, loop nests
become LLVM IR and machine code."""
