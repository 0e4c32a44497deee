"""A function of tensors and a point go in; whether its gradients agree with finite differences comes out."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where gradients are wrong."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Compare the gradients of the rules with central differences, entry by entry.

    Raises ValueError where no input requires grad; GradcheckError where they disagree, or False without
    `raise_exception`.
    """
    xs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    try:
        _check(func, xs, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable[..., Any], xs: tuple[Any, ...], eps: float, atol: float, rtol: float, tol: float) -> None:
    moving = [(i, x) for i, x in enumerate(xs) if isinstance(x, Tensor) and x.requires_grad]
    if not moving:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    for i, x in moving:
        if x._array.dtype != np.float64:
            warnings.warn(
                f"input {i} is {x.dtype}: differences need double precision, so the check will likely fail",
                UserWarning,
                stacklevel=4,
            )
    for k, output in enumerate(_outputs(func(*xs))):
        if not output.dtype.is_floating_point:
            continue
        analytic = _analytic(func, xs, moving, k)
        again = _analytic(func, xs, moving, k)
        for (i, x), exact, second in zip(moving, analytic, again, strict=True):
            if not np.allclose(exact, second, rtol=0, atol=tol, equal_nan=True):
                raise GradcheckError(
                    f"backward is not reentrant: it gives different gradients for input {i} (nondeterminism)"
                )
            numeric = _numeric(func, xs, i, x, k, eps)
            if not np.allclose(exact, numeric, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {k} with respect to input {i},\n"
                    f"numerical:{numeric}\nanalytical:{exact}"
                )


def _outputs(value: Any) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _analytic(func: Callable[..., Any], xs: tuple[Any, ...], moving: list[Any], k: int) -> list[Any]:
    from gradcli.eager.autograd import grad

    output = _outputs(func(*xs))[k]
    columns: list[list[Any]] = [[] for _ in moving]
    for seed in np.eye(output._array.size, dtype=output._array.dtype).reshape(-1, *output._array.shape):
        found: tuple[Any, ...] = (None,) * len(moving)
        if output.requires_grad:
            found = grad(output, [x for _, x in moving], Tensor(seed), True, False, True)
        for column, (_, x), one in zip(columns, moving, found, strict=True):
            column.append(np.zeros(x._array.size) if one is None else one._array.reshape(-1))
    return [
        np.array(column).reshape(output._array.size, x._array.size).T
        for column, (_, x) in zip(columns, moving, strict=True)
    ]


def _numeric(func: Callable[..., Any], xs: tuple[Any, ...], i: int, x: Tensor, k: int, eps: float) -> Any:
    rows = []
    for entry in range(x._array.size):
        ends = []
        for step in (eps, -eps):
            moved = x._array.copy()
            moved.reshape(-1)[entry] += step
            point = [Tensor(moved, True) if j == i else y for j, y in enumerate(xs)]
            ends.append(_outputs(func(*point))[k]._array.astype(np.float64).reshape(-1))
        rows.append((ends[0] - ends[1]) / (2 * eps))
    return np.array(rows).reshape(x._array.size, -1)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """`gradcheck` of the gradient of the function: its second derivatives."""
    from gradcli.eager.autograd import grad

    xs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = _outputs(func(*xs))
    if grad_outputs is None:
        generator = np.random.default_rng(0)
        seeds = tuple(
            [Tensor(generator.standard_normal(out._array.shape).astype(out._array.dtype), True) for out in outputs]
        )
    else:
        seeds = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(xs)

    def gradient(*everything: Any) -> tuple[Any, ...]:
        point, given = everything[:count], everything[count:]
        wanted = [x for x in point if isinstance(x, Tensor) and x.requires_grad]
        found = grad(_outputs(func(*point)), wanted, given, None, True, True)
        return tuple([one for one in found if one is not None])

    tolerances = {"eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol}
    return gradcheck(gradient, (*xs, *seeds), raise_exception=raise_exception, **tolerances)
