#!/usr/bin/env python
"""A trial, and no engine: kernels of calque's loop trees as PTX for NVIDIA's GPUs, by the NVPTX
target of llvmlite's LLVM. It takes one loop over one element each, or one sum in blocks, of plain
float arithmetic; anything else it refuses by name. `docs/accelerators.md` says what an engine would
take.

    python tools/ptx_spike.py           print the PTX of one elementwise kernel and one sum"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

import calque as jax
import calque.numpy as jnp
from calque.native.loops.tree import BLOCK, LANES, Acc, Body, For, Store, identity
from calque.native.plan.steps import Call
from calque.native.plan.steps import walk as steps_of
from calque.native.scalars.expr import Buffer, Expr, const_value, walk

TRIPLE, PROCESSOR = "nvptx64-nvidia-cuda", "sm_80"
THREADS = 256  # of a block that computes elements
TYPES = {"f32": "float", "f64": "double", "i64": "i64"}
FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
INTEGER = {"add": "add", "sub": "sub", "mul": "mul"}
SPECIAL = "@llvm.nvvm.read.ptx.sreg."
BARRIER = "@llvm.nvvm.barrier0"


class Refused(NotImplementedError):
    """What the trial does not write."""


@dataclass(frozen=True)
class Kernel:
    """A kernel as LLVM's text. It is launched with `threads` in a block; blocks are as many as
    cover the extent where each thread has an element, else one."""

    name: str
    ir: str
    buffers: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    threads: int
    is_sum: bool


def kernels_of(function: object, *args: object) -> Iterator[Kernel]:
    """The kernels of a jitted function, out of the loop trees that calque's own engine compiles."""
    executable = jax.jit(function).lower(*args).compile().runtime_executable()
    for number, step in enumerate(steps_of(executable.steps)):
        if not isinstance(step, Call):
            raise Refused(f"a step of kind {type(step).__name__}")
        yield kernel_of(step.nest, f"kernel_{number}")


def kernel_of(body: Body, name: str) -> Kernel:
    """The kernel of one loop, and of what is stored behind it."""
    loop, *rest = body
    if not isinstance(loop, For) or not all(isinstance(s, Store) for s in (*loop.body, *rest)):
        raise Refused("a kernel that is not one loop and what is stored after it")
    if bool(loop.accs) == bool(loop.body):
        raise Refused("a loop that both stores and sums")
    sums = [a for a in loop.accs if isinstance(a, Acc) and a.op == "sum" and a.init is None]
    if len(loop.accs) > 1 or len(sums) < len(loop.accs) or (sums and sums[0].order != "blocked"):
        raise Refused("a fold that is not one sum in blocks")
    return Writer(loop, [s for s in rest if isinstance(s, Store)]).kernel(name)


class Writer:
    """Writes one kernel as LLVM's text."""

    def __init__(self, loop: For, rest: Sequence[Store]) -> None:
        self.loop, self.rest = loop, rest
        self.lines: list[str] = []
        self.count = 0
        self.known: dict[str, str] = {}  # loop variables and folded values by name
        stores = [s for s in (*loop.body, *rest) if isinstance(s, Store)]
        roots = [e for s in stores for e in (s.value, *s.idx)] + [a.value for a in loop.accs]
        seen: set[Expr] = set()
        nodes = [n for root in (*roots, loop.extent) for n in walk(root, seen)]
        read = [n.attr for n in nodes if n.op == "load"]
        self.buffers = tuple(dict.fromkeys([*read, *(s.buf for s in stores)]))
        self.sizes = tuple(dict.fromkeys(
            n.attr[0] for n in nodes if n.op == "var" and n.attr[1] is None
        ))  # fmt: skip

    def kernel(self, name: str) -> Kernel:
        params = [f"ptr addrspace(1) noalias %{b.name}" for b in self.buffers]
        params += [f"i64 %{s}" for s in self.sizes]
        extent = self.value(self.loop.extent)
        thread = self.special("tid.x")
        shared = ""
        if self.loop.accs:
            (acc,) = self.loop.accs
            kind = TYPES[acc.values[0].dtype]
            shared = f"@partial = internal addrspace(3) global [{LANES} x {kind}] undef\n"
            self.sum(extent, thread)
        else:
            self.elements(extent, thread)
        reads = [f"declare i32 {SPECIAL}{r}()" for r in ("tid.x", "ctaid.x", "ntid.x")]
        head = [f'target triple = "{TRIPLE}"', *reads, f"declare void {BARRIER}()", shared]
        define = f"define ptx_kernel void @{name}({', '.join(params)}) {{\nentry:"
        ir = "\n".join([*head, define, *self.lines, "done:", "  ret void", "}", ""])
        threads = LANES if self.loop.accs else THREADS
        return Kernel(name, ir, self.buffers, self.sizes, threads, bool(self.loop.accs))

    # --- the two forms ----------------------------------------------------------------------------

    def elements(self, extent: str, thread: str) -> None:
        """Each thread of each block has one element."""
        block, width = self.special("ctaid.x"), self.special("ntid.x")
        i = self.one(f"add i64 {self.one(f'mul i64 {block}, {width}')}, {thread}")
        inside = self.one(f"icmp slt i64 {i}, {extent}")
        self.lines += [f"  br i1 {inside}, label %element, label %done", "element:"]
        self.known[self.loop.name] = i
        self.stores([s for s in self.loop.body if isinstance(s, Store)])
        self.lines.append("  br label %done")

    def sum(self, extent: str, thread: str) -> None:
        """One block: each thread has one of the partial sums, and takes the elements in the order
        that the sum has everywhere, so that the result has the same bits as on a CPU."""
        (acc,) = self.loop.accs
        value = acc.values[0]
        kind, start = TYPES[value.dtype], self.value(identity("sum", value.dtype))
        self.lines += ["  br label %head", "head:"]
        at, so_far, following, more = (f"%{n}" for n in ("at", "sofar", "following", "more"))
        self.lines += [
            f"  {at} = phi i64 [ 0, %entry ], [ {following}, %block ]",
            f"  {so_far} = phi {kind} [ {start}, %entry ], [ {more}, %block ]",
        ]
        left = self.one(f"icmp slt i64 {at}, {extent}")
        self.lines += [f"  br i1 {left}, label %block, label %together", "block:"]
        first = self.one(f"add i64 {at}, {thread}")
        parts = [self.taken(first, k, extent, value, start) for k in range(0, BLOCK, LANES)]
        while len(parts) > 1:  # halves upon halves
            half = len(parts) // 2
            parts = [self.one(f"fadd {kind} {a}, {b}") for a, b in zip(parts, parts[half:])]
        self.lines += [
            f"  {more} = fadd {kind} {so_far}, {parts[0]}",
            f"  {following} = add i64 {at}, {BLOCK}",
            "  br label %head",
            "together:",
        ]
        mine = self.one(f"getelementptr {kind}, ptr addrspace(3) @partial, i64 {thread}")
        self.lines += [
            f"  store {kind} {so_far}, ptr addrspace(3) {mine}",
            f"  call void {BARRIER}()",
        ]
        is_first = self.one(f"icmp eq i64 {thread}, 0")
        self.lines += [f"  br i1 {is_first}, label %last, label %done", "last:"]
        places = [f"getelementptr {kind}, ptr addrspace(3) @partial, i64 {k}" for k in range(LANES)]
        sums = [self.one(f"load {kind}, ptr addrspace(3) {self.one(p)}") for p in places]
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [self.one(f"fadd {kind} {a}, {b}") for a, b in zip(sums, sums[half:])]
        self.known = {acc.names[0]: sums[0]}
        self.stores(self.rest)
        self.lines.append("  br label %done")

    def taken(self, first: str, k: int, extent: str, value: Expr, start: str) -> str:
        """The element that a thread takes, or what changes nothing behind the end."""
        i = self.one(f"add i64 {first}, {k}")
        inside = self.one(f"icmp slt i64 {i}, {extent}")
        self.known = {self.loop.name: self.one(f"select i1 {inside}, i64 {i}, i64 0")}
        kind = TYPES[value.dtype]
        return self.one(f"select i1 {inside}, {kind} {self.value(value)}, {kind} {start}")

    def stores(self, stores: Sequence[Store]) -> None:
        for s in stores:
            if s.guard is not None:
                raise Refused("a store with a guard")
            value, place = self.value(s.value), self.place(s.buf, s.idx)
            self.lines.append(f"  store {TYPES[s.value.dtype]} {value}, ptr addrspace(1) {place}")

    # --- expressions ------------------------------------------------------------------------------

    def one(self, operation: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {operation}")
        return f"%v{self.count}"

    def special(self, register: str) -> str:
        """A special register of the thread, as a number of 64 bits."""
        return self.one(f"zext i32 {self.one(f'call i32 {SPECIAL}{register}()')} to i64")

    def place(self, buffer: Buffer, index: Sequence[Expr]) -> str:
        """The address of an element, row by row."""
        at = "0"
        for size, i in zip(buffer.shape, index):
            at = self.one(
                f"add i64 {self.one(f'mul i64 {at}, {self.value(size)}')}, {self.value(i)}"
            )
        kind = TYPES[buffer.dtype]
        return self.one(f"getelementptr {kind}, ptr addrspace(1) %{buffer.name}, i64 {at}")

    def value(self, e: Expr) -> str:
        if e.dtype not in TYPES:
            raise Refused(f"numbers of {e.dtype}")
        kind = TYPES[e.dtype]
        match e.op:
            case "const" if e.dtype == "i64":
                return str(e.attr)
            case "const":  # floats are written as the bits of a double
                return f"0x{struct.unpack('<Q', struct.pack('<d', const_value(e)))[0]:016X}"
            case "var" if e.attr[1] is None:
                return f"%{e.attr[0]}"
            case "var" | "ref" if e.attr[0] in self.known:
                return self.known[e.attr[0]]
            case "load" if len(e.args) == len(e.attr.shape):
                return self.one(f"load {kind}, ptr addrspace(1) {self.place(e.attr, e.args)}")
            case "neg" if e.dtype != "i64":
                return self.one(f"fneg {kind} {self.value(e.args[0])}")
        operation = (INTEGER if e.dtype == "i64" else FLOAT).get(e.op)
        if operation is None:
            raise Refused(f"the operation {e.op} of {e.dtype}")
        a, b = map(self.value, e.args)
        return self.one(f"{operation} {kind} {a}, {b}")


def ptx(kernel: Kernel) -> str:
    """The kernel as PTX."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=PROCESSOR, opt=3)
    module = llvm.parse_assembly(kernel.ir)
    module.verify()
    return str(machine.emit_assembly(module))


def main() -> int:
    x = np.ones(1000, np.float32)
    for f, args in ((lambda x, y: x * y + 2, (x, x)), (lambda x: jnp.sum(x * x), (x,))):
        for kernel in kernels_of(f, *args):
            print(ptx(kernel))
    return 0


if __name__ == "__main__":
    sys.exit(main())
