"""PyTorch's transforms of functions of tensors: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`.

Outside a recording the derivatives come from the graph that the function builds; inside a recording (`tracing`) they
become further nodes of the recorded graph. Both nest to any depth.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import tracer
from gradcli.eager._core.modes import enable_grad, is_grad_enabled
from gradcli.eager._core.node import AccumulateGrad
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.tracer import Traced
from gradcli.eager._ops.creation import ones_like, zeros_like
from gradcli.eager._ops.joining import stack
from gradcli.eager._ops.views import view
from gradcli.eager.autograd.functional import grad as autograd_grad
from gradcli.eager.autograd.functional import units
from gradcli.eager.func._batching import flatten
from gradcli.graph.builder import building
from gradcli.graph.node import Node, reachable
from gradcli.transforms.forward import push
from gradcli.transforms.reverse import placed, pull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Argnums = int | tuple[int, ...]


@contextmanager
def transforming() -> Iterator[None]:
    """A context for the inside of a transform: gradients are recorded, and backward() raises RuntimeError."""
    tracer.inside += 1
    try:
        with enable_grad():
            yield
    finally:
        tracer.inside -= 1


class Linearized:
    """One run of a function at a point: its result, and products with its Jacobian and the transpose."""

    def __init__(self, run: Callable[[list[Tensor]], tuple[list[Any], Any]], points: Sequence[Tensor]) -> None:
        self.trace = tracer.current
        self.keeps = is_grad_enabled()
        for x in points:
            if not isinstance(x, Tensor):
                raise ValueError(f"derivatives are taken with respect to tensors, not {type(x).__name__}")
            if not x.dtype.is_floating_point:
                raise RuntimeError(f"only tensors of floating point dtype have derivatives, and this is {x.dtype}")
        if self.trace is not None:
            self.points = [self.trace.lifted(x) for x in points]
            self.inner: list[Tensor] = [self.trace.standing_for(x) for x in self.points]
        else:
            with enable_grad():
                self.inner = [
                    view(x, tuple(x.shape)) if x.requires_grad else x.detach().requires_grad_() for x in points
                ]
        self.own = {id(x) for x in self.inner if x.is_leaf}
        self.seeds: list[Tensor] = []
        with transforming():
            outputs, self.extra = run(self.inner)
        for out in outputs:
            if not isinstance(out, Tensor):
                raise RuntimeError(f"the function must return tensors, but got {type(out).__name__}")
        self.outputs: list[Tensor] = outputs

    def results(self) -> list[Tensor]:
        """The result of the function."""
        return [self._out(out) for out in self.outputs]

    def outside(self, value: Any) -> Any:
        """A value of the function as the caller may use it; anything but a tensor is returned as it is."""
        return self._out(value) if isinstance(value, Tensor) else value

    def _out(self, value: Tensor) -> Tensor:
        if self.trace is not None:
            return self._placed([self.trace.node_of(value)], [value])[0]
        if not value.requires_grad:
            return value
        return value if self.keeps and _reaches_others(value, self.own) else value.detach()

    def back(self, cts: Sequence[Tensor | None]) -> list[Tensor]:
        """The gradients of the points from those of the outputs; zeros where no gradient arrives."""
        if self.trace is not None:
            return self._back_traced(cts)
        with transforming():
            pairs = [
                (out, ct) for out, ct in zip(self.outputs, cts, strict=True) if out.requires_grad and ct is not None
            ]
            found: Sequence[Any] = [None] * len(self.inner)
            if pairs:
                roots, seeds = [out for out, _ in pairs], [ct for _, ct in pairs]
                found = autograd_grad(roots, self.inner, seeds, True, True, allow_unused=True)
        return [zeros_like(x) if one is None else self._out(one) for x, one in zip(self.inner, found, strict=True)]

    def along(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """The derivatives of the outputs in a direction: gradients of gradients, which are linear in their seeds."""
        if self.trace is not None:
            return self._along_traced(tangents)
        results = []
        with transforming():
            for out in self.outputs:
                moved = None
                if out.requires_grad:
                    seed = zeros_like(out.detach()).requires_grad_()
                    self.seeds.append(seed)
                    self.own.add(id(seed))
                    found = autograd_grad(out, self.inner, seed, True, True, allow_unused=True)
                    pairs = [(g, t) for g, t in zip(found, tangents, strict=True) if g is not None and g.requires_grad]
                    if pairs:
                        grads, along = [g for g, _ in pairs], [t for _, t in pairs]
                        (moved,) = autograd_grad(grads, seed, along, True, True, allow_unused=True)
                results.append(zeros_like(out) if moved is None else self._out(moved))
        return results

    # --- inside a recording -------------------------------------------------------------------------------------

    def _back_traced(self, cts: Sequence[Tensor | None]) -> list[Tensor]:
        trace = self.trace
        assert trace is not None
        pairs = [
            (trace.node_of(out), trace.node_of(ct))
            for out, ct in zip(self.outputs, cts, strict=True)
            if ct is not None and trace.node_of(out).type.kind == "float"
        ]
        leaves = [trace.node_of(x) for x in self.inner]
        with building(trace.builder, reachable([*[node for pair in pairs for node in pair], *leaves])):
            found = pull(trace.builder, pairs, leaves)
        return self._filled(found, self.inner)

    def _along_traced(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        trace = self.trace
        assert trace is not None
        leaves = [trace.node_of(x) for x in self.inner]
        outputs = [trace.node_of(out) for out in self.outputs]
        directions = [trace.node_of(t) for t in tangents]
        with building(trace.builder, reachable([*outputs, *leaves, *directions])):
            found = push(trace.builder, outputs, dict(zip(leaves, directions, strict=True)))
        return self._filled(found, self.outputs)

    def _filled(self, nodes: Sequence[Node | None], like: Sequence[Tensor]) -> list[Tensor]:
        trace = self.trace
        assert trace is not None
        known = [
            trace.builder.constant(0, tuple(x.shape)) if node is None else node
            for node, x in zip(nodes, like, strict=True)
        ]
        return self._placed(known, like)

    def _placed(self, nodes: Sequence[Node], like: Sequence[Tensor]) -> list[Tensor]:
        """Nodes with the fresh points replaced by the caller's."""
        trace = self.trace
        assert trace is not None
        places = {trace.node_of(inner): trace.node_of(x) for inner, x in zip(self.inner, self.points, strict=True)}
        found = placed(trace.builder, nodes, places)
        return [Traced(np.zeros(tuple(x.shape), x.dtype.np), node) for node, x in zip(found, like, strict=True)]


def _reaches_others(value: Tensor, own: set[int]) -> bool:
    """Whether a gradient of this tensor would go to tensors other than the leaves of a transform."""
    if value.grad_fn is None:
        return id(value) not in own
    seen: set[int] = set()
    stack: list[Any] = [value.grad_fn]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad):
            if id(node.variable) not in own:
                return True
        else:
            stack.extend(one for one, _ in node.next_functions if one is not None)
    return False


class _Call:
    """A call of a function, as a function of the tensors in some of its arguments."""

    def __init__(
        self, func: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], has_aux: bool
    ) -> None:
        self.func, self.args, self.kwargs, self.has_aux = func, list(args), kwargs, has_aux
        self.single = isinstance(argnums, int)
        given = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        self.places = [self._place(i) for i in given]
        if len(set(self.places)) != len(self.places):
            raise RuntimeError(f"argnums elements must be distinct, and {given} are not")
        self.trees = [flatten(self.args[i]) for i in self.places]
        self.points = [x for leaves, _ in self.trees for x in leaves]

    def _place(self, i: int) -> int:
        count = len(self.args)
        if not -count <= i < count:
            raise RuntimeError(f"argnum {i} is out of range: the function got {count} positional arguments")
        return i % count

    def __call__(self, inner: list[Tensor]) -> tuple[list[Any], Any]:
        args, start = list(self.args), 0
        for place, (leaves, rebuild) in zip(self.places, self.trees, strict=True):
            args[place] = rebuild(inner[start : start + len(leaves)])
            start += len(leaves)
        answer = self.func(*args, **self.kwargs)
        aux = None
        if self.has_aux:
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise RuntimeError("with has_aux=True the function returns a tuple (output, aux)")
            answer, aux = answer
        outputs, self.rebuild = flatten(answer)
        return outputs, aux

    def gathered(self, values: Sequence[Any]) -> Any:
        """Values, one for each point, nested like the arguments."""
        found, start = [], 0
        for leaves, rebuild in self.trees:
            found.append(rebuild(values[start : start + len(leaves)]))
            start += len(leaves)
        return found[0] if self.single else tuple(found)


def _aux(run: Linearized) -> Any:
    leaves, rebuild = flatten(run.extra)
    return rebuild([run.outside(one) for one in leaves])


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` with respect to the arguments `argnums`, and its value.

    The gradient has the shape of its argument. Raises RuntimeError unless `func` returns a tensor with one number.

    >>> import gradcli.eager as torch
    >>> grad_and_value(lambda x: x**3)(torch.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs, has_aux)
        run = Linearized(call, call.points)
        if len(run.outputs) != 1 or run.outputs[0].ndim:
            shapes = [list(out.shape) for out in run.outputs]
            raise RuntimeError(f"grad needs a function that returns a tensor of one number, but got shapes {shapes}")
        gradient = call.gathered(run.back([ones_like(run.outputs[0].detach())]))
        value = run.results()[0]
        return (gradient, (value, _aux(run))) if has_aux else (gradient, value)

    return both


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` by `argnums`; nested calls give higher derivatives.

    >>> import gradcli.eager as torch
    >>> grad(grad(torch.sin))(torch.tensor(1.0))
    tensor(-0.8415)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func` at `primals`, and a function from cotangents of the outputs to gradients of the primals.

    >>> import gradcli.eager as torch
    >>> value, back = vjp(torch.sin, torch.tensor([0.0, 1.0]))
    >>> back(torch.ones(2))
    (tensor([1.0000, 0.5403]),)
    """
    call = _Call(func, tuple(range(len(primals))), primals, {}, has_aux)
    run = Linearized(call, call.points)
    outputs = call.rebuild(run.results())

    def back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        cts = flatten(cotangents)[0]
        if len(cts) != len(run.outputs):
            raise RuntimeError(f"{len(cts)} cotangents do not match {len(run.outputs)} outputs")
        for ct, out in zip(cts, run.outputs, strict=True):
            if tuple(ct.shape) != tuple(out.shape):
                raise RuntimeError(
                    f"a cotangent of shape {list(ct.shape)} does not match an output of shape {list(out.shape)}"
                )
        return call.gathered(run.back(cts))

    return (outputs, back, _aux(run)) if has_aux else (outputs, back)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of `func`, and its derivative along `tangents`. Raises RuntimeError if their shapes do not fit.

    >>> import gradcli.eager as torch
    >>> jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp takes the primals as a tuple, and the tangents too")
    if len(primals) != len(tangents) or not primals:
        raise RuntimeError(f"jvp: {len(primals)} primals and {len(tangents)} tangents do not match")
    call = _Call(func, tuple(range(len(primals))), primals, {}, has_aux)
    directions = flatten(tangents)[0]
    for x, t in zip(call.points, directions, strict=True):
        if tuple(x.shape) != tuple(t.shape):
            raise RuntimeError(
                f"jvp: a tangent of shape {list(t.shape)} does not match a primal of shape {list(x.shape)}"
            )
    run = Linearized(call, call.points)
    moved = call.rebuild(run.along(directions))
    outputs = call.rebuild(run.results())
    return (outputs, moved, _aux(run)) if has_aux else (outputs, moved)


# --- whole matrices ---------------------------------------------------------------------------------------------------


def _rows(parts: list[Tensor], shape: tuple[int, ...], like: Tensor, axis: int) -> Tensor:
    if not parts:
        return Tensor(np.zeros(shape, like._raw.dtype))
    result: Tensor = stack(parts, axis).reshape(shape)
    return result


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None, **_: Any
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, by rows; its shape is output, then argument.

    >>> import gradcli.eager as torch
    >>> jacrev(torch.sin)(torch.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """

    @functools.wraps(func)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs, has_aux)
        run = Linearized(call, call.points)
        found = []
        for k, out in enumerate(run.outputs):
            seeds = [[unit if i == k else None for i in range(len(run.outputs))] for unit in units(out)]
            rows = [run.back(seed) for seed in seeds]
            shapes = [(*out.shape, *x.shape) for x in run.inner]
            found.append(
                call.gathered(
                    [_rows([row[i] for row in rows], shape, run.inner[i], 0) for i, shape in enumerate(shapes)]
                )
            )
        result = call.rebuild(found)
        return (result, _aux(run)) if has_aux else result

    return matrix


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error", **_: Any
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, by columns; its shape is output, then argument.

    >>> import gradcli.eager as torch
    >>> jacfwd(lambda x: x.sum() * x)(torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """

    @functools.wraps(func)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs, has_aux)
        run = Linearized(call, call.points)
        still = [Tensor(np.zeros(x._raw.shape, x._raw.dtype)) for x in run.inner]
        columns = [
            [run.along([*still[:i], unit, *still[i + 1 :]]) for unit in units(x)] for i, x in enumerate(run.inner)
        ]
        found = [
            call.gathered(
                [
                    _rows([column[k] for column in columns[i]], (*out.shape, *x.shape), out, -1)
                    for i, x in enumerate(run.inner)
                ]
            )
            for k, out in enumerate(run.outputs)
        ]
        result = call.rebuild(found)
        return (result, _aux(run)) if has_aux else result

    return matrix


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func`, of the shape of the argument twice.

    >>> import gradcli.eager as torch
    >>> hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
