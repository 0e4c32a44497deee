"""Layers and losses as single nodes: a formula of declared operations, recorded under PyTorch's name.

The derivatives of every order are those of the operations: none is written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import checked
from gradcli.eager._engine.record import declared, record
from gradcli.eager._ops import inplace as in_place

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def fused(
    function: Callable[..., Any],
    xs: tuple[Any, ...],
    node: str,
    *,
    edges: int | None = None,
    keep_dtype: tuple[int, ...] = (),
    **params: Any,
) -> Tensor:
    """One node for `function(*xs, **params)`.

    `edges` is how many operands the node shows, `keep_dtype` says which of them keep a format of their own: positions.
    """
    return dense(record(function, xs, params, node, pointwise=False, edges=edges, keep_dtype=keep_dtype))


def dense(x: Tensor) -> Tensor:
    """The tensor with its entries in memory in C order, as PyTorch lays out what it computes anew."""
    raw = x._raw
    if raw.ndim > 1 and isinstance(raw, np.ndarray) and not raw.flags.c_contiguous:
        x._raw = np.ascontiguousarray(raw)
    return x


def by_entry(
    function: Callable[..., Any], xs: tuple[Any, ...], node: str, *, edges: int | None = None, **params: Any
) -> Tensor:
    """`fused` for a function that works entry by entry: one plan serves all shapes."""
    return record(function, xs, params, node, pointwise=True, edges=edges)


def entrywise(
    formula: Callable[..., Any] | str, x: Tensor, node: str, inplace: bool = False, *options: Any, **params: Any
) -> Tensor:
    """`by_entry` of one tensor, perhaps in its place; a formula that is one declared operation by its name."""
    need_tensor(x, formula if isinstance(formula, str) else formula.__name__.strip("_"))
    function = _with_options if isinstance(formula, str) else formula
    if isinstance(formula, str):
        params = {"name": formula, "options": options, **params}

    def run(x: Tensor) -> Tensor:
        return by_entry(function, (x,), node, **params)

    return in_place.change(x, run) if inplace else run(x)


def _with_options(x: Any, *, name: str, options: tuple[Any, ...], **params: Any) -> Any:
    return declared(name, x, *options, **params)


def checks(function: F) -> F:
    """The function with a check of its arguments in front, by its annotations."""
    found: F = checked(function)
    return found


def needs_floats(function: F) -> F:
    """`checks`, and NotImplementedError for a tensor of whole numbers."""
    found: F = checked(function, floating=True)
    return found


def shifted(x: Tensor, by: float, node: str = "AddBackward1") -> Tensor:
    """The tensor plus a number that is no operand, as PyTorch's own composites add one."""
    return by_entry(_raised, (x,), node, by=by)


def _raised(x: Any, *, by: float) -> Any:
    return x + by


def need_tensor(x: Any, function: str) -> Tensor:
    """The tensor; TypeError for anything else."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{function}(): the input must be a tensor, not {type(x).__name__}")
    return x


def refuse_grad(function: str, **weights: Tensor | None) -> None:
    """RuntimeError where a weight of a loss requires grad: nothing flows to it."""
    for name, x in weights.items():
        if x is not None and x.requires_grad:
            raise RuntimeError(f"{function} is not differentiable by its argument {name!r}, which requires grad")


def reduction_of(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """What is done with the losses of the entries; the two old switches are understood, with a UserWarning."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warn(f"size_average and reduce are deprecated: write reduction={reduction!r} instead", UserWarning)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: it is 'mean', 'sum' or 'none'")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or the losses as they are, each with its own node."""
    if reduction == "none":
        return loss
    found: Tensor = loss.mean() if reduction == "mean" else loss.sum()
    return found


def reduced_in_graph(loss: Any, reduction: str) -> Any:
    """`reduced` inside a formula."""
    return loss if reduction == "none" else declared(reduction, loss)
