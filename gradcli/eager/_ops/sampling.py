"""Tensors of random numbers: PyTorch's own numbers after the same `manual_seed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core import dtypes
from gradcli.eager._core.events import noted
from gradcli.eager._core.modes import recording
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.rule_node import renamed
from gradcli.eager._ops.creation import _leaf, _shape, placed_on_device
from gradcli.eager._ops.elementwise import add, mul, refused
from gradcli.eager._ops.table import CAST, EXACT, FUNCTION, MADE, op

if TYPE_CHECKING:
    from gradcli.eager._engine.arguments import Operand, Sizes


def _name(dtype: dtypes.dtype | None) -> str:
    return (dtype or dtypes.get_default_dtype()).name


@op(only=FUNCTION)
def manual_seed(seed: int) -> streams.Generator:
    """Start the stream of random numbers that belongs to a seed."""
    return streams.manual_seed(seed)


def rand(
    *given: Any,
    size: Any = None,
    generator: Any = None,
    dtype: dtypes.dtype | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers between 0 and 1, all equally likely."""
    return _leaf((generator or streams.default_generator).rand(_shape(given, size), _name(dtype)), requires_grad)


def randn(
    *given: Any,
    size: Any = None,
    generator: Any = None,
    dtype: dtypes.dtype | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Standard normal numbers."""
    return _leaf((generator or streams.default_generator).randn(_shape(given, size), _name(dtype)), requires_grad)


def randint(
    low: int | None = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: dtypes.dtype | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Whole numbers from `low` (0 where only one bound is given) below `high`, as int64 unless another is asked for."""
    if size is None:
        if not isinstance(high, (tuple, list)):
            raise TypeError("randint() needs bounds and a size: randint(high, size) or randint(low, high, size)")
        high, size = None, high
    if high is None:
        low, high = 0, low
    low = 0 if low is None else low
    if not isinstance(size, (tuple, list)) or high is None or isinstance(high, (tuple, list)):
        raise TypeError("randint(): argument 'size' must be tuple of ints, and 'high' a whole number")
    found = (generator or streams.default_generator).randint(low, high, _shape((size,)))
    return _leaf(found if dtype is None else found.astype(dtype.np), requires_grad)


def normal(
    mean: Operand,
    std: Operand = 1.0,
    size: Sizes | None = None,
    *,
    generator: Any = None,
    dtype: dtypes.dtype | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers: of a mean and a deviation in a size, or one for each entry of tensors of these.

    TypeError for numbers without a size, RuntimeError for a negative deviation.
    """
    source = generator or streams.default_generator
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if not given or size is not None:
        if size is None or given:
            raise TypeError("normal() takes tensors without a size, or numbers and a size")
        return _leaf(source.normal(_shape((size,)), float(mean), float(std), _name(dtype)), requires_grad)
    if isinstance(std, Tensor) and (std._array < 0).any():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    kind, shape = given[0].dtype, np.broadcast_shapes(*[x._raw.shape for x in given])
    found = add(mul(Tensor(np.asarray(source.randn(shape, kind.name))), std), mean)
    return found.detach() if not any(x.requires_grad for x in given) else renamed(found, "NormalBackward3")


def randperm(n: int, *, generator: Any = None, dtype: dtypes.dtype | None = None) -> Tensor:
    """The numbers below n in random order."""
    found = (generator or streams.default_generator).randperm(n)
    return _leaf(found if dtype is None else found.astype(dtype.np), False)


def rand_like(input: Tensor, *, dtype: dtypes.dtype | None = None, requires_grad: bool = False) -> Tensor:
    """`rand` in the shape and format of a tensor."""
    return rand(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)


def randn_like(input: Tensor, *, dtype: dtypes.dtype | None = None, requires_grad: bool = False) -> Tensor:
    """`randn` in the shape and format of a tensor."""
    return randn(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)


@op(only=FUNCTION, out=CAST)
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities in the tensor, or with one probability, else zeros."""
    source = generator or streams.default_generator
    raw = input._raw
    if p is None:
        drawn = source.bernoulli_each(np.asarray(raw))
    else:
        drawn = source.rand(raw.shape, "float64") < p
    found = Tensor(np.asarray(drawn).astype(raw.dtype))
    return refused(found, (input,), "bernoulli") if recording() and input.requires_grad else found


@op(only=FUNCTION, out=EXACT)
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
    source = generator or streams.default_generator
    if replacement and num_samples > 1:
        edges = np.cumsum(weights, axis=-1)
        rows = (edges / edges[..., -1:]).reshape(-1, weights.shape[-1])
        draws = source.rand((len(rows), num_samples), "float64")
        places = [np.searchsorted(row, draw) for row, draw in zip(rows, draws, strict=True)]
        found = np.reshape(places, (*weights.shape[:-1], num_samples))
    else:  # the first to arrive, where each waits for a time that is exponential in its weight
        kind = input._raw.dtype
        waits = (-np.log1p(-source.rand(weights.shape, "float64"))).astype(kind)
        found = np.argsort(-(input._array / waits), axis=-1, kind="stable")[..., :num_samples]
    return noted("multinomial", (input,), Tensor(np.ascontiguousarray(found, np.int64)))


@op(only=FUNCTION)
def initial_seed() -> int:
    """The seed that the stream of random numbers started from."""
    return streams.default_generator.initial_seed()


@op(only=FUNCTION)
def seed() -> int:
    """Start the stream from a seed of the operating system, which is returned."""
    return streams.default_generator.seed()


@op(only=FUNCTION)
def get_rng_state() -> streams.State:
    """The state of the stream now, for `set_rng_state`."""
    return streams.default_generator.get_state()


@op(only=FUNCTION)
def set_rng_state(new_state: streams.State) -> None:
    """Continue the stream from a state."""
    streams.default_generator.set_state(new_state)


ROWS: dict[str, Any] = {
    function.__name__: op(only=FUNCTION, out="" if function in (rand_like, randn_like) else MADE)(
        placed_on_device(function)
    )
    for function in (rand, randn, randint, normal, randperm, rand_like, randn_like)
}
Generator = streams.Generator
