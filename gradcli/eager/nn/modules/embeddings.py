"""The size of a table goes in, a module comes out that looks up its rows by their numbers, one by one or in bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.factory import empty
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


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
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
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
        return functional.embedding(input, self.weight, self.padding_idx)

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
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
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
        return functional.embedding_bag(
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
