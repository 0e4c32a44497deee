"""PyTorch's CPU random generator: the numbers that it draws for a seed, as NumPy arrays.

The engine is the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), seeded by its `init_genrand`. What each kind
of draw takes from it (how many 32-bit words, which bits, in which order) is what PyTorch 2.13 takes, so that a program
may mix them freely. Normal numbers in single precision are computed as PyTorch's vector kernels compute them (with AVX2
or AVX-512), those in double precision by the C library.

>>> Generator(0).uniform((2,)).tolist()
[0.49625658988952637, 0.7682217955589294]
"""

from __future__ import annotations

import math
import os
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import devices
from gradcli.eager._core.devices import CPU
from gradcli.eager._core.events import per_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Shape = Sequence[int]

TWO_PI = 2 * math.pi


def fma32(x: Any, y: Any, z: Any) -> Array:
    """x * y + z of singles, rounded once: the product is exact in double precision."""
    result: Array = (x.astype(np.float64) * y + z).astype(np.float32)
    return result


def fma64(x: Array, y: float, z: float) -> Array:
    """x * y + z of doubles, rounded once: the product's and the sum's errors are added back (Dekker, 1971; Knuth)."""
    if y == 1.0:
        return x + z
    product = x * y
    if not (1e-140 < abs(y) < 1e140 and abs(z) < 1e140):  # the splitting below would overflow or underflow
        return product + z
    split = 2.0**27 + 1
    x_high = x * split - (x * split - x)
    y_high = y * split - (y * split - y)
    x_low, y_low = x - x_high, y - y_high
    product_error = x_low * y_low - (product - x_high * y_high - x_low * y_high - x_high * y_low)
    total = product + z
    part = total - product
    total_error = (product - (total - part)) + (z - part)
    return total + (product_error + total_error)


def box_muller64(blocks: Array) -> Array:
    """Doubles of shape (n, 2, m) in [0, 1) to normal ones: radii from row 0, angles from row 1."""

    # `math` is the C library, which PyTorch calls too; NumPy's own logarithm and sine differ in the last bit
    def each(function: Any, values: Array) -> Array:
        return np.array(list(map(function, values.ravel().tolist()))).reshape(values.shape)

    radius = np.sqrt(-2 * each(math.log, 1 - blocks[:, 0]))
    angle = TWO_PI * blocks[:, 1]
    return np.stack([radius * each(math.cos, angle), radius * each(math.sin, angle)], axis=1)


def box_muller32(blocks: Array) -> Array:
    """Singles of shape (n, 2, m) in [0, 1) to normal ones: radii from row 0, angles from row 1."""
    radius = np.sqrt(np.float32(-2) * _log32(np.float32(1) - blocks[:, 0]))
    sine, cosine = _sine_cosine32(np.float32(TWO_PI) * blocks[:, 1])
    return np.stack([radius * cosine, radius * sine], axis=1)


# The float32 kernels below are those of Cephes (Moshier, 1989): reduced argument, short polynomial. PyTorch evaluates
# them eight lanes at a time with fused multiply-adds; the same roundings in the same order give the same bits.
_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_QUARTER_PI = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # negative, in three parts


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    result: Array = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = fma32(result, x, np.float32(coefficient))
    return result


def _log32(x: Array) -> Array:
    """Natural logarithm of singles in (0, 1]."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < np.float32(math.sqrt(0.5))
    e = (exponent - small).astype(np.float32)
    x = (mantissa - np.float32(1)) + np.where(small, mantissa, np.float32(0))
    square = x * x
    y = fma32(_polynomial(_LOG, x) * x, square, e * _LN2_LOW)
    y = fma32(square, np.float32(-0.5), y)
    return fma32(e, _LN2_HIGH, x + y)


def _sine_cosine32(x: Array) -> tuple[Array, Array]:
    """Sine and cosine of singles in [0, 2 pi]."""
    octant = ((x * np.float32(4 / math.pi)).astype(np.int32) + 1) & ~1
    for part in _QUARTER_PI:
        x = fma32(octant.astype(np.float32), np.float32(part), x)
    square = x * x
    y = _polynomial(_COSINE, square) * square
    cosine = fma32(y, square, -(square * np.float32(0.5))) + np.float32(1)
    sine = fma32(_polynomial(_SINE, square) * square, x, x)
    swapped = octant & 2 != 0
    return (
        np.where(swapped, cosine, sine) * np.where(octant & 4, np.float32(-1), np.float32(1)),
        np.where(swapped, sine, cosine) * np.where((octant - 2) & 4, np.float32(1), np.float32(-1)),
    )


DEFAULT_SEED = 67280421310721  # of a new torch.Generator()
_FLOATS = ("float32", "float64", "float16")
_LANES = 8  # Box-Muller pairs are the entries i and i + 8 of each 16

State = tuple[int, Any, float | None]  # the seed, the engine's state, and a normal number kept back

_alone = RLock()  # threads may share a generator: each number is drawn once, by whichever comes first


class Generator:
    """A stream of random numbers, equal to `torch.Generator()` on the CPU, the only device that there is.

    Every draw takes a shape (a sequence of sizes) and returns a new array. Formats of floating-point numbers are
    "float32", "float64" and "float16". RuntimeError for bounds and sizes that PyTorch refuses too.

    >>> Generator(1).randperm(5).tolist()
    [0, 4, 2, 3, 1]
    """

    __slots__ = ("_bits", "_seed", "_spare", "device")

    def __init__(self, seed: Any = DEFAULT_SEED, *, device: Any = CPU) -> None:
        if not isinstance(seed, int):
            seed, device = DEFAULT_SEED, seed
        with devices.device(device) as self.device:
            self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed` (-2**63 to 2**64-1; ValueError outside) and forget a normal number kept back.

        >>> Generator().manual_seed(-1).initial_seed() == 2**64 - 1
        True
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"the seed {seed} does not fit in 64 bits")
        self._seed = seed % 2**64
        self._bits: np.random.MT19937 | None = None
        self._spare: float | None = None
        return self

    def seed(self) -> int:
        """Seed from the operating system's entropy; the seed is returned."""
        return self.manual_seed(int.from_bytes(os.urandom(8)) >> 11)._seed

    def initial_seed(self) -> int:
        """The seed that the stream started from."""
        return self._seed

    def get_state(self) -> State:
        """The state now; later draws do not change it."""
        return self._seed, None if self._bits is None else self._bits.state, self._spare

    def set_state(self, state: State) -> Generator:
        """Continue from a state that `get_state` returned.

        >>> one = Generator(3); state = one.get_state(); first = one.normal((5,))
        >>> bool((one.set_state(state).normal((5,)) == first).all())
        True
        """
        seed, engine, spare = state
        self.manual_seed(seed)
        if engine is not None:
            self._engine().state = engine
        self._spare = spare
        return self

    def uniform(self, shape: Shape, low: float = 0.0, high: float = 1.0, dtype: str = "float32") -> Array:
        """Uniform numbers in [low, high)."""
        _require(dtype)
        largest = float(np.finfo(dtype).max)
        if not (max(abs(low), abs(high)) <= largest and 0 <= high - low <= largest):
            raise RuntimeError(f"uniform: from {low} to {high} is not an interval of finite length in {dtype}")
        count = _count(shape)
        values: Array
        if dtype == "float64":
            values = fma64(self._doubles(count), high - low, low)
        else:
            start, end = np.float32(low), np.float32(high)
            values = self._singles(count)
            if (low, high) != (0.0, 1.0):
                values = fma32(values, end - start, start)
            values = values.astype(dtype, copy=False)
        # rounding may reach the upper end, which is excluded
        values[values == values.dtype.type(high)] = low
        return values.reshape(shape)

    def normal(
        self, shape: Shape, mean: float = 0.0, std: float = 1.0, dtype: str = "float32", *, contiguous: bool = True
    ) -> Array:
        """Normal numbers by the method of Box and Muller.

        From 16 elements on, in blocks of 16 and in the format itself; fewer (or the elements of a tensor that is not
        contiguous) one by one in double precision, where the second number of a pair is kept for the next call.
        """
        _require(dtype)
        if not std >= 0:
            raise RuntimeError(f"normal: the standard deviation must not be negative, it is {std}")
        count = _count(shape)
        values: Array
        if count < 16 or not contiguous:
            values = fma64(np.array([self._one_normal() for _ in range(count)]), std, mean)
            # PyTorch makes a half of a double by way of a single
            values = values.astype("float32") if dtype == "float16" else values
        elif dtype == "float64":
            values = fma64(self._blocks(count, self._doubles, box_muller64), std, mean)
        else:
            values = self._blocks(count, self._singles, box_muller32, dtype == "float16")
            values = fma32(values, np.float32(std), np.float32(mean))
        return values.astype(dtype, copy=False).reshape(shape)

    def exponential_like(self, array: Array, lambd: float = 1.0) -> Array:
        """Numbers with the density lambd * exp(-lambd * x), for the entries of an array."""
        return (-np.log1p(-laid_out(self._doubles(array.size), array)) / float(lambd)).astype(array.dtype)

    def bernoulli(self, shape: Shape, probability: Any = 0.5) -> Array:
        """True with a probability, or with those in an array of this shape; what dropout draws."""
        each = np.asarray(probability)
        if not ((each >= 0) & (each <= 1)).all():
            raise RuntimeError("bernoulli: probabilities lie in [0, 1]")
        draw: Any = self._singles if each.dtype in (np.float16, np.float32) else self._doubles
        drawn: Array = draw(_count(shape)).reshape(shape) < each
        return drawn

    def randint(self, low: int, high: int, shape: Shape) -> Array:
        """Whole numbers (int64) in [low, high).

        >>> Generator(0).randint(0, 10, (5,)).tolist()
        [4, 9, 3, 0, 3]
        """
        if low >= high:
            raise RuntimeError(f"randint: from={low} must be below to={high}")
        if low < -(2**63) or high > 2**63 - 1:
            raise RuntimeError(f"randint: the bounds {low} and {high} must be numbers of int64")
        count = _count(shape)
        span = high - low
        words = self._words(count).astype(np.uint64) if span < 2**28 else self._long_words(count)
        # modulo 2**64 the sum is right whatever the sign of `low`
        return (words % np.uint64(span) + np.uint64(low % 2**64)).view(np.int64).reshape(shape)

    def randperm(self, count: int) -> Array:
        """The numbers 0 to count - 1 (int64) in random order, by Fisher and Yates' exchanges from the front."""
        _count((count,))
        result = list(range(count))
        steps = self._words(max(count - 1, 0)) % np.arange(count, min(count, 1), -1, dtype=np.int64)
        for place, step in enumerate(steps.tolist()):
            other = place + step
            result[place], result[other] = result[other], result[place]
        return np.array(result, dtype=np.int64)

    def uniform_like(self, array: Array, low: float = 0.0, high: float = 1.0) -> Array:
        """`uniform` for the entries of an array, in the order in which they lie in memory, as PyTorch fills views."""
        return laid_out(self.uniform((array.size,), low, high, array.dtype.name), array)

    def normal_like(self, array: Array, mean: float = 0.0, std: float = 1.0) -> Array:
        """`normal` for the entries of an array, in the order in which they lie in memory."""
        whole, law = array.flags.c_contiguous, (float(mean), float(std))
        return laid_out(self.normal((array.size,), *law, array.dtype.name, contiguous=whole), array)

    def _engine(self) -> np.random.MT19937:
        with _alone:
            if self._bits is None:
                self._bits = np.random.MT19937()
                seeded: Any = np.random.RandomState(self._seed % 2**32).get_state(legacy=False)
                self._bits.state = seeded
            return self._bits

    def _words(self, count: int) -> NDArray[np.uint32]:
        return self._engine().random_raw(count).astype(np.uint32)

    def _long_words(self, count: int) -> NDArray[np.uint64]:
        words = self._engine().random_raw(2 * count)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def _singles(self, count: int) -> NDArray[np.float32]:
        return (self._words(count) & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)

    def _doubles(self, count: int) -> NDArray[np.float64]:
        return (self._long_words(count) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53

    def _one_normal(self) -> float:
        with _alone:
            if self._spare is not None:
                value, self._spare = self._spare, None
                return value
            turn, distance = self._doubles(2).tolist()
            radius, angle = math.sqrt(-2 * math.log1p(-distance)), TWO_PI * turn
            self._spare = radius * math.sin(angle)
            return radius * math.cos(angle)

    def _blocks(self, count: int, draw: Any, transform: Any, exact: bool = False) -> Array:
        """Blocks of 16 uniform numbers to normal ones; the last 16 are drawn anew when `count` is not a multiple of 16.

        What is left over after whole blocks is drawn and thrown away, except in half precision (`exact`).
        """
        whole = count - count % 16
        drawn = draw(whole if exact else count)
        values: Array = np.empty(count, drawn.dtype)
        values[:whole] = transform(drawn[:whole].reshape(-1, 2, _LANES)).ravel()
        if whole < count:
            values[-16:] = transform(draw(16).reshape(1, 2, _LANES)).ravel()
        return values


def _require(dtype: str) -> None:
    if dtype not in _FLOATS:
        raise RuntimeError(f"random floats are drawn in {', '.join(_FLOATS)}; {dtype} is none of them")


def _count(shape: Shape) -> int:
    if any(size < 0 for size in shape):
        raise RuntimeError(f"a shape has no negative sizes: {tuple(shape)}")
    return math.prod(shape)


def laid_out(values: Array, like: Array) -> Array:
    """Values in the shape of an array, in the order in which its entries lie in memory."""
    if like.flags.c_contiguous:
        return values.reshape(like.shape)
    order = sorted(range(like.ndim), key=lambda axis: -abs(like.strides[axis]))
    return values.reshape([like.shape[axis] for axis in order]).transpose(np.argsort(order))


default_generator = Generator()
default_generator.seed()
own = per_thread(default_generator=default_generator)  # another one in a thread that records a function


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it."""
    return own.default_generator.manual_seed(seed)  # type: ignore[no-any-return]
