"""A function of tensors and a point go in, its Jacobian, Hessian and products with vectors come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.modes import enable_grad
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _grad(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    from gradcli.eager.autograd import grad

    return grad(*args, **kwargs)


def _points(inputs: Any, create_graph: bool) -> list[Tensor]:
    from gradcli.eager.movement import view

    xs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if create_graph:
        return [view(x, tuple(x.shape)) if x.requires_grad else x.detach().requires_grad_() for x in xs]
    return [x.detach().requires_grad_() for x in xs]


def _outputs(value: Any) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
    """The derivative of every output entry by every input entry: shape of the output, then of the input.

    With several inputs or outputs, tuples of them. `strict`: RuntimeError where an output does not depend on an input.
    """
    from gradcli.eager.joining import stack
    from gradcli.eager.movement import reshape

    with enable_grad():
        xs = _points(inputs, create_graph)
        value = func(*xs)
        table = []
        for out in _outputs(value):
            rows: list[list[Any]] = [[] for _ in xs]
            for seed in np.eye(out._array.size, dtype=out._array.dtype).reshape(-1, *out._array.shape):
                found: tuple[Any, ...] = (None,) * len(xs)
                if out.requires_grad:
                    found = _grad(out, xs, Tensor(seed), True, create_graph, True)
                for row, x, one in zip(rows, xs, found, strict=True):
                    if one is None and strict:
                        raise RuntimeError("an output does not depend on one of the inputs, which strict=True refuses")
                    row.append(Tensor(np.zeros_like(x._array)) if one is None else one)
            shapes = [(*out.shape, *x.shape) for x in xs]
            table.append(tuple([reshape(stack(row), shape) for row, shape in zip(rows, shapes, strict=True)]))
    found_rows = [row[0] if isinstance(inputs, Tensor) else row for row in table]
    return found_rows[0] if isinstance(value, Tensor) else tuple(found_rows)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
    """The second derivatives of a scalar function."""
    single = isinstance(inputs, Tensor)

    def gradient(*xs: Tensor) -> Any:
        value = func(*xs)
        _require_scalar(value)
        found = _grad(value, xs, None, None, True, True)
        kept = tuple(
            [Tensor(np.zeros_like(x._array)) if one is None else one for x, one in zip(xs, found, strict=True)]
        )
        return kept[0] if single else kept

    return jacobian(gradient, inputs, create_graph, strict)


def _require_scalar(value: Any) -> None:
    if not isinstance(value, Tensor) or value._array.size != 1:
        raise RuntimeError("the function should return a single scalar tensor")


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """The value, and the product of a vector with the Jacobian."""
    with enable_grad():
        xs = _points(inputs, create_graph)
        value = func(*xs)
        found = _grad(value, xs, v, None, create_graph, None, True)
    return value if create_graph else _detached(value), found[0] if isinstance(inputs, Tensor) else found


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """The value, and the product of the Hessian with a vector."""
    with enable_grad():
        xs = _points(inputs, create_graph)
        value = func(*xs)
        _require_scalar(value)
        first = _grad(value, xs, None, None, True, None, True)
        vectors = (v,) if isinstance(v, Tensor) else tuple(v)
        moving = [(one, seed) for one, seed in zip(first, vectors, strict=True) if one.requires_grad]
        if moving:
            found = _grad([one for one, _ in moving], xs, [seed for _, seed in moving], None, create_graph, None, True)
        else:
            found = tuple([Tensor(np.zeros_like(x._array)) for x in xs])
    return value if create_graph else _detached(value), found[0] if isinstance(inputs, Tensor) else found


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """The value, and the product of a vector with the Hessian, which is symmetric."""
    return hvp(func, inputs, v, create_graph)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else tuple([one.detach() for one in value])
