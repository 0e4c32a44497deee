"""`torch.autograd.grad`, and `torch.autograd.functional`: Jacobians, Hessians and their products with vectors.

With `create_graph` the results can be differentiated again. With `strict` an output that does not depend on an input is
a RuntimeError; without it the result is zeros. `vectorize` is accepted, and changes nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.modes import enable_grad, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.backward import run as sweep
from gradcli.eager._engine.backward import seeds_of, tensors_of
from gradcli.eager._ops.creation import ones_like, zeros_like
from gradcli.eager._ops.joining import stack, unbind
from gradcli.eager._ops.views import reshape, view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
    found = sweep(roots, seeds, keep, create_graph, targets)
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


# --- Jacobians and Hessians at a point ----------------------------------------------------------------------------


def _tensors(value: Any, what: str, function: str) -> tuple[Tensor, ...]:
    found = (value,) if isinstance(value, Tensor) else value
    if not isinstance(found, (tuple, list)) or not all(isinstance(one, Tensor) for one in found):
        raise TypeError(f"the {what} of {function} must be a tensor or a tuple of tensors, not {type(value).__name__}")
    return tuple(found)


class _Run:
    """One run of the function, on tensors that gradients are taken by."""

    def __init__(self, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, name: str) -> None:
        given = _tensors(inputs, "inputs", name)
        self.single, self.create, self.strict, self.name = isinstance(inputs, Tensor), create_graph, strict, name
        self.xs = [
            view(x, tuple(x.shape)) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given
        ]
        self.value = func(*self.xs)
        self.outputs = _tensors(self.value, "outputs", name)
        if strict:
            for i, out in enumerate(self.outputs):
                if not out.requires_grad:
                    raise RuntimeError(
                        f"output {i} of the function does not require gradients: it does not depend on the inputs in a "
                        "differentiable way, which strict=True refuses"
                    )

    def vectors(self, v: Any, like: Sequence[Tensor], reason: str) -> list[Tensor]:
        """The vectors of a product; RuntimeError where they do not fit, or are left out without being clear."""
        if v is None:
            if len(like) != 1 or like[0]._raw.size != 1:
                raise RuntimeError(f"the vector v can only be None if {reason} a single tensor with a single element")
            return [ones_like(like[0])]
        given = _tensors(v, "vectors", self.name)
        if len(given) != len(like):
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}")
        for one, x in zip(given, like, strict=True):
            if one.shape != x.shape:
                raise RuntimeError(f"v has invalid size: should be {x.shape} but got {one.shape}")
        return list(given)

    def pulled(self, outputs: Sequence[Tensor], seeds: Sequence[Tensor], create: bool) -> list[Any]:
        """The gradients of the inputs, None where no path leads to one."""
        pairs = [(out, seed) for out, seed in zip(outputs, seeds, strict=True) if out.requires_grad]
        if not pairs:
            return [None] * len(self.xs)
        outputs, seeds = [out for out, _ in pairs], [seed for _, seed in pairs]
        return list(grad(outputs, self.xs, seeds, True, create, allow_unused=True))

    def filled(self, found: Sequence[Any], like: Sequence[Tensor], create: bool) -> tuple[Tensor, ...]:
        """Zeros in place of missing gradients; with `strict`, RuntimeError for them."""
        if self.strict and any(one is None or (create and not one.requires_grad) for one in found):
            raise RuntimeError(
                f"while computing {self.name}, a derivative was found to be independent of an input, which strict=True "
                "refuses"
            )
        return tuple([zeros_like(x) if one is None else one for one, x in zip(found, like, strict=True)])

    def shown(self, value: Any) -> Any:
        """What the function returned, detached unless `create_graph` is on."""
        if self.create:
            return value
        return value.detach() if isinstance(value, Tensor) else tuple([one.detach() for one in value])

    def scalar(self) -> Tensor:
        """The only output, a single number; RuntimeError for anything else."""
        if len(self.outputs) != 1 or self.outputs[0]._raw.size != 1 or not isinstance(self.value, Tensor):
            raise RuntimeError(f"the function given to {self.name} should return a single tensor with a single element")
        return self.outputs[0]


def units(x: Tensor) -> list[Tensor]:
    """The tensors of the shape of x that are 1 in one entry and 0 in the others."""
    rows = np.eye(x._raw.size, dtype=x._raw.dtype)
    return [Tensor(row) for row in rows.reshape(x._raw.size, *x._raw.shape)]


def _check(strategy: str, vectorize: bool, strict: bool, create_graph: bool) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(f"expected strategy to be 'forward-mode' or 'reverse-mode', not {strategy!r}")
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError("create_graph=True is not supported with strategy='forward-mode'")
        if not vectorize:
            raise NotImplementedError("strategy='forward-mode' needs vectorize=True")
    if vectorize and strict:
        raise RuntimeError("strict=True is not supported with vectorize=True")


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivative of every output entry by every input entry: shape of the output, then of the input.

    With several inputs or outputs, tuples of them. Raises RuntimeError with `strict` where an output does not depend on
    an input, TypeError for inputs or outputs that are not tensors.

    >>> import gradcli.eager as torch
    >>> jacobian(lambda x: x**2, torch.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    _check(strategy, vectorize, strict, create_graph)
    with enable_grad():
        run = _Run(func, inputs, create_graph, strict, "jacobian")
        table = []
        for out in run.outputs:
            rows: list[list[Tensor]] = [[] for _ in run.xs]
            for seed in units(out):
                found = run.pulled([out], [seed], create_graph)
                for row, one in zip(rows, run.filled(found, run.xs, create_graph), strict=True):
                    row.append(one)
            shapes = [(*out.shape, *x.shape) for x in run.xs]
            table.append(
                tuple(
                    [
                        reshape(stack(row), shape) if row else Tensor(np.zeros(shape, out._raw.dtype))
                        for row, shape in zip(rows, shapes, strict=True)
                    ]
                )
            )
    found_rows = [row[0] if run.single else row for row in table]
    return found_rows[0] if isinstance(run.value, Tensor) else tuple(found_rows)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a scalar function. Raises RuntimeError for a function of several numbers.

    >>> import gradcli.eager as torch
    >>> hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 3.0]))
    tensor([[ 6.,  0.],
            [ 0., 18.]])
    """
    single = isinstance(inputs, Tensor)

    def gradient(*xs: Tensor) -> Any:
        run = _Run(func, xs, True, strict, "hessian")
        found = run.filled(run.pulled([run.scalar()], [ones_like(run.scalar())], True), run.xs, strict)
        return found[0] if single else found

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of a vector with the Jacobian.

    Raises RuntimeError where `v` does not fit the outputs, or is left out although there are several numbers.
    """
    with enable_grad():
        run = _Run(func, inputs, create_graph, strict, "vjp")
        seeds = run.vectors(v, run.outputs, "the function returns")
        found = run.filled(run.pulled(run.outputs, seeds, create_graph), run.xs, create_graph)
    return run.shown(run.value), found[0] if run.single else found


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of the Jacobian with a vector: the derivative of a vjp by its own vector.

    Raises RuntimeError where `v` does not fit the inputs, or is left out although there are several numbers.

    >>> import gradcli.eager as torch
    >>> jvp(lambda x: x**2, torch.tensor([1.0, 3.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    with enable_grad():
        run = _Run(func, inputs, create_graph, strict, "jvp")
        vectors = run.vectors(v, run.xs, "the input is")
        seeds = [zeros_like(out).requires_grad_() for out in run.outputs]
        pulled = run.pulled(run.outputs, seeds, True)
        moving = [
            (one, vector) for one, vector in zip(pulled, vectors, strict=True) if one is not None and one.requires_grad
        ]
        found: Sequence[Any] = [None] * len(seeds)
        if moving:
            found = grad([g for g, _ in moving], seeds, [t for _, t in moving], None, create_graph, allow_unused=True)
        result = run.filled(found, run.outputs, create_graph)
    return run.shown(run.value), result[0] if isinstance(run.value, Tensor) else result


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of the Hessian with a vector.

    Raises RuntimeError where `v` does not fit the inputs, or the function returns several numbers.
    """
    return _second(func, inputs, v, create_graph, strict, "hvp")


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of a vector with the Hessian, which is symmetric; errors as of `hvp`."""
    return _second(func, inputs, v, create_graph, strict, "vhp")


def _second(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Any, Any]:
    with enable_grad():
        run = _Run(func, inputs, create_graph, strict, name)
        value = run.scalar()
        vectors = run.vectors(v, run.xs, "the input is")
        first = run.filled(run.pulled([value], [ones_like(value)], True), run.xs, strict)
        found = run.filled(run.pulled(first, vectors, create_graph), run.xs, create_graph)
    return run.shown(run.value), found[0] if run.single else found


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__getattr__, __dir__ = room("autograd.functional", __all__)
