exec(open("/tmp/sym/edit1.py").read().split("sub('ops/sizes.py'")[0])
sub("nn/attention.py", ('UFUNCS["less"](places[None, None]', 'UFUNCS["less"](at[None, None]'))
sub(
    "numpy/creation.py",
    ("from calque.core.dims import Dim, as_size\n", "from calque.core.dims import Dim, as_size, value_of\n"),
    (
        """def _array(x: Any, dtype: Any, copy: bool) -> Any:
""",
        """def _array(x: Any, dtype: Any, copy: bool) -> Any:
    if type(x) is Dim:
        x = value_of(x)
""",
    ),
    (
        """        raise TypeError("None is not a valid value for jnp.array")
    if not leaves:
""",
        """        raise TypeError("None is not a valid value for jnp.array")
    if any(type(v) is Dim for v in leaves):
        return _from_sequence(pytrees.map(lambda v: value_of(v) if type(v) is Dim else v, x), dtype)
    if not leaves:
""",
    ),
)
sub(
    "native/lower_select.py",
    (
        'behind = self.full(max(self.shape[self.axis] - 1, 0), np.dtype("int32"))',
        'size = self.shape[self.axis]\n        behind = self.full(max(size - 1, 0) if type(size) is int else np.iinfo(np.int32).max, np.dtype("int32"))',
    ),
)
sub(
    "numpy/shaping.py",
    (
        "cuts = [0, *[slice(0, operator.index(i)).indices(size)[1] for i in where], size]",
        "cuts = [0, *[sum(slice_bounds(slice(0, as_size(i)), size)[:2]) for i in where], size]",
    ),
    (
        "from calque.core.dims import as_size, surely_same\n",
        "from calque.core.dims import as_size, slice_bounds, surely_same\n",
    ),
)
sub(
    "random/choosing.py",
    (
        """    rounds = math.ceil(3 * math.log(max(1, size)) / math.log(np.iinfo(np.uint32).max))
    for _ in range(rounds):
""",
        """    most = float(np.iinfo(np.uint32).max)
    rounds = 0
    while size > int(most ** (rounds / 3)):  # the cube root of the words for each round
        rounds += 1
    for _ in range(rounds):
""",
    ),
    ("import math\n", ""),
)
sub(
    "ops/padding.py",
    (
        "pads = tuple([(operator.index(low), operator.index(high)) for low, high in padding])",
        "pads = tuple([(as_size(low), as_size(high)) for low, high in padding])",
    ),
    ("from typing import Any\n", "from typing import Any\n\nfrom calque.core.dims import as_size\n"),
)
