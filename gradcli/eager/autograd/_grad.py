"""`torch.autograd.grad`: gradients as a tuple, without touching `.grad`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.backward import run, seeds_of, tensors_of
from gradcli.eager._ops.creation import zeros_like
from gradcli.eager._ops.joining import stack, unbind

if TYPE_CHECKING:
    from collections.abc import Sequence


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the outputs by the inputs, as a tuple; `.grad` of no tensor changes.

    `is_grads_batched`: each of `grad_outputs` has one axis more, and so have the gradients: one for each of its
    entries. Raises RuntimeError where an input was not used (None with `allow_unused`) or does not require grad.
    """
    if not only_inputs:
        warn("only_inputs=False is no longer supported: call backward() to fill .grad", FutureWarning)
    roots, targets = tensors_of(outputs), tensors_of(inputs)
    if not targets:
        raise RuntimeError("grad requires non-empty inputs")
    if materialize_grads and allow_unused is False:
        raise ValueError("materialize_grads=True needs allow_unused to be left alone or True")
    if is_grads_batched:
        return _batched(roots, targets, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    seeds = seeds_of(roots, grad_outputs)
    for x in targets:
        if not x.requires_grad:
            raise RuntimeError("one of the inputs does not require grad, so there is no gradient for it")
    keep = create_graph if retain_graph is None else retain_graph
    found = run(roots, seeds, keep, create_graph, targets)
    if materialize_grads:
        found = [zeros_like(x) if value is None else value for x, value in zip(targets, found, strict=True)]
    elif not allow_unused and any(value is None for value in found):
        raise RuntimeError(
            "one of the tensors was not used in the graph; pass allow_unused=True if this is intended; its "
            "gradient is then None"
        )
    return tuple(found)


def _batched(roots: Any, targets: Any, seeds: Any, retain_graph: bool | None, *more: Any) -> tuple[Any, ...]:
    if seeds is None:
        raise RuntimeError("is_grads_batched=True needs grad_outputs with one more dimension")
    given = (seeds,) if isinstance(seeds, Tensor) else tuple(seeds)
    keep = more[0] if retain_graph is None else retain_graph
    rows = list(zip(*[unbind(seed) for seed in given], strict=True))
    create, unused, zeros = more
    found = [
        grad(roots, targets, row, keep or i + 1 < len(rows), create, True, unused, False, zeros)
        for i, row in enumerate(rows)
    ]
    return tuple([None if column[0] is None else stack(column) for column in zip(*found, strict=True)])
