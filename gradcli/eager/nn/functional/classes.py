"""Scores of classes and targets go in, the loss comes out: class numbers or probabilities, weights, smoothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager import reductions
from gradcli.eager.kernels import in_range
from gradcli.eager.nn.functional.fusing import by_entry, declared, fused, need_tensor, reduction_of, refuse_grad
from gradcli.eager.recipes import again
from gradcli.eager.tensor import Tensor
from gradcli.eager.tracing import known

_CLASS_KINDS = ("int64", "uint8")


# --- class numbers -----------------------------------------------------------------------------------------------


def _nll(x: Any, target: Any, *weights: Any, ignore: int | None, reduction: str) -> Any:
    """Scores with the classes in axis 1, numbers of classes without that axis, perhaps a weight for each class."""
    shape = tuple(target.shape)
    kept, at = None, target
    if ignore is not None:
        kept = declared("not_equal", target, ignore)
        at = target * declared("cast", kept, kind="int")
    axis = 1 - len(x.shape)
    lead = (*shape[:1], 1, *shape[1:])
    picked = _along(x, declared("reshape", at, shape=lead), axis, shape)
    loss = -picked
    weight = None
    if weights:
        size = 1
        for n in shape:
            size *= n
        weight = _along(weights[0], declared("reshape", at, shape=(size,)), -1, shape)
        loss = loss * weight
    if kept is not None:
        loss = declared("where", kept, loss, 0)
    if reduction == "none":
        return loss
    total = declared("sum", loss)
    if reduction == "sum":
        return total
    if weight is None:
        if kept is None:
            return declared("mean", loss)
        weight = declared("cast", kept, kind="float")
    elif kept is not None:
        weight = declared("where", kept, weight, 0)
    return total / declared("sum", weight)


def _along(x: Any, at: Any, axis: int, shape: tuple[int, ...]) -> Any:
    from gradcli.primitives.positions import take_along

    found = take_along(x, at, axis=axis)
    return found if tuple(found.shape) == shape else declared("reshape", found, shape=shape)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of the negative log-probabilities of the classes, which stand in axis 1 (of a vector: in axis 0).

    `weight` has one entry for each class, and a mean is divided by the weights that count; targets that are
    `ignore_index` do not. IndexError for a class that does not exist, ValueError for sizes that do not fit.

    >>> import gradcli.eager as torch
    >>> nll_loss(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    ignore = ignore_index if _ignores(input, target, weight, ignore_index) else None
    given: tuple[Tensor, ...] = ()
    if weight is not None:
        refuse_grad("nll_loss", weight=weight)
        given = (weight,)
    more: dict[str, Any] = {"ignore": ignore, "reduction": reduction, "edges": 1, "apart": (1,)}
    if input.ndim == 1:
        return fused(_nll_of_vector, (input, target, *given), "NllLossBackward0", **more)
    if input.ndim == 2:
        return fused(_nll, (input, target, *given), "NllLossBackward0", **more)
    if input.ndim == 4:
        return fused(_nll, (input, target, *given), "NllLoss2DBackward0", **more)
    planes = (input.shape[0], 1, -1) if 0 not in input.shape else (input.shape[0], 1, 0)
    scores = input.reshape(*input.shape[:2], *planes[1:])
    found = fused(_nll, (scores, target.reshape(planes), *given), "NllLoss2DBackward0", **more)
    return found.view(tuple(target.shape)) if reduction == "none" else found


def _nll_of_vector(x: Any, target: Any, *weights: Any, ignore: int | None, reduction: str) -> Any:
    row = declared("reshape", x, shape=(1, *x.shape))
    found = _nll(row, declared("reshape", target, shape=(1,)), *weights, ignore=ignore, reduction=reduction)
    return declared("reshape", found, shape=()) if reduction == "none" else found


def _ignores(input: Tensor, target: Tensor, weight: Tensor | None, ignore: int) -> bool:
    """Whether a target is to be ignored; the errors are those of `nll_loss`."""
    scores, labels = input._raw.shape, target._raw.shape
    rest = (*scores[:1], *scores[2:]) if len(scores) > 1 else ()
    if labels != rest or weight is not None or target.dtype.name not in _CLASS_KINDS:
        _check_classes(input, target, weight)
    numbers = known(target)
    if numbers is None:
        return True
    if not numbers.size:
        return False
    classes = scores[1 if len(scores) > 1 else 0]
    if in_range(numbers, classes):
        return 0 <= ignore < classes and bool((numbers == ignore).any())
    wrong = numbers[((numbers < 0) | (numbers >= classes)) & (numbers != ignore)]
    if wrong.size:
        raise IndexError(f"Target {wrong.reshape(-1)[0]} is out of bounds: there are {classes} classes")
    return True


def _check_classes(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    if not input.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if target.dtype.name not in _CLASS_KINDS:
        raise RuntimeError(f"class numbers must have dtype torch.int64 or torch.uint8, but these have {target.dtype}")
    if input.ndim > 1 and (not target.ndim or input.shape[0] != target.shape[0]):
        raise ValueError(
            f"the batch size of the input ({input.shape[0]}) does not match that of the target "
            f"({target.shape[0] if target.ndim else 'none'})"
        )
    rest = input.shape[2:] if input.ndim > 1 else ()
    if tuple(target.shape) != ((input.shape[0], *rest) if input.ndim > 1 else ()):
        error = RuntimeError if input.ndim != 1 else ValueError
        raise error(f"a target of size {list(target.shape)} does not fit an input of size {list(input.shape)}")
    classes = input.shape[1 if input.ndim > 1 else 0]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"weight must have one entry for each of the {classes} classes, not {list(weight.shape)}")


# --- scores --------------------------------------------------------------------------------------------------------


def _scaled(x: Any, *, factor: float) -> Any:
    return x * factor


def _divided(x: Any, *, by: int) -> Any:
    return x / by


def _times(x: Tensor, factor: float) -> Tensor:
    return by_entry(_scaled, (x,), "MulBackward1", factor=factor)


_LOG_SOFTMAX = (reductions.called, "LogSoftmaxBackward0", None, False, "log_softmax", 1)


def _entropy_again(input: Any, target: Any, reduction: str) -> Tensor | None:
    """The cross entropy of a matrix of scores, where it was taken of such before and every class exists."""
    if not isinstance(input, Tensor) or not isinstance(target, Tensor):
        return None
    scores, labels = input._raw, target._raw
    if scores.ndim != 2 or labels.__class__ is not np.ndarray or labels.ndim != 1 or scores.__class__ is not np.ndarray:
        return None
    if labels.dtype != np.int64 or not len(labels) or not in_range(labels, scores.shape[1]):
        return None
    logarithms = again(_LOG_SOFTMAX, input)
    if logarithms is None:
        return None
    done = again((_nll, "NllLossBackward0", 1, False, None, reduction), logarithms, target)
    return nll_loss(logarithms, target, reduction=reduction) if done is None else done


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of class numbers, or of class probabilities, under softmax of the scores.

    Built from the nodes that PyTorch builds it from: `NllLossBackward0` of `LogSoftmaxBackward0`. Errors as in
    `nll_loss`.

    >>> import gradcli.eager as torch
    >>> cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """
    if weight is None and size_average is None and reduce is None and not label_smoothing and ignore_index < 0:
        done = _entropy_again(input, target, reduction)
        if done is not None:
            return done
    need_tensor(input, "cross_entropy"), need_tensor(target, "cross_entropy")
    reduction = reduction_of(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0, but it is {label_smoothing}")
    axis = 0 if input.ndim == 1 else 1
    scores = reductions.log_softmax(input, axis)
    if target.shape == input.shape:
        return _of_probabilities(scores, target, axis, weight, reduction, label_smoothing)
    if not label_smoothing:
        return nll_loss(scores, target, weight, ignore_index=ignore_index, reduction=reduction)
    return _smoothed(scores, target, axis, weight, ignore_index, reduction, label_smoothing)


def _per_class(weight: Tensor, scores: Tensor, axis: int) -> Tensor:
    shape = [1] * scores.ndim
    shape[axis] = -1
    result: Tensor = weight.view(tuple(shape))
    return result


def _of_probabilities(
    scores: Tensor, target: Tensor, axis: int, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    if not target.dtype.is_floating_point:
        raise RuntimeError(f"class probabilities must be floats, but the target has dtype {target.dtype}")
    if smoothing:
        target = target * (1 - smoothing) + smoothing / scores.shape[axis]
    loss = scores * target
    if weight is not None:
        loss = loss * _per_class(weight, scores, axis)
    total: Tensor = -loss.sum(axis) if reduction == "none" else -loss.sum()
    if reduction != "mean":
        return total
    return by_entry(_divided, (total,), "DivBackward1", by=max(scores.numel() // scores.shape[axis], 1))


def _smoothed(
    scores: Tensor,
    target: Any,
    axis: int,
    weight: Any,
    ignore: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    hard = nll_loss(scores, target, weight, ignore_index=ignore, reduction=reduction)
    spread = scores if weight is None else scores * _per_class(weight, scores, axis)
    ignored: Any = target == ignore
    soft = (-spread.sum(axis)).masked_fill(ignored, 0.0)
    if reduction != "none":
        soft = soft.sum()
    if reduction == "mean":
        kept = ignored.logical_not()
        if weight is None:
            count = kept.to(scores.dtype).sum()
        else:
            count = (weight.detach()[(target * kept).reshape(-1)] * kept.reshape(-1)).sum()
        soft = soft / count
    return _times(hard, 1 - smoothing) + _times(soft, smoothing / scores.shape[axis])


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A row of zeros with a one at the class, for each whole number. RuntimeError for negative or large numbers."""
    from gradcli.eager.factory import from_numpy

    numbers = known(tensor)
    if tensor.dtype.name != "int64":
        raise RuntimeError(f"one_hot is only applicable to index tensors of dtype torch.int64, not {tensor.dtype}")
    if numbers is None:
        if num_classes < 0:
            raise RuntimeError("one_hot of values that are not known yet needs num_classes")
        places = from_numpy(np.arange(num_classes))
        result: Tensor = (tensor.unsqueeze(-1) == places).long()
        return result
    if numbers.size and numbers.min() < 0:
        raise RuntimeError("class values must be non-negative")
    if num_classes < 0:
        num_classes = int(numbers.max()) + 1 if numbers.size else 0
    if num_classes <= 0:
        raise RuntimeError("one_hot of no entries needs num_classes")
    if numbers.size and numbers.max() >= num_classes:
        raise RuntimeError(f"class values must be smaller than num_classes, {num_classes}")
    return from_numpy((numbers[..., None] == np.arange(num_classes)).astype(np.int64))
