"""`torch.autograd.grad`, and `torch.autograd.functional`: Jacobians, Hessians and their products with vectors.

With `create_graph` the results can be differentiated again. With `strict` an output that does not depend on an input is
a RuntimeError; without it the result is zeros. `vectorize` is accepted, and changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.eager._core import tracer
from gradcli.eager._core.grad_fn import AccumulateGrad
from gradcli.eager._core.modes import enable_grad, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.backward import run as sweep
from gradcli.eager._engine.backward import seeds_of, tensors_of
from gradcli.eager._ops.tensor_creation import ones_like, zeros_like
from gradcli.eager._ops.tensor_joining import stack, unbind
from gradcli.eager._ops.views import view
from gradcli.graph.building import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import pull


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
        if grad_outputs is None:
            raise RuntimeError("is_grads_batched=True needs grad_outputs with one more dimension")
        rows = list(zip(*[unbind(seed) for seed in tensors_of(grad_outputs)], strict=True))
        keep = create_graph if retain_graph is None else retain_graph
        options = (create_graph, True, allow_unused, False, materialize_grads)
        parts = [grad(roots, targets, row, keep or i + 1 < len(rows), *options) for i, row in enumerate(rows)]
        return tuple([None if column[0] is None else stack(column) for column in zip(*parts, strict=True)])
    seeds = seeds_of(roots, grad_outputs)
    for x in targets:
        if not x.requires_grad:
            raise RuntimeError("one of the inputs does not require grad, so there is no gradient for it")
    keep = create_graph if retain_graph is None else retain_graph
    gradients = sweep(roots, seeds, keep, create_graph, targets)
    if materialize_grads:
        gradients = [zeros_like(x) if value is None else value for x, value in zip(targets, gradients, strict=True)]
    elif not allow_unused and any(value is None for value in gradients):
        raise RuntimeError("one of the tensors was not used in the graph; with allow_unused=True its gradient is None")
    return tuple(gradients)


def flatten(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves from left to right, and a function that rebuilds the tree with other leaves.

    >>> leaves, rebuild = flatten({"a": 1, "b": (2, [3])})
    >>> leaves, rebuild([10, 20, 30])
    ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    if not isinstance(tree, (dict, tuple, list)):
        return [tree], lambda leaves: leaves[0]
    keys = list(tree) if isinstance(tree, dict) else None
    parts = [flatten(part) for part in (tree.values() if isinstance(tree, dict) else tree)]

    def rebuild(leaves: Sequence[Any]) -> Any:
        rebuilt, start = [], 0
        for inner, again in parts:
            rebuilt.append(again(leaves[start : start + len(inner)]))
            start += len(inner)
        if keys is not None:
            return type(tree)(zip(keys, rebuilt, strict=True))
        return type(tree)(*rebuilt) if hasattr(tree, "_fields") else type(tree)(rebuilt)

    return [leaf for inner, _ in parts for leaf in inner], rebuild


class Linearized:
    """One call of a function at a point: its results, and products with its Jacobian and the transpose.

    `run` takes a tree of tensors like `inputs` and returns another one. Outside a recording the derivatives come from
    the graph that it builds; inside one they become further nodes of the recorded graph. What is returned keeps its
    graph with `keep`, where that leads to tensors other than the points, or with `closed=False` anywhere. With `strict`
    a result that does not depend on a point is a RuntimeError. `same`: a point that requires grad is used as it is.
    """

    def __init__(
        self,
        run: Callable[[Any], Any],
        inputs: Any,
        keep: bool,
        *,
        strict: bool = False,
        closed: bool = True,
        same: bool = False,
    ) -> None:
        self.trace, self.keep, self.strict = tracer.own.current, keep, strict
        self.points, self.nested = flatten(inputs)
        with enable_grad():
            if self.trace is None:
                self.inner: list[Tensor] = [
                    x.detach().requires_grad_() if not (keep and x.requires_grad) else x if same else view(x, x.shape)
                    for x in self.points
                ]
            else:
                self.points = [self.trace.lifted(x) for x in self.points]
                self.inner = [self.trace.standing_for(x) for x in self.points]
            self.own = {id(x): x for x in self.inner if x.is_leaf and closed}
            self.outputs, self.rebuild = flatten(run(self.nested(self.inner)))

    def value(self) -> Any:
        """What the function returned."""
        return self.rebuild([self.outside(out) for out in self.outputs])

    def outside(self, value: Any) -> Any:
        """A value of the function as the caller may use it; anything but a tensor is returned as it is."""
        if not isinstance(value, Tensor):
            return value
        if self.trace is not None:
            return self._placed([self.trace.node_of(value)], [value])[0]
        if not value.requires_grad or (self.keep and _reaches_others(value, self.own)):
            return value
        return value.detach()

    def back(self, cts: Sequence[Tensor | None], create: bool = True) -> list[Tensor]:
        """The gradients of the points from those of the outputs; zeros where no gradient arrives."""
        trace = self.trace
        if trace is None:
            return self._filled(self._pulled(cts, create), self.inner, create)
        pairs = [
            (trace.node_of(out), trace.node_of(ct))
            for out, ct in zip(self.outputs, cts, strict=True)
            if ct is not None and trace.node_of(out).type.kind == "float"
        ]
        leaves = [trace.node_of(x) for x in self.inner]
        with building(trace.builder, reachable([*[node for pair in pairs for node in pair], *leaves])):
            return self._placed(pull(trace.builder, pairs, leaves), self.inner)

    def along(self, tangents: Sequence[Tensor], create: bool = True) -> list[Tensor]:
        """The derivatives of the outputs in a direction: gradients of gradients, which are linear in their seeds."""
        trace = self.trace
        if trace is not None:
            leaves = [trace.node_of(x) for x in self.inner]
            outputs, directions = [trace.node_of(x) for x in self.outputs], [trace.node_of(x) for x in tangents]
            with building(trace.builder, reachable([*outputs, *leaves, *directions])):
                moved = push(trace.builder, outputs, dict(zip(leaves, directions, strict=True)))
            return self._placed(moved, self.outputs)
        seeds = [zeros_like(out.detach()).requires_grad_() for out in self.outputs]
        self.own |= {id(seed): seed for seed in seeds}
        pairs = [
            (gradient, tangent)
            for gradient, tangent in zip(self._pulled(seeds, True), tangents, strict=True)
            if gradient is not None and gradient.requires_grad
        ]
        derivatives: Any = [None] * len(seeds)
        if pairs:
            roots, weights = zip(*pairs, strict=True)
            derivatives = grad(roots, seeds, weights, None, create, allow_unused=True)
        return self._filled(derivatives, self.outputs, create)

    def jacobian(self, create: bool = True) -> Any:
        """For each output and each point the derivative of every entry by every entry, row by row."""
        table = []
        for k, out in enumerate(self.outputs):
            seeds = [[unit if i == k else None for i in range(len(self.outputs))] for unit in units(out)]
            rows = [self.back(seed, create) for seed in seeds]
            columns = [[row[i] for row in rows] for i in range(len(self.inner))]
            pairs = zip(columns, self.inner, strict=True)
            table.append(self.nested([_joined(column, (*out.shape, *x.shape), x, 0) for column, x in pairs]))
        return self.rebuild(table)

    def jacobian_by_columns(self) -> Any:
        """The same in forward mode, column by column."""
        xs = self.inner
        still = [Tensor(np.zeros(x._raw.shape, x._raw.dtype)) for x in xs]
        columns = [[self.along([*still[:i], unit, *still[i + 1 :]]) for unit in units(x)] for i, x in enumerate(xs)]
        table = [
            [_joined([row[k] for row in columns[i]], (*out.shape, *x.shape), out, -1) for i, x in enumerate(xs)]
            for k, out in enumerate(self.outputs)
        ]
        return self.rebuild([self.nested(row) for row in table])

    def _pulled(self, cts: Sequence[Tensor | None], create: bool) -> Sequence[Any]:
        pairs = [(out, ct) for out, ct in zip(self.outputs, cts, strict=True) if ct is not None and out.requires_grad]
        if not pairs:
            return [None] * len(self.inner)
        with enable_grad():
            roots, seeds = zip(*pairs, strict=True)
            return grad(roots, self.inner, seeds, True, create, allow_unused=True)

    def _filled(self, gradients: Sequence[Any], like: Sequence[Tensor], create: bool) -> list[Tensor]:
        if self.strict and any(g is None or (create and not g.requires_grad) for g in gradients):
            raise RuntimeError("a derivative is independent of an input, which strict=True refuses")
        return [zeros_like(x) if g is None else self.outside(g) for g, x in zip(gradients, like, strict=True)]

    def _placed(self, nodes: Sequence[Node | None], like: Sequence[Tensor]) -> list[Tensor]:
        """Nodes with the fresh points replaced by the caller's, zeros for missing ones."""
        trace = self.trace
        assert trace is not None
        zero = trace.builder.constant
        known = [zero(0, tuple(x.shape)) if node is None else node for node, x in zip(nodes, like, strict=True)]
        places = {trace.node_of(inner): trace.node_of(x) for inner, x in zip(self.inner, self.points, strict=True)}
        moved = trace.builder.substituted(known, places)
        return [Traced(np.zeros(tuple(x.shape), x.dtype.np), node) for node, x in zip(moved, like, strict=True)]


def _reaches_others(value: Tensor, own: dict[int, Any]) -> bool:
    """Whether a gradient of this tensor would go to other leaves than these."""
    if value.grad_fn is None:
        return id(value) not in own
    seen: set[Any] = {None}
    pending: list[Any] = [value.grad_fn]
    while pending:
        for node, _ in pending.pop().next_functions:
            if isinstance(node, AccumulateGrad) and id(node.variable) not in own:
                return True
            if node not in seen:
                seen.add(node)
                pending.append(node)
    return False


def units(x: Tensor) -> list[Tensor]:
    """The tensors of the shape of x that are 1 in one entry and 0 in the others."""
    rows = np.eye(x._raw.size, dtype=x._raw.dtype)
    return [Tensor(row) for row in rows.reshape(x._raw.size, *x._raw.shape)]


def _joined(parts: list[Tensor], shape: tuple[int, ...], like: Tensor, axis: int) -> Tensor:
    """A Jacobian from its rows or columns."""
    return stack(parts, axis).reshape(shape) if parts else Tensor(np.zeros(shape, like._raw.dtype))


def _tensors(value: Any, what: str) -> Any:
    """A tensor, or a tuple of tensors. TypeError for anything else."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (tuple, list)) or not all(isinstance(x, Tensor) for x in value):
        raise TypeError(f"the {what} must be a tensor or a tuple of tensors, not {type(value).__name__}")
    return tuple(value)


def _linearized(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, same: bool = False
) -> Linearized:
    """A call of a function of tensors, which returns a tensor or a tuple of them."""

    def run(xs: Any) -> Any:
        return _tensors(func(xs) if isinstance(xs, Tensor) else func(*xs), "outputs")

    call = Linearized(run, _tensors(inputs, "inputs"), create_graph, strict=strict, closed=False, same=same)
    for i, out in enumerate(call.outputs if strict else ()):
        if not out.requires_grad:
            raise RuntimeError(f"output {i} does not require gradients by the inputs, which strict=True refuses")
    return call


def _vectors(v: Any, like: Sequence[Tensor], reason: str) -> list[Tensor]:
    """The vectors of a product; RuntimeError where they do not fit, or None stands for more than one number."""
    if v is None:
        if len(like) != 1 or like[0]._raw.size != 1:
            raise RuntimeError(f"the vector v can only be None if {reason} a single tensor with a single element")
        return [ones_like(like[0])]
    vectors, _ = flatten(_tensors(v, "vectors"))
    if len(vectors) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}")
    for vector, x in zip(vectors, like, strict=True):
        if vector.shape != x.shape:
            raise RuntimeError(f"v has invalid size: should be {x.shape} but got {vector.shape}")
    return vectors


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

    >>> jacobian(lambda x: x**2, torch.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(f"expected strategy to be 'forward-mode' or 'reverse-mode', not {strategy!r}")
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError("create_graph=True is not supported with strategy='forward-mode'")
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError("strategy='forward-mode' needs vectorize=True")
    if vectorize and strict:
        raise RuntimeError("strict=True is not supported with vectorize=True")
    return _linearized(func, inputs, create_graph, strict).jacobian(create_graph)


class _Gradient:
    """The gradient of a scalar function as a function; `value` is what the function returned last."""

    def __init__(self, func: Callable[..., Any], strict: bool) -> None:
        self.func, self.strict = func, strict

    def __call__(self, *xs: Tensor) -> Any:
        run = _linearized(self.func, xs, True, self.strict, same=True)
        self.value = run.rebuild(run.outputs)
        if not isinstance(self.value, Tensor) or self.value._raw.size != 1:
            raise RuntimeError("the function should return a single tensor with a single element")
        return tuple(run.back([ones_like(self.value)]))


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a scalar function. Raises RuntimeError for a function of several numbers.

    >>> hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 3.0]))
    tensor([[ 6.,  0.],
            [ 0., 18.]])
    """
    rows = jacobian(_Gradient(func, strict), inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows[0] if isinstance(inputs, Tensor) else rows


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of a vector with the Jacobian.

    Raises RuntimeError where `v` does not fit the outputs, or is left out although there are several numbers.
    """
    run = _linearized(func, inputs, create_graph, strict)
    seeds = _vectors(v, run.outputs, "the function returns")
    return run.value(), run.nested(run.back(seeds, create_graph))


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of the Jacobian with a vector: the derivative of a vjp by its own vector.

    Raises RuntimeError where `v` does not fit the inputs, or is left out although there are several numbers.

    >>> jvp(lambda x: x**2, torch.tensor([1.0, 3.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    run = _linearized(func, inputs, create_graph, strict)
    moved = run.along(_vectors(v, run.inner, "the input is"), create_graph)
    return run.value(), run.rebuild(moved)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of the Hessian with a vector.

    Raises RuntimeError where `v` does not fit the inputs, or the function returns several numbers.
    """
    gradient = _Gradient(func, strict)
    run = _linearized(gradient, inputs, create_graph, strict)
    products = run.back(_vectors(v, run.inner, "the input is"), create_graph)
    return run.outside(gradient.value), run.nested(products)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value, and the product of a vector with the Hessian, which is symmetric; errors as of `hvp`."""
    return hvp(func, inputs, v, create_graph, strict)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__getattr__, __dir__ = room("autograd.functional", __all__)
