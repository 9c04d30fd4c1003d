"""LLVM text to machine code: the processor, the compiler, the cache on disk, images of code that is
mapped."""
