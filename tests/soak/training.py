"""A small model trained for as long as one likes, while sizes change, other threads call and the
caches are cleared: memory stays flat, and each epoch repeats the losses of the first one to the
last bit."""

import gc
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import calque
import calque.numpy as jnp
from calque import nn, random
from tests.soak.memory import resident

STEPS = 200  # of an epoch
CLEARED = 7  # epochs from one clearing of the caches to the next
HELPERS = 3
SAMPLES = (1, 2, 3, 8, 31, 32, 33, 64, 100)  # in a batch
LENGTHS = (4, 5, 16, 17)  # of a sample
FEATURES, HIDDEN, CLASSES = 6, 16, 5
ALLOWED_GROWTH = 2 << 20  # bytes after the first third: allocators take memory in regions
ALLOWED_SLOPE = 1.0  # bytes a step, of a long training

State = tuple[Any, Any]
Step = Callable[[State, Any, Any], tuple[State, Any]]


class Watched(NamedTuple):
    """What a training gave."""

    epochs: int
    unequal: int  # epochs whose losses were others than those of the first
    calls: int  # of the other threads
    wrong: list[str]  # what went wrong in them
    memory: list[int]  # bytes of the process after each epoch

    @property
    def growth(self) -> int:
        """Bytes from the first third of the time to its end."""
        return self.memory[-1] - max(self.memory[: len(self.memory) // 3 + 1])

    @property
    def slope(self) -> float:
        """Bytes a step, by least squares over what follows the first third."""
        rest = self.memory[len(self.memory) // 3 :]
        if len(rest) < 2:
            return 0.0
        return float(np.polyfit(np.arange(len(rest)), rest, 1)[0]) / STEPS

    @property
    def fine(self) -> bool:
        flat = self.growth <= ALLOWED_GROWTH or self.slope <= ALLOWED_SLOPE
        return flat and not self.unequal and not self.wrong


def first_state() -> State:
    """Parameters and their momenta."""
    into, within, out = random.split(random.key(7), 3)
    parameters = {
        "into": random.normal(into, (FEATURES, HIDDEN)) / 2,
        "within": random.normal(within, (HIDDEN, HIDDEN)) / 4,
        "out": random.normal(out, (HIDDEN, CLASSES)) / 4,
        "bias": jnp.zeros(CLASSES),
    }
    return parameters, calque.tree.map(jnp.zeros_like, parameters)


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The samples and labels of a step: every pair of sizes comes within an epoch."""
    r = np.random.default_rng(n)
    count, length = SAMPLES[n % len(SAMPLES)], LENGTHS[n % len(LENGTHS)]
    x = r.standard_normal((count, length, FEATURES)).astype(np.float32)
    return x, r.integers(0, CLASSES, count)


def loss(parameters: Any, x: Any, labels: Any) -> Any:
    """Of a recurrent model with a scan over the sample's length."""

    def turn(state: Any, part: Any) -> tuple[Any, None]:
        return jnp.tanh(state @ parameters["within"] + part @ parameters["into"]), None

    start = jnp.zeros((x.shape[0], HIDDEN), jnp.float32)
    state, _ = calque.lax.scan(turn, start, jnp.swapaxes(x, 0, 1))
    scores = nn.log_softmax(state @ parameters["out"] + parameters["bias"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


def step(state: State, x: Any, labels: Any) -> tuple[State, Any]:
    parameters, momenta = state
    value, slopes = calque.value_and_grad(loss)(parameters, x, labels)
    momenta = calque.tree.map(lambda m, g: 0.9 * m + g, momenta, slopes)
    return (calque.tree.map(lambda p, m: p - 0.05 * m, parameters, momenta), momenta), value


def epoch(one: Step) -> list[bytes]:
    """The losses of the steps, as bytes."""
    state, losses = first_state(), []
    for n in range(STEPS):
        state, value = one(state, *batch(n))
        losses.append(np.asarray(value).tobytes())
    return losses


def helper_turn(r: np.random.Generator) -> None:
    """What another thread calls meanwhile, compared with NumPy: old functions and new ones."""
    x = r.standard_normal(int(r.integers(1, 200))).astype(np.float32)
    assert np.array_equal(np.asarray(jnp.sort(x)), np.sort(x))
    k = float(r.integers(1, 5))
    got = calque.jit(lambda v: jnp.where(v > 0, v * k, v))(x)
    assert np.array_equal(np.asarray(got), np.where(x > 0, x * np.float32(k), x))
    slopes = calque.grad(lambda v: (v * v).sum())(jnp.asarray(x))
    assert np.array_equal(np.asarray(slopes), 2 * x)
    try:
        calque.jit(lambda v: v @ jnp.ones(v.shape[0] + 1))(x)
    except TypeError:
        return
    raise AssertionError("nothing was raised")


class Helpers:
    """Threads that call until they are told to end."""

    def __init__(self) -> None:
        self.calls = [0] * HELPERS
        self.wrong: list[str] = []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(k,)) for k in range(HELPERS)]

    def work(self, me: int) -> None:
        r = np.random.default_rng(me)
        try:
            while not self.ended.is_set():
                helper_turn(r)
                self.calls[me] += 1
        except BaseException as e:
            self.wrong.append(f"thread {me}: {e!r}")
            raise

    def __enter__(self) -> "Helpers":
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for t in self.threads:
            t.join()


def train(go_on: Callable[[int], bool]) -> Watched:
    """Epochs for as long as `go_on` says so of their number. Even ones hand over donated arrays,
    those after a clearing compile anew."""
    steps: list[Step] = [calque.jit(step, donate_argnums=0), calque.jit(step)]
    first, unequal, epochs = epoch(steps[0]), 0, 0
    memory: list[int] = []
    with Helpers() as helpers:
        while go_on(epochs):
            if epochs % CLEARED == CLEARED - 1:
                calque.clear_caches()
            unequal += epoch(steps[epochs % 2]) != first
            epochs += 1
            gc.collect()
            memory.append(resident())
    return Watched(epochs, unequal, sum(helpers.calls), helpers.wrong, memory)


def training(minutes: float) -> bool:
    """Train for so many minutes and say what came of it."""
    ends = time.monotonic() + 60 * minutes
    got = train(lambda epochs: epochs < 2 or time.monotonic() < ends)
    print(
        f"training: {got.unequal} of {got.epochs} epochs of {STEPS} steps with other losses,"
        f" {got.calls} calls of {HELPERS} threads beside it, {len(got.wrong)} of these wrong,"
        f" {got.slope:.1f} bytes a step ({got.memory[0] >> 20} to {got.memory[-1] >> 20} MB)",
        *got.wrong,
        sep="\n",
        flush=True,
    )
    return got.fine
