"""Loop trees -> LLVM IR text."""

from __future__ import annotations

from calque.native.emit.blocks import Blocks
from calque.native.emit.expand import argument, definition
from calque.native.emit.types import MEMORY, VALUE, vector
from calque.native.loops.tree import Body, loaded, stored
from calque.native.scalars.expr import LANE, Buffer, Expr

__all__ = ["Emitter"]


class Emitter(Blocks):
    """Writes functions. ``exact``: no multiplication and addition become one FMA. ``outline``: math
    functions are calls; what they need is in ``math`` afterwards (``tag`` ends their names).
    ``avx512``: the processor has masked vectors (else tails go one by one). ``half``: it has
    conversions from and to half."""

    def kernel(
        self, name: str, bufs: list[Buffer], sizes: list[str], params: list[Expr], body: Body
    ) -> str:
        """``void name(ptr args, i64 begin, i64 end)``; ``args`` holds buffers, sizes, params: a
        word each."""
        self.begin(stored(body) & loaded(body))
        self.width, self.vec, self.vecnames, self.mask = 0, None, set(), None
        self.ptr, self.allocas, self.constants, self.places, self.written = {}, {}, {}, {}, {}
        self.dummy_words = 0
        word = 0
        for b in bufs:
            self.ptr[b] = self.argument_word(word, "ptr")
            word += 1
        for s in sizes:
            self.bind(s, self.argument_word(word, "i64"))
            word += 1
        for p in params:
            self.bind(
                p.attr[0],
                self.from_memory(
                    self.argument_word(word, MEMORY[p.dtype]), p.dtype, 0, self.scopes[0]
                ),
            )
            word += 1
        self.where[LANE] = 0
        self.statements(body)
        head = [
            f"define void @{name}(ptr %args, i64 %begin, i64 %end) {{\nentry:",
            *self.allocas.values(),
            *self.dummy_lines(),
        ]
        constants = [f"@const{k} = {text}" for k, text in enumerate(self.constants.values())]
        return "\n".join([*constants, *head, *self.scopes[0].lines, " ret void\n}"])

    def argument_word(self, word: int, t: str) -> str:
        p = self.new(f"getelementptr i64, ptr %args, i64 {word}") if word else "%args"
        return self.new(f"load {t}, ptr {p}, align 8")

    def math_function(
        self, symbol: str, op: str, dtypes: tuple[str, ...], result: str, width: int
    ) -> str:
        """An outlined math function, shared by all kernels."""
        self.begin(frozenset())
        self.width, self.vec, self.mask = width, None, None
        names = [argument(k, d).attr[0] for k, d in enumerate(dtypes)]
        self.vecnames = set(names) if width else set()
        for k, name in enumerate(names):
            self.bind(name, f"%x{k}")
        r = self.operand(definition(op, dtypes, result), width > 0)
        args = ", ".join([f"{vector(VALUE[d], width)} %x{k}" for k, d in enumerate(dtypes)])
        t = vector(VALUE[result], width)
        return "\n".join(
            [f"define {t} @{symbol}({args}) {{\nentry:", *self.scopes[0].lines, f" ret {t} {r}\n}}"]
        )
