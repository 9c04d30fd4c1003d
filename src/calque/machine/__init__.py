"""The lowest floor: LLVM, machine code written in restricted Python, memory, threads, the disk
cache, and programs run by machine code.

Nothing here knows what an array program is. Files, from the bottom up:

- ``target``: the processor that code is generated for, its vector registers and caches
- ``diskcache``: compiled objects and other artefacts that outlive the process
- ``llvm``: LLVM text to addresses
- ``lang``: functions written in a small typed subset of Python, compiled through ``llvm``
- ``memory``: aligned blocks that are recycled
- ``threads``: one pool of native worker threads
- ``interp``: driver programs (kernels, copies, loops, branches, host calls) run by one machine-code
  interpreter
- ``verify``, ``program``: those programs as data: what is refused, and how they are built
- ``objects``, ``callpath``: C-level array objects and callables
"""
