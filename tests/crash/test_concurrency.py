"""Many threads and tasks over the same and other functions: right results, no deadlock, one order
of locks."""

from tests.crash.child import check

# What each thread does: `work(thread, turns)` compiles, changes shapes, donates, differentiates,
# forgets, and compares every result.
WORK = """
import threading
import numpy as np
import calque, calque.numpy as jnp
shared = calque.jit(lambda x: jnp.sin(x).sum() + jnp.sort(x)[0])
slope = calque.jit(calque.grad(lambda x: (x * x).sum()))
given = calque.jit(lambda x: x * 2 + 1, donate_argnums=0)
wrong = []
def work(me, turns, clears=True):
    r = np.random.default_rng(me)
    try:
        for turn in range(turns):
            n = int(r.integers(1, 40))
            x = jnp.arange(float(n))
            want = np.sin(np.arange(n, dtype=np.float32)).sum()
            assert abs(float(shared(x)) - want) < 1e-4
            assert np.array_equal(slope(x), 2 * np.arange(n))
            assert np.array_equal(given(jnp.arange(float(n))), 2 * np.arange(n) + 1)
            k = float(turn % 5 + me % 2)
            own = calque.jit(lambda x: x * k + jnp.where(x > 2, x, -x))
            y = np.arange(n, dtype=np.float32)
            assert np.array_equal(own(x), y * np.float32(k) + np.where(y > 2, y, -y))
            assert jnp.concatenate([x, x])[n:].sum() == x.sum()
            if clears and turn % 17 == 16:
                calque.clear_caches()
    except BaseException as e:
        wrong.append((me, repr(e)))
        raise
"""


def test_threads() -> None:
    check(
        WORK
        + """
threads = [threading.Thread(target=work, args=(k, 40)) for k in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
assert not wrong, wrong
""",
        timeout=600,
    )


def test_tasks() -> None:
    check(
        WORK
        + """
import asyncio
async def task(me):
    for _ in range(5):
        await asyncio.to_thread(work, me, 3, False)
        work(me + 100, 1, False)
        await asyncio.sleep(0)
async def main():
    await asyncio.gather(*[task(k) for k in range(8)])
asyncio.run(main())
assert not wrong, wrong
""",
        timeout=600,
    )


def test_an_interrupt_inside_a_lock() -> None:
    """KeyboardInterrupt at any moment of the main thread, while another one compiles: no lock stays
    taken."""
    check(
        WORK
        + """
import random, signal, time
work(0, 18)  # imports are done: Python's own locks are not safe from interrupts
helper = threading.Thread(target=work, args=(1, 12), daemon=True)
helper.start()
interrupted, r, ends = 0, random.Random(0), time.monotonic() + 4
signal.signal(signal.SIGALRM, signal.default_int_handler)
while time.monotonic() < ends:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, r.uniform(0.001, 0.05))
            work(0, 2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
ends = time.monotonic() + 120
while helper.is_alive() and time.monotonic() < ends:
    time.sleep(0.05)
assert interrupted and not helper.is_alive()
assert not [w for w in wrong if "KeyboardInterrupt" not in w[1]], wrong
""",
        timeout=300,
    )


def test_locks_are_taken_in_one_order() -> None:
    """Every lock of ours notes which others its thread has: no two are ever taken both ways
    round."""
    check(
        """
import sys, threading
real, held, after = threading.RLock, threading.local(), {}
class Noted:
    def __init__(self):
        self.lock = real()
        frame = sys._getframe(1)
        self.name = f"{frame.f_code.co_filename}:{frame.f_lineno}:{id(self)}"
    def acquire(self, *args, **kwargs):
        mine = held.__dict__.setdefault("locks", [])
        for other in mine:
            if other is not self:
                after.setdefault(other.name, set()).add(self.name)
        got = self.lock.acquire(*args, **kwargs)
        if got:
            mine.append(self)
        return got
    def release(self):
        held.locks.reverse(); held.locks.remove(self); held.locks.reverse()
        self.lock.release()
    __enter__ = acquire
    def __exit__(self, *_):
        self.release()
    def __getattr__(self, name):  # of conditions
        return getattr(self.lock, name)
threading.RLock = Noted
"""
        + WORK
        + """
threading.RLock = real
threads = [threading.Thread(target=work, args=(k, 20)) for k in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
assert not wrong, wrong
ours = {a: {b for b in found if "calque" in b} for a, found in after.items() if "calque" in a}
assert ours, "no lock was taken inside another: the test sees nothing"
def reaches(a, b, seen):
    return any(c == b or (c not in seen and not seen.add(c) and reaches(c, b, seen))
               for c in ours.get(a, ()))
circles = [a for a in ours if reaches(a, a, set())]
assert not circles, circles
""",
        timeout=600,
    )
