"""Loads and stores: contiguous, reversed, interleaved, spread, gathered; masked in tails and under
guards; never beyond what is asked for."""

from __future__ import annotations

from typing import Final

from calque.native.emit.scopes import Scope
from calque.native.emit.types import MEMORY, mangled, vector
from calque.native.emit.values import Values
from calque.native.loops.tree import Store
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    index_and_guard,
    is_const,
    item_size,
    linear,
    make,
    scalar_dtype,
    stride,
    terms,
)
from calque.native.scalars.index import total

DUMMY: Final = 1024  # at most so many bytes of zeros for reads that a uniform guard forbids
Index = tuple[Expr, ...]


class Memory(Values):
    """Where elements are and how they move."""

    def __init__(
        self,
        exact: bool = False,
        outline: bool = False,
        avx512: bool = True,
        tag: str = "",
        half: bool = True,
    ) -> None:
        super().__init__(exact, outline, avx512, tag, half)
        self.ptr: dict[Buffer, str] = {}
        self.dummy_words = 0
        self.allocas: dict[str, str] = {}  # buffer and width -> definition, at the entry
        self.constants: dict[str, str] = {}
        self.places: dict[tuple[Buffer, Index], Expr] = {}

    # -- addresses ---------------------------------------------------------------------------------

    def place(self, buf: Buffer, idx: Index) -> tuple[Expr, int | None]:
        """The address in elements, and how far it moves from lane to lane."""
        key = (buf, idx)
        at = self.places.get(key)
        if at is None:
            at = self.places[key] = linear(buf.shape, idx)
        return at, (
            stride(at, self.vec)
            if self.vec is not None and not self.varies(at)
            else None
            if self.vec
            else 0
        )

    def varies(self, at: Expr) -> bool:
        """Does an address depend on vectors other than the vector variable itself?"""
        return any(n != self.vec and n in at.names for n in self.vecnames)

    def pointer(self, buf: Buffer) -> str:
        p = self.ptr.get(buf)
        if p is None:
            p = self.constant(buf) if buf.place == "const" else self.private(buf)
        return p

    def private(self, buf: Buffer) -> str:
        """A stack or lane buffer; a lane buffer has another array for each width it is used at."""
        width = self.width if buf.place == "lane" else 0
        key = f"{id(buf)}.{width}"
        if key not in self.allocas:
            n = 1
            for d in buf.shape:
                n *= d.attr
            name = f"%a{len(self.allocas)}"
            t = self.memory_type(buf, width)
            self.allocas[key] = f" {name} = alloca [{max(n, 1)} x {t}], align 64"
        return self.allocas[key].split(" ", 2)[1]

    def memory_type(self, buf: Buffer, width: int = 0) -> str:
        return vector(MEMORY[scalar_dtype(buf.dtype)], width)

    def constant(self, buf: Buffer) -> str:
        assert buf.data is not None
        if buf.name not in self.constants:
            text = "".join([f"\\{b:02X}" for b in buf.data])
            self.constants[buf.name] = (
                f'private unnamed_addr constant [{len(buf.data)} x i8] c"{text}", align 64'
            )
        return f"@const{list(self.constants).index(buf.name)}"

    def dummy(self, size: int) -> str:
        """Where reads of ``size`` bytes go which a guard forbids: zeros."""
        words = max(self.dummy_words, 1)
        while words * 8 < size:
            words *= 2
        self.dummy_words = words
        return "%dummy"

    def dummy_lines(self) -> list[str]:
        if not self.dummy_words:
            return []
        t = f"<{self.dummy_words} x i64>"
        return [f" %dummy = alloca {t}, align 64\n store {t} zeroinitializer, ptr %dummy, align 64"]

    def address(self, buf: Buffer, at: Expr, s: Scope | None = None, offset: int = 0) -> str:
        """A pointer to the element; what the innermost scope does not change is added outside of
        it."""
        t = self.memory_type(buf, self.width if buf.place == "lane" else 0)
        base = self.pointer(buf)
        parts, c = terms(at)
        c += offset
        depth = max([self.where[n] for n in at.names], default=0)
        outer = {
            e: k
            for e, k in parts.items()
            if max([self.where[n] for n in e.names], default=0) < depth
        }
        if outer or (c and len(parts) > len(outer)):
            key = (total(outer, c), base, t)
            home = self.home(key[0])
            row = self.find(key, home)
            if row is None:
                scope = self.scopes[home]
                row = self.new(
                    f"getelementptr {t}, ptr {base}, i64 {self.value(key[0], lane0=True)}", scope
                )
                scope.cache[key] = row
            base, at = row, total({e: k for e, k in parts.items() if e not in outer}, 0)
        elif offset:
            at = total(parts, c)
        if is_const(at, 0):
            return base
        return self.new(f"getelementptr {t}, ptr {base}, i64 {self.value(at, lane0=True)}", s)

    def align(self, buf: Buffer) -> int:
        return item_size(buf.dtype)

    def lanes_mask(self, guard: Expr | None, s: Scope | None = None) -> str | None:
        """The lanes that may touch memory: those that are here, and a statement's own guard."""
        if guard is None:
            return self.present
        g = self.operand(guard, True)
        return (
            g
            if self.present is None
            else self.new(f"and <{self.width} x i1> {g}, {self.present}", s)
        )

    @property
    def present(self) -> str | None:
        """The lanes that are here; None: all."""
        return self.live if self.live is not None else self.mask

    # -- loads -------------------------------------------------------------------------------------

    def load(self, e: Expr, vec: bool, s: Scope) -> str:
        buf: Buffer = e.attr
        idx, guard = index_and_guard(e)
        width = self.width if vec else 0
        if buf.place == "lane":
            t = self.memory_type(buf, self.width)
            v = self.new(
                f"load {t}, ptr {self.address(buf, linear(buf.shape, idx), s)}, align"
                f" {self.align(buf)}",
                s,
            )
            return self.from_memory(v, e.dtype, self.width, s)
        raw = self.load_vector(buf, idx, guard, s) if vec else self.load_scalar(buf, idx, guard, s)
        return self.from_memory(raw, e.dtype, width, s)

    def load_scalar(self, buf: Buffer, idx: Index, guard: Expr | None, s: Scope) -> str:
        p = self.address(buf, linear(buf.shape, idx), s)
        if guard is not None and not self.holds(guard, s):
            p = self.new(
                f"select i1 {self.value(guard, lane0=True)}, ptr {p}, ptr"
                f" {self.dummy(self.align(buf))}",
                s,
            )
        return self.new(f"load {self.memory_type(buf)}, ptr {p}, align {self.align(buf)}", s)

    def holds(self, guard: Expr, s: Scope) -> bool:
        """Does code in this scope run only where the guard holds?"""
        return any(x.only is guard for x in self.scopes[: self.scopes.index(s) + 1])

    def load_vector(self, buf: Buffer, idx: Index, guard: Expr | None, s: Scope) -> str:
        at, step = self.place(buf, idx)
        W, t = self.width, self.memory_type(buf)
        uniform = guard is None or not self.is_vec(guard)
        if step == 0:  # only the guard varies
            p = self.address(buf, at, s)
            if guard is not None and not uniform:  # reading where no lane may read is not allowed
                some = self.new(
                    self.intrinsic(
                        "vector.reduce.or",
                        f"v{W}i1",
                        "i1",
                        (f"<{W} x i1>", self.operand(guard, True)),
                    ),
                    s,
                )
                p = self.new(f"select i1 {some}, ptr {p}, ptr {self.dummy(self.align(buf))}", s)
            elif guard is not None:
                p = self.new(
                    f"select i1 {self.value(guard, lane0=True)}, ptr {p}, ptr"
                    f" {self.dummy(self.align(buf))}",
                    s,
                )
            v = self.splat(self.new(f"load {t}, ptr {p}, align {self.align(buf)}", s), t, s)
            if guard is None or uniform:
                return v
            return self.new(
                f"select <{W} x i1> {self.operand(guard, True)}, <{W} x {t}> {v}, <{W} x {t}>"
                " zeroinitializer",
                s,
            )
        if step in (1, -1):
            back = step == -1
            p = self.address(buf, at, s, 1 - W if back else 0)
            if (
                guard is not None
                and uniform
                and self.present is None
                and W * self.align(buf) <= DUMMY
            ):
                p = self.new(
                    f"select i1 {self.value(guard, lane0=True)}, ptr {p}, ptr"
                    f" {self.dummy(W * self.align(buf))}",
                    s,
                )
                guard = None
            v = self.contiguous(
                buf,
                p,
                (
                    self.reversed(self.lanes_mask(guard, s), "i1", s)
                    if back
                    else self.lanes_mask(guard, s)
                ),
                W,
                s,
            )
            return self.reverse(v, t, s) if back else v
        if step == 2 and self.is_pair(buf, idx):
            return self.load_pair(buf, at, idx, guard, s)
        if (
            step is not None
            and 2 <= step <= 4
            and guard is None
            and self.present is None
            and self.avx512
        ):
            return self.load_spread(buf, at, step, s)
        offsets = self.operand(at, True)
        p = self.new(f"getelementptr {t}, ptr {self.pointer(buf)}, <{W} x i64> {offsets}", s)
        mask = self.lanes_mask(guard, s) or "splat (i1 true)"
        full = f"<{W} x {t}>"
        name = f"{mangled(t, W)}.v{W}p0"
        call = self.masked_call(
            "gather",
            name,
            full,
            f"<{W} x ptr> {p}, i32 {self.align(buf)}, <{W} x i1> {mask}, {full} zeroinitializer",
            f"<{W} x ptr>, i32, <{W} x i1>, {full}",
        )
        return self.new(call, s)

    def masked_call(self, kind: str, name: str, result: str, args: str, types: str) -> str:
        self.declared.add(f"declare {result} @llvm.masked.{kind}.{name}({types})")
        return f"call {result} @llvm.masked.{kind}.{name}({args})"

    def contiguous(self, buf: Buffer, p: str, mask: str | None, W: int, s: Scope | None) -> str:
        t = self.memory_type(buf)
        full = f"<{W} x {t}>"
        if mask is None:
            return self.new(f"load {full}, ptr {p}, align {self.align(buf)}", s)
        args = f"ptr {p}, i32 {self.align(buf)}, <{W} x i1> {mask}, {full} zeroinitializer"
        return self.new(
            self.masked_call(
                "load", f"{mangled(t, W)}.p0", full, args, f"ptr, i32, <{W} x i1>, {full}"
            ),
            s,
        )

    def reverse(self, v: str, t: str, s: Scope | None = None) -> str:
        return self.shuffle(t, self.width, v, list(range(self.width))[::-1], s=s)

    def reversed(self, mask: str | None, t: str, s: Scope | None) -> str | None:
        return None if mask is None else self.reverse(mask, t, s)

    def is_pair(self, buf: Buffer, idx: Index) -> bool:
        """A part of a complex number: the last dimension is 2 and its index 0 or 1."""
        return (
            len(buf.shape) > 1
            and is_const(buf.shape[-1], 2)
            and idx[-1].op == "const"
            and idx[-1].attr in (0, 1)
        )

    def load_pair(self, buf: Buffer, at: Expr, idx: Index, guard: Expr | None, s: Scope) -> str:
        """Every second element out of a wide load, which both parts share."""
        W, t, part = self.width, self.memory_type(buf), idx[-1].attr
        whole = total(*_shift(at, -part))
        key = (
            make(
                "load", (whole,) if guard is None else (whole, guard), scalar_dtype(buf.dtype), buf
            ),
            W,
            "pair",
            self.present,
        )
        depth = self.scopes.index(s)
        wide = self.find(key, depth)
        if wide is None:
            mask = self.lanes_mask(guard, s)
            if mask is not None:
                mask = self.shuffle("i1", W, mask, [i // 2 for i in range(2 * W)], s=s)
            wide = self.contiguous(buf, self.address(buf, whole, s), mask, 2 * W, s)
            s.cache[key] = wide
        return self.shuffle(t, 2 * W, wide, list(range(part, 2 * W, 2)), s=s)

    def load_spread(self, buf: Buffer, at: Expr, step: int, s: Scope) -> str:
        """Every step-th element out of a wide load that ends with the last one wanted."""
        W = self.width
        n = W * step
        mask = (
            f"<{n} x i1> <"
            + ", ".join([f"i1 {'true' if i <= step * (W - 1) else 'false'}" for i in range(n)])
            + ">"
        )
        t = self.memory_type(buf)
        full = f"<{n} x {t}>"
        args = (
            f"ptr {self.address(buf, at, s)}, i32 {self.align(buf)}, {mask}, {full} zeroinitializer"
        )
        wide = self.new(
            self.masked_call(
                "load", f"{mangled(t, n)}.p0", full, args, f"ptr, i32, <{n} x i1>, {full}"
            ),
            s,
        )
        return self.shuffle(t, n, wide, list(range(0, n, step)), s=s)

    # -- stores ------------------------------------------------------------------------------------

    def store(self, st: Store) -> None:
        buf, d = st.buf, st.value.dtype
        scope = self.scopes[-1]
        guard = None if st.guard is None or is_const(st.guard, True) else st.guard
        if buf.place == "lane":
            v = self.to_memory(self.operand(st.value, self.width > 0), d, self.width, scope)
            p = self.address(buf, linear(buf.shape, st.idx))
            self.put(
                f" store {self.memory_type(buf, self.width)} {v}, ptr {p}, align {self.align(buf)}"
            )
        else:
            at, step = self.place(buf, st.idx)
            if step == 0 and (guard is None or not self.is_vec(guard)):
                self.store_scalar(st, at, guard)
            elif step == 0 and not self.is_vec(st.value):
                self.store_scalar(st, at, guard, self.any_lane(guard))
            else:
                v = self.to_memory(self.operand(st.value, True), d, self.width, scope)
                self.store_vector(buf, at, step, v, self.lanes_mask(guard))
        self.forget(frozenset((buf,)))

    def any_lane(self, guard: Expr | None) -> str:
        """Does a guard hold in any lane that is here?"""
        W = self.width
        mask = self.unordered(guard) if guard is not None and self.present is None else None
        if mask is None:
            mask = self.lanes_mask(guard)
        else:
            W //= 2
        return self.new(
            self.intrinsic("vector.reduce.or", f"v{W}i1", "i1", (f"<{W} x i1>", str(mask)))
        )

    def unordered(self, guard: Expr) -> str | None:
        """before: x != x in every lane      after: one comparison of the two halves of x: it finds
        a nan in either"""
        x, W = guard.args[0] if guard.args else guard, self.width
        if (
            guard.op != "ne"
            or guard.args[1] is not x
            or x.dtype not in ("f32", "f64")
            or W < 2
            or not self.is_vec(x)
        ):
            return None
        t, v = MEMORY[x.dtype], self.operand(x, True)
        low, high = (self.shuffle(t, W, v, list(range(k, k + W // 2))) for k in (0, W // 2))
        return self.new(f"fcmp uno <{W // 2} x {t}> {low}, {high}")

    def store_scalar(
        self, st: Store, at: Expr, guard: Expr | None, some: str | None = None
    ) -> None:
        """Store once. `some`: if this holds, which says whether the guard does for any lane."""
        buf, d = st.buf, st.value.dtype
        g = (
            some
            if some is not None
            else self.value(guard, lane0=True)
            if guard is not None
            else None
        )
        parent = self.scopes[-1]
        k = self.number()
        if g is not None:
            self.open(f"s{k}", lazy=True).only = guard if some is None else None
        v = self.to_memory(self.value(st.value, lane0=True), d, 0, self.scopes[-1])
        p = self.address(buf, at)
        self.put(f" store {self.memory_type(buf)} {v}, ptr {p}, align {self.align(buf)}")
        if g is not None:
            inner = self.scopes.pop()
            parent.lines.append(f" br i1 {g}, label %s{k}, label %k{k}\ns{k}:")
            parent.lines += inner.lines
            parent.lines.append(f" br label %k{k}\nk{k}:")
            parent.block = f"k{k}"

    def store_vector(
        self, buf: Buffer, at: Expr, step: int | None, v: str, mask: str | None
    ) -> None:
        W, t = self.width, self.memory_type(buf)
        full = f"<{W} x {t}>"
        if step == -1:
            v, mask = self.reverse(v, t), self.reversed(mask, "i1", None)
            self.store_contiguous(buf, self.address(buf, at, None, 1 - W), v, mask, W)
        elif step == 1:
            self.store_contiguous(buf, self.address(buf, at), v, mask, W)
        else:
            p = self.new(
                f"getelementptr {t}, ptr {self.pointer(buf)}, <{W} x i64> {self.operand(at, True)}"
            )
            args = (
                f"{full} {v}, <{W} x ptr> {p}, i32 {self.align(buf)}, <{W} x i1>"
                f" {mask or 'splat (i1 true)'}"
            )
            self.put(
                " "
                + self.masked_call(
                    "scatter",
                    f"{mangled(t, W)}.v{W}p0",
                    "void",
                    args,
                    f"{full}, <{W} x ptr>, i32, <{W} x i1>",
                )
            )

    def store_contiguous(self, buf: Buffer, p: str, v: str, mask: str | None, W: int) -> None:
        t = self.memory_type(buf)
        full = f"<{W} x {t}>"
        if mask is None:
            self.put(f" store {full} {v}, ptr {p}, align {self.align(buf)}")
            return
        args = f"{full} {v}, ptr {p}, i32 {self.align(buf)}, <{W} x i1> {mask}"
        self.put(
            " "
            + self.masked_call(
                "store", f"{mangled(t, W)}.p0", "void", args, f"{full}, ptr, i32, <{W} x i1>"
            )
        )

    def is_pair_store(self, a: Store, b: Store) -> bool:
        """Two stores that fill both parts of the same complex numbers, lane after lane."""
        if (
            not self.width
            or a.buf is not b.buf
            or a.guard is not b.guard
            or a.idx[:-1] != b.idx[:-1]
            or not a.idx
        ):
            return False
        if not (
            self.is_pair(a.buf, a.idx) and self.is_pair(a.buf, b.idx) and a.idx[-1] is not b.idx[-1]
        ):
            return False
        return (
            a.buf.place != "lane" and self.place(a.buf, a.idx)[1] == 2 and a.buf not in b.value.bufs
        )

    def store_pair(self, a: Store, b: Store) -> None:
        """One wide store of two interleaved vectors."""
        if a.idx[-1].attr:
            a, b = b, a
        W, t, scope = self.width, self.memory_type(a.buf), self.scopes[-1]
        re, im = [
            self.to_memory(self.operand(x.value, True), x.value.dtype, W, scope) for x in (a, b)
        ]
        v = self.shuffle(t, W, re, [i // 2 + (i & 1) * W for i in range(2 * W)], im)
        mask = self.lanes_mask(None if a.guard is None or is_const(a.guard, True) else a.guard)
        if mask is not None:
            mask = self.shuffle("i1", W, mask, [i // 2 for i in range(2 * W)])
        self.store_contiguous(
            a.buf, self.address(a.buf, self.place(a.buf, a.idx)[0]), v, mask, 2 * W
        )
        self.forget(frozenset((a.buf,)))


def _shift(at: Expr, by: int) -> tuple[dict[Expr, int], int]:
    parts, c = terms(at)
    return parts, c + by
