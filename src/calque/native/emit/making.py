"""The kernels of a program on their way to machine code: what is known is found, what is new is
compiled, in part while the rest of the program is still being planned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from calque.machine.code import llvm
from calque.machine.threads import get_num_threads
from calque.native.emit import alike, kernels, objects
from calque.native.emit.alike import Argument
from calque.native.emit.kernels import Code, Kernel
from calque.native.emit.modules import Modules, compiling, has_quick_code
from calque.native.emit.whole import multiples
from calque.native.loops.canonical import Canonical, canonical
from calque.native.loops.tree import Body

_LONG: Final = 1000  # letters of a key from which on it is asked whether others are alike
_MUCH: Final = 3000  # letters of keys of kernels that LLVM takes long for, some 40 ms

_Users = dict[Code, list[tuple[int, Canonical]]]  # with their numbers


def compile_kernels(
    bodies: Iterable[Body],
    exact: bool = False,
    opt: int = 2,
    values: Mapping[str, int] = MappingProxyType({}),
    brief: Collection[int] = (),
) -> list[Kernel]:
    """Machine code for each body, in order."""
    return Making(exact, opt).finish([*bodies], values, brief)


class Making:
    """The kernels of one program. Those that are known before the others (`begin`) are compiled by
    other threads while the rest is planned; `finish` gives all that the program has in the end.

    ``values``: sizes that the program fixes. Where there is much to compile, new kernels take for
    granted what these are multiples of; other sizes then have kernels of their own. ``brief``:
    which bodies take next to none of the program's time, or are wanted for one call. Where there is
    much to compile, LLVM makes code for them quickly: slower code with the same bits, which serves
    no body that is not brief. ``much``: count whatever there is as much."""

    def __init__(self, exact: bool = False, opt: int = 2, much: bool = False) -> None:
        self.exact, self.opt, self.much = exact, opt, much
        self.values: Mapping[str, int] = {}
        self.codes: list[Code] = []  # found on disk, or being compiled
        self.begun: dict[str, Code] = {}  # the latest of them, by their keys
        self.general: dict[str, Code] = {}  # those that serve several, by their keys
        # what is served by a general one, and what it gives for the sizes of that
        self.shared: dict[Code, tuple[Code, tuple[Argument, ...]]] = {}
        self.work: llvm.Compiling | None = None  # threads that wait for modules
        self.modules: Modules | None = None
        self.began = False  # whether it was asked to, however little there was to do
        self._orders: dict[int, tuple[Body, Canonical]] = {}
        self._powers: dict[int, tuple[int, ...]] = {}  # of bodies that have orders
        self._weighed: set[str] = set()
        self._weight = 0

    def expect(self) -> None:
        """Let a thread wait for what is to be compiled, if LLVM is there."""
        if get_num_threads() > 1 and llvm.is_there():
            self.work = compiling()
            self.work.start()

    def begin(
        self, bodies: Sequence[Body], values: Mapping[str, int], brief: Collection[int] = ()
    ) -> None:
        """Have some of the bodies compiled, if they are much and another thread has nothing to
        do."""
        self.began = True
        if get_num_threads() == 1:
            return
        self._fix(values)
        orders = [self.order(b) for b in bodies]
        with objects.turns.taken():
            new: dict[str, Code] = {}
            users = self._users(bodies, orders, brief, new)
            if _total(new.values()) >= _MUCH:
                self._make(new, users, more=True)

    def finish(
        self, bodies: Sequence[Body], values: Mapping[str, int], brief: Collection[int] = ()
    ) -> list[Kernel]:
        """Machine code for each body, in order."""
        self._fix(values)
        orders = [self.order(b) for b in bodies]
        with objects.turns.taken():
            new: dict[str, Code] = {}
            begun = set(self.codes)
            users = self._users(bodies, orders, brief, new)
            kernels.stats.memory += len(bodies) - len(new) - len(begun.intersection(users))
            if new:
                self._make(new, users)
        if self.modules is not None:
            self.modules.compile()  # others need not wait: at worst they compile the same
        with objects.turns.taken():
            if self.modules is not None:
                self.modules.link()
            for c in self.codes:
                kernels.remember(self.shared[c][0] if c in self.shared else c)
        code_of = {k: code for code, those in users.items() for k, _ in those}
        return [self._kernel(b, o, code_of[k]) for k, (b, o) in enumerate(zip(bodies, orders))]

    def _fix(self, values: Mapping[str, int]) -> None:
        if values != self.values:
            self.values = values
            self._powers.clear()

    def drop(self) -> None:
        """Compile nothing more: what is not finished nobody wants."""
        work = self.work if self.modules is None else self.modules
        if work is not None:
            work.drop()

    def weight(self, bodies: Sequence[Body]) -> int:
        """How much there is to compile of all bodies that were weighed, equal ones once."""
        for b in bodies:
            order = self.order(b)
            if order.key not in self._weighed:
                self._weighed.add(order.key)
                self._weight += order.letters
        return self._weight

    def order(self, body: Body) -> Canonical:
        """Its key, which is written once."""
        found = self._orders.get(id(body))
        if found is None:
            found = self._orders[id(body)] = (body, canonical(body))
        return found[1]

    def _kernel(self, body: Body, order: Canonical, code: Code) -> Kernel:
        made, sizes = self._serving(code, order)
        return Kernel(made, tuple(order.buffers), sizes, tuple(order.params), body)

    def _serving(self, code: Code, user: Canonical) -> tuple[Code, tuple[Argument, ...]]:
        """What runs in place of a code, and what a body gives for its sizes."""
        if code not in self.shared:
            return code, tuple(user.sizes)
        made, given = self.shared[code]
        return made, kernels.as_user(given, code, user)

    # ---------------------------------------------------------------- which code

    def _users(
        self,
        bodies: Sequence[Body],
        orders: Sequence[Canonical],
        brief: Collection[int],
        new: dict[str, Code],
    ) -> _Users:
        """The codes of bodies, each with those that it serves. What nobody has is `new`, by its
        key."""
        users: _Users = {}
        for k, (body, order) in enumerate(zip(bodies, orders, strict=True)):
            users.setdefault(self._code(body, order, new, k in brief), []).append((k, order))
        return users

    def _code(self, body: Body, order: Canonical, new: dict[str, Code], brief: bool) -> Code:
        """The code of a body: begun, known, or one of the new ones. What one program has for sizes
        of unlike multiples takes nothing for granted."""
        code = self.begun.get(order.key)
        if code is not None:
            made, sizes = self._serving(code, order)
            if (brief or not made.quick) and kernels.serves(made, sizes, self.values):
                return code
        powers = self._powers_of(body, order)
        code = kernels.find(order, powers, (self.exact, self.opt), self.values, brief)
        if code is not None:
            return code
        code = new.get(order.key)
        if code is None:
            code = new[order.key] = kernels.new_code(body, order, self.exact, self.opt)
            code.multiples, code.quick = powers, brief
            return code
        code.quick &= brief
        if code.multiples != powers:
            code.multiples = ()
        return code

    def _powers_of(self, body: Body, order: Canonical) -> tuple[int, ...]:
        """What its sizes are multiples of, which is asked as often as it is begun."""
        powers = self._powers.get(id(body))
        if powers is None:
            needed = multiples(body, self.values) if self.values else {}
            powers = tuple([needed.get(name, 1) for name in order.sizes]) if needed else ()
            self._powers[id(body)] = powers
        return powers

    # ---------------------------------------------------------------- making

    def _make(self, new: dict[str, Code], users: _Users, more: bool = False) -> None:
        """Find new codes on disk, in either form, else have them compiled. What is not there may
        share the code of others that are the same loops over other numbers. If there is `more` to
        come, little is left until then."""
        missing = kernels.not_found(new.values(), self.opt)
        if more and _total(missing) < _MUCH:
            left = set(missing)
            self._keep({key: c for key, c in new.items() if c not in left})
            return
        self._keep(new)
        shared = self._share(missing, users)
        self.shared |= shared
        missing = [c for c in missing if c not in shared]
        general = dict.fromkeys([c for c, _ in shared.values() if c.order is not None])
        missing += kernels.not_found([c for c in general if self._is_unknown(c)], self.opt)
        self.general |= {c.order.key: c for c in general if c.order is not None}
        if missing:
            self._compile(missing, more)

    def _keep(self, new: Mapping[str, Code]) -> None:
        self.codes += new.values()
        self.begun |= new

    def _is_unknown(self, general: Code) -> bool:
        return not general.address and general not in self.general.values()

    def _compile(self, missing: Sequence[Code], more: bool) -> None:
        much = self.much or self.modules is not None or _total(missing) >= _MUCH
        quickly = much and has_quick_code()
        for c in missing:
            c.multiples = c.multiples if much else ()
            c.quick &= quickly
            c.symbol = kernels.symbol_of(c, c.multiples, c.quick)
        if self.modules is None:
            self.modules = Modules(self.opt, self.work)
        self.modules.add(missing, more)
        kernels.stats.compiled += len(missing)

    def _share(
        self, codes: Sequence[Code], users: _Users
    ) -> dict[Code, tuple[Code, tuple[Argument, ...]]]:
        """For long codes that differ in numbers only: the one that serves them, and what each gives
        for its sizes."""
        long = [(c, c.order) for c in codes if c.order is not None and c.length >= _LONG]
        shared: dict[Code, tuple[Code, tuple[Argument, ...]]] = {}
        for group in alike.in_groups([c.body for c, _ in long], [order for _, order in long]):
            members, orders = [long[k][0] for k in group], [long[k][1] for k in group]
            common = alike.common([c.body for c in members], orders)
            if common is not None:
                every = [
                    kernels.as_user(given, c, user)
                    for c, given in zip(members, common.arguments, strict=True)
                    for _, user in users[c]
                ]
                code = self._common_code(common._replace(arguments=every), members)
                shared |= {c: (code, given) for c, given in zip(members, common.arguments)}
        return shared

    def _common_code(self, common: alike.Common, members: Sequence[Code]) -> Code:
        """The code of a body that serves several, which may be known."""
        known = common.values(self.values)
        quick = all([c.quick for c in members])
        code = self.general.get(common.order.key)
        if code is not None and (quick or not code.quick):
            if kernels.serves(code, common.order.sizes, known):
                return code
        needed = multiples(common.body, known) if self.values else {}
        powers = tuple([needed.get(name, 1) for name in common.order.sizes]) if needed else ()
        code = kernels.find(common.order, powers, (self.exact, self.opt), known, quick)
        if code is None:
            code = kernels.new_code(common.body, common.order, self.exact, self.opt)
            code.multiples, code.quick = powers, quick
        return code


def _total(codes: Iterable[Code]) -> int:
    """How much there is to compile."""
    return sum([c.length for c in codes])
