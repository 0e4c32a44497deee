"""A seed goes in, the text of a script on arrays of up to three axes comes out, and values for its leaves.

Operands are broadcast, sliced with steps of both signs, transposed, joined, sorted, added up and multiplied along every
axis. It knows shapes only, and nothing of how a script is computed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]
SIZES = (1, 2, 3, 5, 8, 9)
MOST = 600  # entries of an array
ODD = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, -1e308, 1e-310, 1e200, 1e-200)
UNARY = (
    "exp(-{}**2)", "tanh({})", "sin({})*cos({})", "relu({})", "softplus({})", "abs({})", "{}**3", "1/(1 + {}**2)",
    "where({} > 0, {}, 0.5*{})", "clip({}, -0.5, 0.7)", "sqrt(1 + {}**2)", "-{}", "{}/3", "sigmoid({})", "{}*{}",
    "log(1.5 + tanh({}))", "where(abs({}) < 1, {}*{}, 1)", "detach({})*{}", "maximum({}, 0.1)", "round({})*{}",
    "erf({})", "0.1 - {}", "{}", "2**{}", "arctan({})",
)  # fmt: skip
BINARY = (
    "({} + {})", "({} - {})", "({}*{})", "({}/(2 + {}**2))", "maximum({}, {})", "minimum({}, {})", "hypot({}, {})",
    "where({} < {}, 1.0, 0.25)", "arctan2({}, 3 + {}**2)", "logaddexp({}, {})",
)  # fmt: skip
REDUCED = (
    "sum({}, axis={})", "mean({}, axis={})", "max({}, axis={})", "min({}, axis={})", "logsumexp({}, axis={})",
    "var({}, axis={})", "norm({}, axis={})", "prod(1 + 0.1*tanh({}), axis={})", "std(1 + {}, axis={})", "median({}, axis={})",
)  # fmt: skip
ALONG = (
    "cumsum({}, axis={})", "softmax({}, axis={})", "log_softmax({}, axis={})", "flip({}, axis={})", "sort({}, axis={})",
    "cumprod(tanh({}), axis={})", "roll({}, 1, axis={})",
)  # fmt: skip


class Array(NamedTuple):
    """A name and its shape."""

    name: str
    shape: Shape


class Writer:
    """Statements one by one; `arrays` are what they may read."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng([11, seed])
        self.axes = [int(n) for n in self.random.choice(SIZES, 3)]
        self.arrays: list[Array] = []
        self.lines: list[str] = []
        self.values: dict[str, Any] = {}

    def below(self, n: int) -> int:
        return int(self.random.integers(n))

    def pick(self, among: Any) -> Any:
        return among[self.below(len(among))]

    def leaf(self) -> Array:
        """A new leaf: of each axis its own size or 1, in any number of axes."""
        rank = self.below(4)
        shape = tuple([n if self.random.random() < 0.85 else 1 for n in self.axes[3 - rank :]])
        name = "xyzw"[len(self.values)]
        self.values[name] = self.random.normal(size=shape) * self.pick([0.5, 1.0, 2.0])
        found = Array(name, shape)
        self.arrays.append(found)
        return found

    def add(self, text: str, shape: Shape) -> None:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.arrays.append(Array(name, shape))

    def array(self, fits: Callable[[Shape], bool] = lambda _: True) -> Array | None:
        """One of the last arrays, or any."""
        among = [one for one in self.arrays if fits(one.shape)]
        if not among:
            return None
        return self.pick(among[-3:] if self.random.random() < 0.6 else among)

    # --- statements ------------------------------------------------------------------------------------------

    def unary(self) -> None:
        x = self.pick(self.arrays[-4:])
        template = self.pick(UNARY)
        self.add(template.format(*[x.name] * template.count("{}")), x.shape)

    def binary(self) -> None:
        x = self.pick(self.arrays[-4:])
        y = self.array(lambda shape: together(shape, x.shape) is not None)
        assert y is not None  # itself fits
        shape = together(x.shape, y.shape)
        if shape is not None and int(np.prod(shape)) <= MOST:
            pair = (x.name, y.name) if self.random.random() < 0.5 else (y.name, x.name)
            self.add(self.pick(BINARY).format(*pair), shape)

    def reduced(self) -> None:
        x = self.array(lambda shape: len(shape) > 0 and 0 not in shape)
        if x is None:
            return
        axis = self.below(len(x.shape))
        told = axis - len(x.shape) if self.random.random() < 0.5 else axis
        text = self.pick(REDUCED)
        if self.random.random() < 0.25:
            self.add(text.format(x.name, f"{told}, keepdims=True") if "median" not in text else x.name,
                     x.shape if "median" in text else (*x.shape[:axis], 1, *x.shape[axis + 1 :]))  # fmt: skip
        elif len(x.shape) > 1 and self.random.random() < 0.25:
            self.add(f"sum({x.name}, axis=(0, -1))", x.shape[1:-1])
        else:
            self.add(text.format(x.name, told), (*x.shape[:axis], *x.shape[axis + 1 :]))

    def along(self) -> None:
        x = self.array(lambda shape: len(shape) > 0 and 0 not in shape)
        if x is not None:
            self.add(self.pick(ALONG).format(x.name, self.below(2 * len(x.shape)) - len(x.shape)), x.shape)

    def sliced(self) -> None:
        x = self.array(lambda shape: len(shape) > 0)
        if x is None:
            return
        parts, shape = [], []
        for n in x.shape:
            kind = self.random.random()
            if kind < 0.3:
                part = slice(None)
            elif kind < 0.5:
                part = slice(None, None, -1)
            elif kind < 0.6 and n:
                parts.append(str(self.below(2 * n) - n))
                continue
            else:
                low = self.below(n + 1) if n else 0
                high = low + self.below(n - low + 1)
                step = int(self.pick([1, 1, 1, 2, 3]))
                part = slice(low, high, step)
                if self.random.random() < 0.3 and high > low:
                    part = slice(high - 1, low - 1 if low else None, -step)
            length = len(range(*part.indices(n)))
            if not length and self.random.random() < 0.9:
                part, length = slice(None), n
            words = ["" if one is None else str(one) for one in (part.start, part.stop, part.step)]
            parts.append(":".join(words))
            shape.append(length)
        if self.random.random() < 0.2 and len(shape) < 3:
            parts.append("None")
            shape.append(1)
        self.add(f"{x.name}[{', '.join(parts)}]", tuple(shape))

    def moved(self) -> None:
        x = self.array(lambda shape: len(shape) > 1)
        if x is None:
            return
        order = [int(i) for i in self.random.permutation(len(x.shape))]
        if self.random.random() < 0.6:
            self.add(f"transpose({x.name}, ({', '.join(map(str, order))}))", tuple([x.shape[i] for i in order]))
        else:
            cut = 1 + self.below(len(x.shape) - 1)
            shape = (int(np.prod(x.shape[:cut])), int(np.prod(x.shape[cut:])))
            self.add(f"reshape({x.name}, ({shape[0]}, {shape[1]}))", shape)

    def joined(self) -> None:
        x = self.array(lambda shape: len(shape) > 0)
        if x is None:
            return
        axis = self.below(len(x.shape))
        rest = (*x.shape[:axis], *x.shape[axis + 1 :])
        y = self.array(lambda shape: len(shape) == len(x.shape) and (*shape[:axis], *shape[axis + 1 :]) == rest)
        assert y is not None
        n = x.shape[axis] + y.shape[axis]
        self.add(f"concatenate(({x.name}, {y.name}), axis={axis})", (*x.shape[:axis], n, *x.shape[axis + 1 :]))

    def taken(self) -> None:
        x = self.array(lambda shape: len(shape) > 0 and 0 not in shape)
        if x is None:
            return
        axis = self.below(len(x.shape))
        n = x.shape[axis]
        index = [self.below(2 * n) - n for _ in range(1 + self.below(5))]
        self.add(f"take({x.name}, {index}, axis={axis})", (*x.shape[:axis], len(index), *x.shape[axis + 1 :]))

    def multiplied(self) -> None:
        x = self.array(lambda shape: len(shape) == 2 and 0 not in shape)
        if x is None:
            return
        a, b = x.shape
        kind = self.below(6)
        y = self.array(lambda shape: len(shape) == 2 and shape[0] == b)
        if kind < 2 and y is not None:
            self.add(f"{x.name} @ {y.name}", (a, y.shape[1]))
        elif kind == 2 and a * a <= MOST:
            self.add(f"{x.name} @ {x.name}.T", (a, a))
        elif kind == 3:
            v = self.array(lambda shape: shape == (b,))
            self.add(f"{x.name} @ {v.name if v else f'ones({b})'}", (a,))
        elif kind == 4:
            self.add(f'einsum("ij,kj->ik", {x.name}, tanh({x.name}))', (a, a))
        else:
            z = self.array(lambda shape: shape == (a, b))
            self.add(f'einsum("ij,ij->{self.pick(["i", "j"])}", {x.name}, {z.name if z else x.name})', ())
            self.arrays[-1] = Array(self.arrays[-1].name, (a,) if self.lines[-1].count("->i") else (b,))

    def crossed(self) -> None:
        x, y = self.array(lambda shape: len(shape) == 1), self.array(lambda shape: len(shape) == 1)
        if x is not None and y is not None and x.shape[0] * y.shape[0] <= MOST:
            self.add(f"outer({x.name}, {y.name})", (*x.shape, *y.shape))

    def widened(self) -> None:
        x = self.array(lambda shape: len(shape) < 3)
        if x is not None:
            at = self.below(len(x.shape) + 1)
            self.add(f"expand_dims({x.name}, {at})", (*x.shape[:at], 1, *x.shape[at:]))


def together(one: Shape, other: Shape) -> Shape | None:
    """The shape of both broadcast, or None."""
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def make(seed: int, length: int = 9) -> tuple[str, dict[str, Any], list[str]]:
    """Statements, the values of the leaves, and the names of what nothing reads."""
    writer = Writer(seed)
    for _ in range(1 + writer.below(4)):
        writer.leaf()
    kinds = [writer.unary] * 4 + [writer.binary] * 5 + [writer.reduced] * 3 + [writer.along] * 2 + [writer.sliced] * 3
    kinds += [
        writer.moved,
        writer.joined,
        writer.taken,
        writer.multiplied,
        writer.multiplied,
        writer.crossed,
        writer.widened,
    ]
    for _ in range(3 + writer.below(length)):
        writer.pick(kinds)()
    text = "\n".join(writer.lines)
    words = re.findall(r"[a-z0-9]+", text)
    counts = {one.name: words.count(one.name) for one in writer.arrays}
    ends = [one.name for one in writer.arrays if one.name.startswith("t") and counts[one.name] <= 1]
    ends += [writer.pick(writer.arrays).name for _ in range(writer.below(2))]
    return text, writer.values, ends or [writer.arrays[-1].name]


def scalar(seed: int, length: int = 9) -> tuple[str, dict[str, Any]]:
    """A script with one number as its output."""
    text, values, ends = make(seed, length)
    forms = ("sum({})", "mean({})", "logsumexp({})", "sum({}**2)", "max({})")
    random = np.random.default_rng([12, seed])
    total = " + ".join(
        [forms[0 if random.random() < 0.6 else random.integers(len(forms))].format(name) for name in ends]
    )
    whole = f"{text}\n{total}"
    return whole, read(whole, values)


def read(text: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the leaves that a script names."""
    words = set(re.findall(r"[a-z0-9]+", text))
    return {name: value for name, value in values.items() if name in words}


def odd(seed: int, values: dict[str, Any]) -> dict[str, Any]:
    """The point with some entries that are no ordinary numbers."""
    random = np.random.default_rng([13, seed])
    share = random.choice([0.05, 0.2])
    return {name: np.where(random.random(one.shape) < share, random.choice(ODD, one.shape), one)
            for name, one in values.items()}  # fmt: skip
