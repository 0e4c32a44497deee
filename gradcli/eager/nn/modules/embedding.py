"""Embeddings: rows of a table by their numbers."""

from __future__ import annotations

from typing import Any

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import known
from gradcli.eager._engine.record import declared
from gradcli.eager.nn import init
from gradcli.eager.nn._layer import Layer, checks, fused, weighted
from gradcli.eager.nn.parameter import Parameter


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
    return fused(_rows, (weight, input), "EmbeddingBackward0", edges=1, keep_dtype=(1,), padding=padding)


class Embedding(Layer, function=embedding):
    """A table of rows, looked up by whole numbers; the row `padding_idx` starts at zero and stays as it is.

    RuntimeError for max_norm, scale_grad_by_freq and sparse, which are not supported.
    """

    _options = weighted(
        "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
        "sparse=False, _weight=None"
    )
    _shown = "{self.num_embeddings}, {self.embedding_dim}"
    _usual = {"padding_idx": None}

    def _build(self, _weight: Tensor | None, dtype: Any, **options: Any) -> None:
        shape, padding = (options["num_embeddings"], options["embedding_dim"]), options["padding_idx"]
        if options["max_norm"] is not None or options["scale_grad_by_freq"] or options["sparse"]:
            raise RuntimeError("Embedding: max_norm, scale_grad_by_freq and sparse are not supported")
        if padding is not None and not -shape[0] <= padding < shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
        super()._build(**{**options, "padding_idx": None if padding is None else padding % shape[0]})
        if _weight is None:
            self._weights(dtype, weight=shape)
            self.reset_parameters()
        elif tuple(_weight.shape) == shape:
            self.weight = Parameter(_weight)
        else:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")

    def reset_parameters(self) -> None:
        """Start again from new random numbers."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight._array[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A table of given rows, which are not trained unless `freeze` is False."""
        rows, columns = embeddings.shape
        found = cls(rows, columns, padding_idx, _weight=embeddings)
        found.weight.requires_grad = not freeze
        return found
