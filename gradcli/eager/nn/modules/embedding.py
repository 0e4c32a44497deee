"""Embeddings: rows of a table by their numbers, one by one, or added up in bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import known
from gradcli.eager._ops.creation import empty
from gradcli.eager.nn import init
from gradcli.eager.nn.composite import checks, declared, fused
from gradcli.eager.nn.module import Module
from gradcli.eager.nn.parameter import Parameter

Array = Any
_MODES = ("sum", "mean", "max")
_NODE = "EmbeddingBagBackward0"


def _rows(weight: Any, at: Any, *, padding: int | None) -> Any:
    from gradcli.primitives.indexing import index

    found = index(weight, (at,))
    if padding is None:
        return found
    shape = tuple(at.shape)
    kept = declared("not_equal", at, padding)
    mask = declared("reshape", kept, shape=(*shape, *(1,) * (len(found.shape) - len(shape))))
    mask = declared("broadcast", mask, shape=tuple(found.shape)) if tuple(mask.shape) != tuple(found.shape) else mask
    return declared("where", mask, found, declared("detach", found))


@checks
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of a table, by their numbers; the row `padding_idx` gets no gradient.

    RuntimeError unless the numbers are whole, IndexError for one that does not exist.
    """
    if input.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"the indices of an embedding must be whole numbers (Long or Int), not {input.dtype}")
    numbers = known(input)
    if numbers is not None and numbers.size and (numbers.min() < 0 or numbers.max() >= weight.shape[0]):
        raise IndexError("index out of range in self")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("padding_idx must be within num_embeddings")
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    return fused(_rows, (weight, input), "EmbeddingBackward0", edges=1, apart=(1,), padding=padding)


# --- bags --------------------------------------------------------------------------------------------------------


def _in_bags(weight: Any, scales: Any, at: Any, bag: Any, counts: Any, *kept: Any, bags: int) -> Any:
    """Rows times their scales added up in bags, divided by counts: of mode `mean` the sizes of the bags. What is not
    kept does not count.
    """
    from gradcli.primitives.indexing import index
    from gradcli.primitives.positions import put_along

    rows = index(weight, (at,))
    shape = tuple(rows.shape)
    scale = declared("broadcast", declared("reshape", scales, shape=(shape[0], 1)), shape=shape)
    scaled = rows * scale
    for mask in kept:
        scaled = declared("where", mask, scaled, 0)
    total = put_along(scaled, bag, axis=-2, size=bags)
    return total / declared("broadcast", counts, shape=tuple(total.shape))


def _chosen(weight: Any, scales: Any, at: Any, kept: Any) -> Any:
    """Of each column the entries of some rows, 0 where nothing is kept."""
    from gradcli.primitives.positions import take_along

    found = take_along(weight, at, axis=-2)
    return declared("where", kept, found, 0)


@checks
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The rows of a table, by their numbers, added up in bags: a bag is a row of `input`, or what begins at an offset.

    An empty bag gives zeros; the row `padding_idx` does not count. ValueError for shapes that do not fit, RuntimeError
    for numbers that do not exist, and for max_norm, scale_grad_by_freq and sparse, which are not supported.

    >>> import gradcli.eager as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> embedding_bag(torch.tensor([0, 1, 2]), table, torch.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [5., 6.]])
    """
    if weight.dtype.name == "int64" and input.dtype.is_floating_point:
        warn("embedding_bag(input, weight): the table is the second argument", UserWarning)
        weight, input = input, weight
    _check_shapes(input, weight, offsets, per_sample_weights)
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("max mode does not support scaling the gradient by the frequency, nor sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None, which is only supported for mode='sum' (got {mode!r})"
        )
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise RuntimeError("embedding_bag: max_norm, scale_grad_by_freq and sparse are not supported")
    at, bag, bags = _bags(input, weight, offsets, include_last_offset)
    if not at.size:
        return Tensor(np.zeros((bags, weight.shape[1]), weight.dtype.np))
    scales = Tensor(np.ones(at.size, weight.dtype.np)) if per_sample_weights is None else per_sample_weights
    if scales.ndim == 2:
        scales = scales.reshape(-1)
    if scales.dtype is not weight.dtype:
        raise RuntimeError(f"expected scalar type {weight.dtype} of per_sample_weights, but found {scales.dtype}")
    kept = np.ones(at.size, np.bool_)
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise RuntimeError("padding_idx must be within the number of embeddings")
        kept = at != padding_idx % weight.shape[0]
    if mode == "max":
        rows, full = _largest_rows(weight._array, at[kept], bag[kept], bags)
        operands: tuple[Tensor, ...] = (weight, scales, Tensor(rows), Tensor(full))
        return fused(_chosen, operands, _NODE, edges=2, apart=(2, 3))
    shape = (at.size, weight.shape[1])
    sizes = np.maximum(np.bincount(bag[kept], minlength=bags), 1) if mode == "mean" else np.ones(bags)
    operands = (
        weight,
        scales,
        Tensor(at),
        Tensor(np.broadcast_to(bag[:, None], shape).copy()),
        Tensor(sizes.astype(weight.dtype.np).reshape(-1, 1)),
        *([] if kept.all() else [Tensor(np.broadcast_to(kept[:, None], shape).copy())]),
    )
    return fused(_in_bags, operands, _NODE, edges=2, apart=(2, 3, 5), bags=bags)


def _check_shapes(input: Tensor, weight: Tensor, offsets: Tensor | None, scales: Tensor | None) -> None:
    if scales is not None and input.shape != scales.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({scales.shape}) is not None, then it must have the same shape as "
            f"the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None: each of its rows is a bag")
    elif input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")


def _bags(input: Tensor, weight: Tensor, offsets: Tensor | None, last: bool) -> tuple[Array, Array, int]:
    """The numbers of rows, for each the number of its bag, and how many bags there are."""
    for x in (input, offsets):
        if x is not None and x.dtype.name not in ("int64", "int32"):
            raise RuntimeError(f"the indices and offsets of embedding_bag must be Long or Int, not {x.dtype}")
    at = np.ascontiguousarray(input._array).reshape(-1).astype(np.int64)
    if at.size and (at.min() < 0 or at.max() >= weight.shape[0]):
        wrong = at[(at < 0) | (at >= weight.shape[0])][0]
        raise RuntimeError(
            f"a row number of embedding_bag is {wrong}, which is not in the valid range [0, {weight.shape[0]})"
        )
    if offsets is None:
        bags, size = input.shape
        return at, np.repeat(np.arange(bags), size), bags
    starts = offsets._array.astype(np.int64)
    if last and not starts.size:
        raise RuntimeError("include_last_offset: number of offsets should be at least 1")
    if starts.size and starts[0] != 0:
        raise RuntimeError(f"offsets[0] has to be 0, i.e., the first sequence starts at 0, but got {starts[0]}")
    if starts.size and starts[-1] > at.size:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length({at.size}) but got {starts[-1]}")
    bags = starts.size - 1 if last else starts.size
    ends = np.append(starts[1:], starts[-1:] if last else at.size)[:bags]
    sizes = ends - starts[:bags]
    if (sizes < 0).any():
        raise RuntimeError("the offsets of embedding_bag must not fall")
    return at[: int(sizes.sum())], np.repeat(np.arange(bags), sizes), bags


def _largest_rows(weight: Array, at: Array, bag: Array, bags: int) -> tuple[Array, Array]:
    """For each bag and column the row with the largest entry, the first among equals, and whether there is any."""
    rows = np.zeros((bags, weight.shape[1]), np.int64)
    starts = np.searchsorted(bag, np.arange(bags + 1))
    for i in range(bags):
        mine = at[starts[i] : starts[i + 1]]
        if mine.size:
            rows[i] = mine[np.argmax(weight[mine], axis=0)]
    full = np.broadcast_to((np.diff(starts) > 0)[:, None], rows.shape)
    return rows, full.copy()


# --- layers ------------------------------------------------------------------------------------------------------


def _row(at: int | None, rows: int, name: str) -> int | None:
    """The number of a row, counted from the first one. AssertionError for one that does not exist."""
    if at is None:
        return None
    if not -rows <= at < rows:
        raise AssertionError(f"{name} must be within num_embeddings")
    return at % rows


class _Table(Module):
    """A table of rows, of which one may be for padding."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _start(self, rows: Tensor | None, dtype: Any) -> None:
        """Take the rows, or random ones. AssertionError for a table of another size."""
        if rows is None:
            self.weight = Parameter(empty(self.num_embeddings, self.embedding_dim, dtype=dtype))
            self.reset_parameters()
            return
        if tuple(rows.shape) != (self.num_embeddings, self.embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(rows)

    def reset_parameters(self) -> None:
        """Start again from new random numbers."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight._array[self.padding_idx] = 0


class Embedding(_Table):
    """A table of rows, looked up by whole numbers; the row `padding_idx` starts at zero and stays as it is.

    RuntimeError for max_norm, scale_grad_by_freq and sparse, which are not supported.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq or sparse:
            raise RuntimeError("Embedding: max_norm, scale_grad_by_freq and sparse are not supported")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse
        self._start(_weight, dtype)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A table of given rows, which are not trained unless `freeze` is False."""
        rows, columns = embeddings.shape
        found = cls(rows, columns, padding_idx, _weight=embeddings)
        found.weight.requires_grad = not freeze
        return found

    def forward(self, input: Tensor) -> Tensor:
        """The rows."""
        return embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class EmbeddingBag(_Table):
    """A table of rows, looked up by whole numbers and added up in bags, or their mean or largest entries (`mode`).

    The row `padding_idx` starts at zero and does not count. RuntimeError for max_norm, scale_grad_by_freq and sparse,
    which are not supported.

    >>> import gradcli.eager as torch
    >>> bags = EmbeddingBag.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    >>> bags(torch.tensor([0, 1, 2]), torch.tensor([0, 2]))
    tensor([[2., 3.],
            [5., 6.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq or sparse:
            raise RuntimeError("EmbeddingBag: max_norm, scale_grad_by_freq and sparse are not supported")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.padding_idx = _row(padding_idx, num_embeddings, "padding_idx")
        self._start(_weight, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> EmbeddingBag:
        """A table of given rows, which are not trained unless `freeze` is False."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        found = cls(rows, columns, _weight=embeddings, **options)
        found.weight.requires_grad = not freeze
        return found

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """A row for each bag."""
        return embedding_bag(
            input,
            self.weight,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        norm = "" if self.norm_type == 2 else f", norm_type={self.norm_type!r}"
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{norm}, mode={self.mode!r}{padding}"
