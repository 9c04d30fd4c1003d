"""Pictures of digits, made here: glyphs of 5 x 7 dots, moved, dimmed and covered with noise."""

import numpy as np

SIDE = 12

# Seven rows of each digit, a row of five dots as a number below 32.
GLYPHS = (
    (14, 17, 19, 21, 25, 17, 14),
    (4, 12, 4, 4, 4, 4, 14),
    (14, 17, 1, 2, 4, 8, 31),
    (31, 2, 4, 2, 1, 17, 14),
    (2, 6, 10, 18, 31, 2, 2),
    (31, 16, 30, 1, 1, 17, 14),
    (6, 8, 16, 30, 17, 17, 14),
    (31, 1, 2, 4, 8, 8, 8),
    (14, 17, 17, 14, 17, 17, 14),
    (14, 17, 17, 15, 1, 2, 12),
)


def draw(seed: int, count: int, travel: int, noise: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """`count` images of SIDE x SIDE numbers, and the digit that each shows, at most `travel` dots
    from the middle."""
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, 10, count)
    rows = np.array(GLYPHS)[digits]
    dots = (rows[:, :, None] >> np.arange(4, -1, -1)) & 1
    images = noise * rng.normal(size=(count, SIDE, SIDE))
    down = np.clip(3 + rng.integers(-travel, travel + 1, count), 0, SIDE - 7)
    right = np.clip(3 + rng.integers(-travel, travel + 1, count), 0, SIDE - 5)
    for image, dot, y, x, light in zip(images, dots, down, right, rng.uniform(0.6, 1.2, count)):
        image[y : y + 7, x : x + 5] += light * dot
    return images.astype(np.float32), digits.astype(np.int32)
