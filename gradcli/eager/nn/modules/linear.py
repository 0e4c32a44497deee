"""Linear layers: products with a weight plus a bias; Embedding, the rows of a weight; Identity, Flatten, Unflatten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import known
from gradcli.eager._engine.fastpath import again
from gradcli.eager._engine.record import declared
from gradcli.eager._ops import matmul, views
from gradcli.eager.nn import init
from gradcli.eager.nn._layer import Affine, Layer, fused, layer, need_tensor, records, weighted
from gradcli.eager.nn._module import Module
from gradcli.eager.nn.parameter import Parameter
from gradcli.primitives.axes import reshaped
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.indexing import index

_TURNED = (views._permuted, views.t.node, None, True, *views._TURNED.values())
_PATH = ((views._permuted, tuple(views._TURNED.items())),)

_ADDMM = (matmul.added_product, matmul.addmm.node, None, False, 1, 1)


def _done_again(input: Any, weight: Any, bias: Any) -> Tensor | None:
    """The result by the plan of an earlier call with operands of these shapes; None where there is none."""
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor) and isinstance(bias, Tensor)):
        return None
    flipped = None if weight._special or input._raw.ndim != 2 else again(_TURNED, weight)
    if flipped is None:
        return None
    counter = flipped._count = weight._count or weight._counter
    result = again(_ADDMM, bias, input, flipped)
    flipped._special, flipped._base, flipped._path = True, weight, _PATH
    if counter.value:
        flipped._seen = counter.value
    return result


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, along the last axis.

    The nodes are PyTorch's: `AddmmBackward0` of bias, input and `TBackward0` of the weight.

    >>> linear(torch.ones(2, 3), torch.ones(1, 3), torch.tensor([0.5]))
    tensor([[3.5000],
            [3.5000]])
    """
    done = _done_again(input, weight, bias)
    if done is not None:
        return done
    need_tensor(input, "linear"), need_tensor(weight, "linear")
    flipped = views.t(weight)
    if weight.ndim == 2 and input.ndim:
        for x in (weight, weight if bias is None else bias):
            if x._raw.dtype != input._raw.dtype:
                raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {input.dtype} and {x.dtype}")
        if input.ndim == 2:
            return matmul.mm(input, flipped) if bias is None else matmul.addmm(bias, input, flipped)
        if bias is not None and input.is_contiguous():
            product = matmul.addmm(bias, input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), flipped)
            return product.view((*input.shape[:-1], weight.shape[0]))
    result = matmul.matmul(input, flipped)
    return result if bias is None else result + bias


class Identity(Module):
    """Returns its input; arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Affine):
    """x @ weight.T + bias; weight (out_features, in_features) and bias (out_features,).

    >>> _ = torch.manual_seed(0)
    >>> Linear(1, 1).weight
    Parameter containing:
    tensor([[-0.0075]], requires_grad=True)
    """

    _options = weighted("in_features, out_features, bias=True")
    _shown = "in_features={self.in_features}, out_features={self.out_features}, bias={self._has_bias}"

    def _build(self, in_features: int, out_features: int, bias: bool, dtype: Any) -> None:
        super()._build(in_features=in_features, out_features=out_features)
        self._weights(dtype, weight=(out_features, in_features), bias=(out_features,) if bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The product with the weight, plus the bias."""
        own: dict[str, Any] = self._parameters  # faster than attributes
        if "weight" not in own or "bias" not in own:  # someone put other tensors in their place
            return linear(input, self.weight, self.bias)
        return linear(input, own["weight"], own["bias"])


def _rows(weight: Any, at: Any, *, padding: int | None) -> Any:
    rows = index(weight, (at,))
    if padding is None:
        return rows
    kept = declared("not_equal", at, padding)
    kept = stretch(reshaped(kept, (*at.shape, *(1,) * (len(rows.shape) - len(at.shape)))), rows.shape)
    return declared("where", kept, rows, declared("detach", rows))


@records("EmbeddingBackward0")
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of a table, by their numbers; the row `padding_idx` gets no gradient.

    RuntimeError unless the numbers are whole, IndexError for one that does not exist.
    """
    if input.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"the indices of an embedding must be whole numbers (Long or Int), not {input.dtype}")
    numbers = known(input)
    if numbers is not None and numbers.size and (numbers.min() < 0 or numbers.max() >= weight.shape[0]):
        raise IndexError("index out of range in self")
    padding = _place_of_padding(padding_idx, weight.shape[0])
    return fused(_rows, (weight, input), embedding.node, keep_dtype=(1,), padding=padding)


def _place_of_padding(index: int | None, count: int) -> int | None:
    """The number of the row, counted from 0. AssertionError where there is none."""
    if index is not None and not -count <= index < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return None if index is None else index % count


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
        shape = (options["num_embeddings"], options["embedding_dim"])
        if options["max_norm"] is not None or options["scale_grad_by_freq"] or options["sparse"]:
            raise RuntimeError("Embedding: max_norm, scale_grad_by_freq and sparse are not supported")
        super()._build(**{**options, "padding_idx": _place_of_padding(options["padding_idx"], shape[0])})
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
        table = cls(rows, columns, padding_idx, _weight=embeddings)
        table.weight.requires_grad = not freeze
        return table


def _flatten(input: Tensor, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Some neighbouring axes as one; the first, the batch, stays."""
    return input.flatten(start_dim, end_dim)


def _unflatten(input: Tensor, dim: int, unflattened_size: Sequence[int]) -> Tensor:
    """One axis as several."""
    return input.unflatten(dim, unflattened_size)


Flatten = layer("Flatten", _flatten)
Unflatten = layer("Unflatten", _unflatten)
