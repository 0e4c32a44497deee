"""A tensor and the parameters of a layer go in, its output comes out: products, normal forms, look-ups, dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import matrices
from gradcli.eager import random as streams
from gradcli.eager.dispatch import record
from gradcli.eager.inplace import change
from gradcli.eager.modes import no_grad
from gradcli.eager.movement import t
from gradcli.eager.nn.functional.fusing import declared, fused, need_tensor
from gradcli.eager.recipes import again
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import known
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import together

if TYPE_CHECKING:
    from collections.abc import Sequence


# --- products ---------------------------------------------------------------------------------------------------


def _affine(bias: Any, x: Any, y: Any) -> Any:
    one, other = together(bias, declared("matmul", x, y), verb="add")
    return one + other


_ADDMM = (_affine, "AddmmBackward0", None, False)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """input + mat1 @ mat2 for two matrices, as one node. RuntimeError for shapes or formats that do not fit."""
    done = again(_ADDMM, input, mat1, mat2)
    if done is not None:
        return done
    _check_product(mat1, mat2)
    if input._raw.dtype != mat1._raw.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {input.dtype} and {mat1.dtype}")
    return fused(_affine, (input, mat1, mat2), "AddmmBackward0")


def _check_product(mat1: Tensor, mat2: Tensor) -> None:
    one, other = mat1._raw, mat2._raw
    if one.ndim == other.ndim == 2 and one.shape[1] == other.shape[0] and one.dtype == other.dtype:
        return
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"two matrices are needed, not {mat1.ndim}D and {mat2.ndim}D tensors")
    if mat1.shape[1] != mat2.shape[0]:
        shapes = f"{mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]}"
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes})")
    if one.dtype != other.dtype:
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {mat1.dtype} and {mat2.dtype}")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, along the last axis.

    The nodes are PyTorch's: `AddmmBackward0` of bias, input and `TBackward0` of the weight.

    >>> import gradcli.eager as torch
    >>> linear(torch.ones(2, 3), torch.ones(1, 3), torch.tensor([0.5]))
    tensor([[3.5000],
            [3.5000]])
    """
    need_tensor(input, "linear")
    need_tensor(weight, "linear")
    flipped = t(weight)
    if bias is not None and input._raw.ndim == 2 and weight._raw.ndim == 2:
        return addmm(bias, input, flipped)
    if weight.ndim != 2:
        found = matrices.matmul(input, flipped)
        return found if bias is None else found + bias
    if input.ndim == 2:
        _check_product(input, flipped)
        return matrices.mm(input, flipped)
    if input.ndim and input.shape[-1] != weight.shape[1]:
        rows = int(np.prod(input.shape[:-1], dtype=np.int64))
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and "
            f"{weight.shape[1]}x{weight.shape[0]})"
        )
    if bias is None or not input.is_contiguous():
        found = matrices.matmul(input, flipped)
        return found if bias is None else found + bias
    rows_of = input.reshape(-1, input.shape[-1]) if 0 not in input.shape else input.reshape(0, input.shape[-1])
    result: Tensor = addmm(bias, rows_of, flipped).view((*input.shape[:-1], weight.shape[0]))
    return result


def _trilinear(x: Any, weight: Any, y: Any) -> Any:
    (rows, _), (outputs, left, right) = x.shape, weight.shape
    reshape = declared
    flat = reshape("reshape", weight, shape=(outputs * left, right))
    inner = declared("matmul", y, declared("transpose", flat))  # rows x (outputs*left)
    cube = reshape("reshape", inner, shape=(rows, outputs, left))
    one, other = together(cube, reshape("reshape", x, shape=(rows, 1, left)), verb="multiply")
    return declared("sum", one * other, axis=-1)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 @ weight[k] @ input2 for each output k, plus the bias."""
    lead = tuple(input1.shape[:-1])
    if tuple(input2.shape[:-1]) != lead or (input1.shape[-1], input2.shape[-1]) != tuple(weight.shape[1:]):
        raise RuntimeError(
            f"bilinear: inputs {list(input1.shape)} and {list(input2.shape)} do not fit the weight {list(weight.shape)}"
        )
    x, y = input1.reshape(-1, input1.shape[-1]), input2.reshape(-1, input2.shape[-1])
    found = fused(_trilinear, (x, weight, y), "TrilinearBackward0").reshape(*lead, weight.shape[0])
    result: Tensor = found if bias is None else found + bias
    return result


# --- look-ups ------------------------------------------------------------------------------------------------------


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


# --- normal forms ---------------------------------------------------------------------------------------------------


def _layer_norm(x: Any, weight: Any, bias: Any, *, axes: tuple[int, ...], eps: float) -> Any:
    away = x - mean_of(x, axes)
    scaled = away / declared("sqrt", mean_of(away * away, axes) + eps)
    return affine_of(scaled, weight, bias)


def mean_of(x: Any, axes: tuple[int, ...]) -> Any:
    return declared("broadcast_to", declared("mean", x, axis=axes, keepdims=True), shape=tuple(x.shape))


def affine_of(x: Any, weight: Any, bias: Any) -> Any:
    for name, operand in (("mul", weight), ("add", bias)):
        if operand is not None:
            one, other = together(x, operand)
            x = one * other if name == "mul" else one + other
    return x


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last axes shifted to mean 0 and scaled to variance 1, then times `weight` plus `bias`."""
    shape = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape or input.ndim < len(shape):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected an input whose shape ends so, but it is "
            f"{list(input.shape)}"
        )
    xs = (input, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    return fused(_layer_norm, xs, "NativeLayerNormBackward0", axes=tuple(range(-len(shape), 0)), eps=eps)


def _batch_norm(x: Any, mean: Any, var: Any, weight: Any, bias: Any, *, trained: bool, eps: float) -> Any:
    axes = tuple(i - len(x.shape) for i in range(len(x.shape)) if i != 1)
    shape = tuple(n if i == 1 else 1 for i, n in enumerate(x.shape))
    if trained:
        away = x - mean_of(x, axes)
        var = mean_of(away * away, axes)
    else:
        one, other = together(x, declared("reshape", mean, shape=shape), verb="subtract")
        away = one - other
        var = declared("broadcast_to", declared("reshape", var, shape=shape), shape=tuple(x.shape))
    scaled = away / declared("sqrt", var + eps)
    return affine_of(scaled, *[declared("reshape", w, shape=shape) if w.shape else w for w in (weight, bias)])


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel (axis 1) shifted and scaled by the mean and variance of the batch, or by the running ones.

    In training the running ones move towards those of the batch. ValueError for a channel with one value.
    """
    if training:
        count = input.numel() // max(input.shape[1], 1)
        if count <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        if running_mean is not None and running_var is not None:
            _follow(input, running_mean, running_var, momentum, count)
    elif running_mean is None or running_var is None:
        raise RuntimeError("without training, running_mean and running_var must be given")
    rest = (1.0 if weight is None else weight, 0.0 if bias is None else bias)
    if training:
        return fused(_batch_norm_of_batch, (input, *rest), "NativeBatchNormBackward0", eps=eps)
    name = "NativeBatchNormBackward0"
    return fused(_batch_norm_of_run, (input, *rest, running_mean, running_var), name, edges=3, eps=eps)


def _batch_norm_of_batch(x: Any, weight: Any, bias: Any, *, eps: float) -> Any:
    return _batch_norm(x, None, None, weight, bias, trained=True, eps=eps)


def _batch_norm_of_run(x: Any, weight: Any, bias: Any, mean: Any, var: Any, *, eps: float) -> Any:
    return _batch_norm(x, mean, var, weight, bias, trained=False, eps=eps)


def _follow(input: Tensor, mean: Tensor, var: Tensor, momentum: float, count: int) -> None:
    axes = tuple([i for i in range(input.ndim) if i != 1])
    array = input._array
    here = array.mean(axis=axes, dtype=np.float64)
    spread = array.var(axis=axes, dtype=np.float64) * (count / (count - 1))
    for running, new in ((mean, here), (var, spread)):
        array_of = running._array
        array_of *= array_of.dtype.type(1 - momentum)
        array_of += (momentum * new).astype(array_of.dtype)
        running._counter.bump(None)


# --- frames ------------------------------------------------------------------------------------------------------


def framed(x: Any, *, before: tuple[int, ...], after: tuple[int, ...]) -> Any:
    slices, unslice = catalogue()["slice"], catalogue()["unslice"]
    first = tuple(max(-n, 0) for n in before)
    sizes = tuple(n - start - max(-end, 0) for n, start, end in zip(x.shape, first, after, strict=True))
    steps = (1,) * len(sizes)
    if sizes != tuple(x.shape):
        x = slices(x, start=first, step=steps, size=sizes)
    shape = tuple(max(low, 0) + n + max(high, 0) for low, n, high in zip(before, sizes, after, strict=True))
    start = tuple(max(low, 0) for low in before)
    return unslice(x, shape=shape, start=start, step=steps) if shape != sizes else x


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A frame of one number around the entries: (left, right) of the last axis, then of the one before it, and so on.

    Negative sizes cut off. RuntimeError for sizes that do not fit, and for the modes that copy entries.
    """
    if mode in ("reflect", "replicate", "circular"):
        raise RuntimeError(f"pad with mode={mode!r} is not supported: only 'constant' is")
    if mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(f"{len(pad)} sizes of padding are too many for {input.ndim} dimensions")
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    if any(n + low + high < 0 for n, (low, high) in zip(input.shape, pairs, strict=True)):
        raise RuntimeError(f"pad: {tuple(pad)} would cut off more than there is of {list(input.shape)}")
    before, after = tuple([low for low, _ in pairs]), tuple([high for _, high in pairs])
    found = record(framed, (input,), {"before": before, "after": after}, "ConstantPadNdBackward0", whole=True)
    if value:
        inside = tuple(
            [slice(max(low, 0), n - max(high, 0)) for n, (low, high) in zip(found.shape, pairs, strict=True)]
        )
        frame = np.ones(tuple(found.shape), np.bool_)
        frame[inside] = False
        with no_grad():
            found.masked_fill_(Tensor(frame), value)
            found._counter.value = 0
    return found


# --- dropout -----------------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros with probability p, the other entries divided by 1 - p; the tensor itself without training.

    The same entries as PyTorch's after the same `manual_seed`. ValueError for p outside [0, 1].

    >>> import gradcli.eager as torch
    >>> _ = torch.manual_seed(0)
    >>> dropout(torch.ones(4))
    tensor([0., 0., 2., 0.])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0 or not need_tensor(input, "dropout").numel():
        return input
    kind = input.dtype.np
    if p == 1:
        noise = np.zeros(tuple(input.shape), kind)
    else:
        kept = streams.default_generator.bernoulli(tuple(input.shape), 1 - p)
        noise = kept.astype(kind) / kind.type(1 - p)
    factor = Tensor(noise)
    return change(input, lambda x: x * factor, (factor,)) if inplace else input * factor


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, ...) set to zero with probability p, the others divided by 1 - p."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    factor = dropout(Tensor(np.ones(shape, input.dtype.np)), p)
    return change(input, lambda x: x * factor, (factor,)) if inplace else input * factor
