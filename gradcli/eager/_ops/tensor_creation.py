"""Creation: `tensor`, `zeros`, `arange`, `rand` and the like, and the constructors of old programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core import devices, dtypes, events
from gradcli.eager._core.events import noted
from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import Number, Operand, Sizes, checked, sizes
from gradcli.eager._engine.record import cast
from gradcli.eager._engine.rule_node import renamed
from gradcli.eager._ops.elementwise import add, mul, without_rule
from gradcli.eager._ops.table import FUNCTION, Operation, described, op, rows


def creates(aliases: str = "", **columns: Any) -> Callable[[Callable[..., Any]], Operation[..., Tensor]]:
    """The row of a function that makes a tensor, or its array: it takes PyTorch's options of memory and gradients."""

    def with_row(make: Callable[..., Any]) -> Operation[..., Tensor]:
        run = make if make.__name__ in _FREE else checked(make)

        @functools.wraps(make)
        def placed(
            *args: Any,
            device: Any = None,
            pin_memory: bool = False,
            layout: Any = None,
            requires_grad: bool = False,
            **options: Any,
        ) -> Tensor:
            where = None if device is None else devices.device(device)
            if "dtype" in options:
                options["dtype"] = dtypes.meant(options["dtype"])
            result = run(*args, **options)
            if not isinstance(result, Tensor):
                result = Tensor(result if result.ndim else result[()])
            events.report("born", result)
            if requires_grad:
                result.requires_grad_()
            if where is not None and where.type != "cpu":
                result._raw = devices.moved(result._array, where)
            return result

        return op(aliases, only=FUNCTION, **columns)(placed)

    return with_row


_FREE = ("_copied", "zeros", "ones", "empty", "rand", "randn")  # these look at data or sizes themselves


@op(only=FUNCTION)
def tensor(data: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A new leaf with a copy of the data; whole numbers become int64, others the default float format.

    Raises ValueError for rows of different lengths, RuntimeError for a format that cannot require grad.
    """
    result = _copied(data, dtype=dtype, **options)
    events.report("cut", "torch.tensor()", data if isinstance(data, (list, tuple)) else (data,), result)
    return result


@creates()
def _copied(data: Any, *, dtype: dtypes.dtype | None = None) -> Any:
    if isinstance(data, Tensor):
        warn("to copy a tensor, use clone().detach(), and requires_grad_(True) after it", UserWarning)
        data = data._array
    array = _array(data)
    if dtype is None:
        dtype = dtypes.of(array.dtype) if hasattr(data, "dtype") else dtypes.of_number(array[()])
    return np.array(array, dtype=dtype.np)


def _array(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        data = _plain(data)
    array = np.asarray(data)
    if array.size == 0 and not hasattr(data, "dtype"):
        array = array.astype(dtypes.get_default_dtype().np)
    if array.dtype.kind not in "biufc":
        if array.dtype.kind == "O":
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        raise TypeError(f"a tensor cannot be made from entries of type {type(array.reshape(-1)[0].item()).__name__}")
    return array


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):  # in a list each stands for a number
        if data._array.size != 1:
            raise ValueError("only one element tensors can be converted to numbers in a list; stack() joins others")
        return data._array.reshape(())
    return [_plain(entry) for entry in data] if isinstance(data, (list, tuple)) else data


@creates("asarray")
def as_tensor(data: Any, dtype: dtypes.dtype | None = None) -> Any:
    """The data as a tensor: a tensor of this format as it is, an array without a copy."""
    if isinstance(data, Tensor):
        return data if dtype is None else cast(data, dtype)
    if isinstance(data, np.ndarray):
        return from_numpy(data) if dtype is None else cast(from_numpy(data), dtype)
    return tensor(data, dtype=dtype)


@op(only=FUNCTION)
def from_numpy(array: Any) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy() needs an array, not {type(array).__name__}")
    dtypes.of(array.dtype)
    return Tensor(array)


def _shape(shape: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
        if not shape:
            return ()
    if any(isinstance(n, Tensor) and n.ndim for n in shape):
        raise TypeError("a size must be a whole number (tuple of ints), not a tensor with axes")
    wanted = sizes(shape, named)
    if wanted and min(wanted) < 0:
        raise RuntimeError(f"a tensor cannot have negative dimensions: {list(wanted)}")
    return wanted


def _type(dtype: dtypes.dtype | None) -> Any:
    return (dtype or dtypes.get_default_dtype()).np


def _of_shape(name: str, make: Any, summary: str) -> Any:
    def function(*shape: Any, size: Any = None, dtype: dtypes.dtype | None = None) -> Any:
        return make(_shape(shape, size), _type(dtype))

    return creates()(described(function, name, summary))


zeros, ones = _of_shape("zeros", np.zeros, "Zeros of a shape."), _of_shape("ones", np.ones, "Ones of a shape.")
empty = _of_shape("empty", np.zeros, "Entries of a shape to be written; they are zeros.")


@creates()
def full(size: Any, fill_value: Number, *, dtype: dtypes.dtype | None = None) -> Any:
    """One number, repeated over a shape."""
    kind = dtypes.of_number(fill_value) if dtype is None else dtype
    return np.full(_shape((size,)), fill_value, kind.np)


@creates()
def eye(n: int, m: int | None = None, *, dtype: dtypes.dtype | None = None) -> Any:
    """Ones on the diagonal of a matrix."""
    return np.eye(n, m, dtype=_type(dtype))


def _triangle(name: str, places: Any, where: str) -> Any:
    def function(row: int, col: int, offset: int = 0, *, dtype: dtypes.dtype | None = None) -> Any:
        return np.stack(places(row, offset, col)).astype((dtype or dtypes.int64).np)

    return creates()(described(function, name, f"Rows and columns of the entries on a diagonal and {where} it."))


tril_indices = _triangle("tril_indices", np.tril_indices, "below")
triu_indices = _triangle("triu_indices", np.triu_indices, "above")


@creates()
def arange(
    start: Number | None = None, end: Number | None = None, step: Number = 1, *, dtype: dtypes.dtype | None = None
) -> Any:
    """Numbers from `start` (0 where only one is given) below `end`, `step` apart."""
    if end is None:
        start, end = 0, start
    if end is None:
        raise TypeError("arange() needs an end")
    start = 0 if start is None else start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound are inconsistent with the sign of the step")
    whole = all(isinstance(n, int) for n in (start, end, step))
    kind = dtype or (dtypes.int64 if whole else dtypes.get_default_dtype())
    return np.arange(start, end, step).astype(kind.np)


@creates()
def linspace(start: float, end: float, steps: int, *, dtype: dtypes.dtype | None = None) -> Any:
    """So many numbers at equal distances, both ends included."""
    return np.linspace(start, end, steps, dtype=np.float64).astype(_type(dtype))


@creates()
def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: dtypes.dtype | None = None) -> Any:
    """Powers of a base with exponents at equal distances, both ends included."""
    exponents = np.linspace(start, end, steps, dtype=np.float64)
    return (base**exponents).astype(_type(dtype))


def _like_of(make: Callable[..., Tensor], summary: str) -> Any:
    """`zeros_like` of `zeros`, and so on: its result in the shape and format of a tensor."""

    def function(input: Tensor, *, dtype: dtypes.dtype | None = None) -> Tensor:
        return make(tuple(input.shape), dtype=dtype or input.dtype)

    return creates()(described(function, f"{make.__name__}_like", summary))


zeros_like = _like_of(zeros, "Zeros in the shape and format of a tensor.")
ones_like = _like_of(ones, "Ones in the shape and format of a tensor.")
empty_like = _like_of(empty, "Entries to be written, in the shape and format of a tensor; they are zeros.")


@creates()
def full_like(input: Tensor, fill_value: Number, *, dtype: dtypes.dtype | None = None) -> Any:
    """One number in the shape and format of a tensor."""
    return np.full(input._array.shape, fill_value, (dtype or input.dtype).np)


ROWS: dict[str, Any] = rows(
    op,
    {
        "manual_seed": ("Start the stream that belongs to a seed.", lambda seed: streams.manual_seed(seed)),
        "get_rng_state": ("The state of the stream now.", lambda: streams.own.default_generator.get_state()),
        "set_rng_state": (
            "Continue the stream from a state.",
            lambda new_state: streams.own.default_generator.set_state(new_state),
        ),
    },
    kinds={"seed": "int"},
    only=FUNCTION,
)


def _drawn(name: str, law: str, summary: str) -> Any:
    """`rand` or `randn`: numbers from a stream, in any shape."""

    def function(*shape: Any, size: Any = None, generator: Any = None, dtype: dtypes.dtype | None = None) -> Tensor:
        draw: Any = getattr(generator or streams.own.default_generator, law)
        return draw(_shape(shape, size), dtype=_type(dtype).name)  # type: ignore[no-any-return]

    return creates()(described(function, name, summary))


rand = _drawn("rand", "uniform", "Numbers between 0 and 1, all equally likely.")
randn = _drawn("randn", "normal", "Standard normal numbers.")
rand_like = _like_of(rand, "`rand` in the shape and format of a tensor.")
randn_like = _like_of(randn, "`randn` in the shape and format of a tensor.")


@creates()
def randint(
    low: int | None = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: dtypes.dtype | None = None,
) -> Any:
    """Whole numbers from `low` (0 where only one bound is given) below `high`, as int64 unless another is requested."""
    if size is None:
        if not isinstance(high, (tuple, list)):
            raise TypeError("randint() needs bounds and a size: randint(high, size) or randint(low, high, size)")
        high, size = None, high
    if high is None:
        low, high = 0, low
    low = 0 if low is None else low
    if not isinstance(size, (tuple, list)) or high is None or isinstance(high, (tuple, list)):
        raise TypeError("randint(): argument 'size' must be tuple of ints, and 'high' a whole number")
    drawn = (generator or streams.own.default_generator).randint(low, high, _shape((size,)))
    return drawn if dtype is None else drawn.astype(dtype.np)


@creates(node="NormalBackward3")
def normal(
    mean: Operand,
    std: Operand = 1.0,
    size: Sizes | None = None,
    *,
    generator: Any = None,
    dtype: dtypes.dtype | None = None,
) -> Any:
    """Normal numbers: of a mean and a deviation in a size, or one for each entry of tensors of these.

    TypeError for numbers without a size, RuntimeError for a negative deviation.
    """
    source = generator or streams.own.default_generator
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if not tensors or size is not None:
        if size is None or tensors:
            raise TypeError("normal() takes tensors without a size, or numbers and a size")
        return source.normal(_shape((size,)), float(mean), float(std), _type(dtype).name)
    if isinstance(std, Tensor) and (std._array < 0).any():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    kind, shape = tensors[0].dtype, np.broadcast_shapes(*[x._raw.shape for x in tensors])
    shifted = add(mul(Tensor(np.asarray(source.normal(shape, dtype=kind.name))), std), mean)
    return shifted.detach() if not any(x.requires_grad for x in tensors) else renamed(shifted, normal.node)


@creates()
def randperm(n: int, *, generator: Any = None, dtype: dtypes.dtype | None = None) -> Any:
    """The numbers below n in random order."""
    order = (generator or streams.own.default_generator).randperm(n)
    return order if dtype is None else order.astype(dtype.np)


@op(only=FUNCTION)
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities in the tensor, or with one probability, else zeros."""
    raw = input._raw
    drawn = (generator or streams.own.default_generator).bernoulli(raw.shape, raw if p is None else p)
    result = Tensor(drawn.astype(raw.dtype))
    return without_rule(result, (input,), "bernoulli")


@op(only=FUNCTION)
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Positions, drawn with probabilities in proportion to the entries of each row.

    RuntimeError for weights that are negative, not finite, or all zero, and for more samples than there are.
    """
    weights = np.asarray(input._array, np.float64)
    if weights.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, and this has {weights.ndim}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(axis=-1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    source = generator or streams.own.default_generator
    if replacement and num_samples > 1:
        edges = np.cumsum(weights, axis=-1)
        rows = (edges / edges[..., -1:]).reshape(-1, weights.shape[-1])
        draws = source.uniform((len(rows), num_samples), dtype="float64")
        places = [np.searchsorted(row, draw) for row, draw in zip(rows, draws, strict=True)]
        positions = np.reshape(places, (*weights.shape[:-1], num_samples))
    else:  # the smallest of exponential variables whose rates are the weights
        times = source.exponential_like(input._array)
        positions = np.argsort(-(input._array / times), axis=-1, kind="stable")[..., :num_samples]
    return noted("multinomial", (input,), Tensor(np.ascontiguousarray(positions, np.int64)))


def _like(name: str, make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, dtype: dtypes.dtype | None = None, **options: Any) -> Tensor:
        return make(*args, dtype=dtype or self.dtype, **options)

    return described(method, name, f"`{name[4:]}` in the format of a tensor.")  # type: ignore[no-any-return]


METHODS = {f"new_{make.__name__}": _like(f"new_{make.__name__}", make) for make in (zeros, ones, empty, full, tensor)}


def entries_of(first: Any, *rest: Any) -> Any:
    """The entries of `torch.Tensor(...)`: a list in the default format, or zeros of given sizes.

    TypeError for a number with a point, as in PyTorch.
    """
    kind = dtypes.get_default_dtype()
    if type(first) is int:
        return np.zeros([size for size in (first, *rest) if type(size) is int], kind.np)
    if isinstance(first, float):
        raise TypeError("torch.Tensor takes sizes or a sequence: torch.tensor(3.5) makes a tensor of a number")
    if isinstance(first, (list, tuple)):
        return tensor(first, dtype=kind)._array
    return np.asarray(first)


class _ConstructorType(type):
    """The type of such a constructor: a tensor of its format, or any where it has none, is an instance of it."""

    dtype: dtypes.dtype | None = None
    make: Any

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and cls.dtype in (None, value.dtype)

    def __call__(cls, *args: Any, **options: Any) -> Tensor:
        tensor: Tensor = cls.make(*args, **options)
        return tensor


def _typed(kind: dtypes.dtype) -> Any:
    """A tensor of given entries, or of given sizes (then with zeros)."""

    def make(*sizes: Any) -> Tensor:
        if len(sizes) == 1 and not isinstance(sizes[0], int):
            return tensor(sizes[0], dtype=kind)
        return Tensor(np.zeros(sizes or (0,), kind.np))

    return staticmethod(make)


TYPED: dict[str, Any] = {
    name: _ConstructorType(name, (), {"dtype": kind, "make": _typed(kind), "__module__": "torch"})
    for kind, name in dtypes.TENSOR_NAMES.items()
    if not kind.is_complex
}


class Variable(metaclass=_ConstructorType):
    """The old name of tensors.

    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    __module__ = "torch.autograd.variable"

    @staticmethod
    def make(data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        """A leaf that shares the memory and the version of a tensor. TypeError for what is not a tensor."""
        data = empty(0) if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warn("volatile was removed and has no effect: use no_grad() instead")
        return data.detach().requires_grad_(bool(requires_grad))
