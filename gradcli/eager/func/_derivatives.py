"""PyTorch's transforms of functions of tensors: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`.

Outside a recording the derivatives come from the graph that the function builds; inside a recording (`tracing`) they
become further nodes of the recorded graph. Both nest to any depth.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli.eager._core import tracer
from gradcli.eager._core.modes import is_grad_enabled
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.tensor_creation import ones_like
from gradcli.eager.autograd.functional import Linearized, flatten

Argnums = int | tuple[int, ...]


class _Call(Linearized):
    """A call of a function, as a function of the tensors in some of its arguments."""

    def __init__(
        self, func: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any], has_aux: bool
    ) -> None:
        single, count = isinstance(argnums, int), len(args)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for i in numbers:
            if not -count <= i < count:
                raise RuntimeError(f"argnum {i} is out of range: the function got {count} positional arguments")
        places = [i % count for i in numbers]
        if len(set(places)) != len(places):
            raise RuntimeError(f"argnums elements must be distinct, and {numbers} are not")
        inputs = args[places[0]] if single else tuple([args[i] for i in places])
        for x in flatten(inputs)[0]:
            if not isinstance(x, Tensor):
                raise ValueError(f"derivatives are taken with respect to tensors, not {type(x).__name__}")
            if not x.dtype.is_floating_point:
                raise RuntimeError(f"only tensors of floating point dtype have derivatives, and this is {x.dtype}")
        self.has_aux = has_aux

        def run(inner: Any) -> Any:
            arguments = list(args)
            for place, value in zip(places, (inner,) if single else inner, strict=True):
                arguments[place] = value
            tracer.own.inside += 1  # backward() raises RuntimeError there
            try:
                answer = func(*arguments, **kwargs)
            finally:
                tracer.own.inside -= 1
            if has_aux:
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError("with has_aux=True the function returns a tuple (output, aux)")
                answer, self.extra = answer
            for out in flatten(answer)[0]:
                if not isinstance(out, Tensor):
                    raise RuntimeError(f"the function must return tensors, but got {type(out).__name__}")
            return answer

        super().__init__(run, inputs, is_grad_enabled())

    def aux(self) -> tuple[Any, ...]:
        """What the function returned beside its value, if it did."""
        if not self.has_aux:
            return ()
        leaves, rebuild = flatten(self.extra)
        return (rebuild([self.outside(leaf) for leaf in leaves]),)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` with respect to the arguments `argnums`, and its value.

    The gradient has the shape of its argument. Raises RuntimeError unless `func` returns a tensor with one number.

    >>> grad_and_value(lambda x: x**3)(torch.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs, has_aux)
        outputs = call.outputs
        if len(outputs) != 1 or outputs[0].ndim:
            shapes = [list(out.shape) for out in outputs]
            raise RuntimeError(f"grad needs a function that returns a tensor of one number, but got shapes {shapes}")
        gradient = call.nested(call.back([ones_like(outputs[0].detach())]))
        value = call.outside(outputs[0])
        return gradient, (value, *call.aux()) if has_aux else value

    return both


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` by `argnums`; nested calls give higher derivatives.

    >>> grad(grad(torch.sin))(torch.tensor(1.0))
    tensor(-0.8415)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        derivative, value = both(*args, **kwargs)
        return (derivative, value[1]) if has_aux else derivative

    return gradient


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func` at `primals`, and a function from cotangents of the outputs to gradients of the primals.

    >>> value, back = vjp(torch.sin, torch.tensor([0.0, 1.0]))
    >>> back(torch.ones(2))
    (tensor([1.0000, 0.5403]),)
    """
    call = _Call(func, tuple(range(len(primals))), primals, {}, has_aux)
    outputs = call.outputs

    def back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        cts = flatten(cotangents)[0]
        if len(cts) != len(outputs):
            raise RuntimeError(f"{len(cts)} cotangents do not match {len(outputs)} outputs")
        for ct, out in zip(cts, outputs, strict=True):
            if tuple(ct.shape) != tuple(out.shape):
                raise RuntimeError(f"a cotangent of {list(ct.shape)} does not match an output of {list(out.shape)}")
        return call.nested(call.back(cts))

    return call.value(), back, *call.aux()


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of `func`, and its derivative along `tangents`. Raises RuntimeError if their shapes do not fit.

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
            raise RuntimeError(f"jvp: a tangent of {list(t.shape)} does not match a primal of {list(x.shape)}")
    moved = call.rebuild(call.along(directions))
    return call.value(), moved, *call.aux()


def _matrix(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, table: Callable[[Linearized], Any]
) -> Callable[..., Any]:
    """A function that returns a table of Jacobians, for each output and each point, nested like those."""

    @functools.wraps(func)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, argnums, args, kwargs, has_aux)
        result = table(call)
        return (result, *call.aux()) if has_aux else result

    return matrix


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None, **_: Any
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, by rows; its shape is output, then argument.

    >>> jacrev(torch.sin)(torch.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """
    return _matrix(func, argnums, has_aux, Linearized.jacobian)


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error", **_: Any
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, by columns; its shape is output, then argument.

    >>> jacfwd(lambda x: x.sum() * x)(torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    return _matrix(func, argnums, has_aux, Linearized.jacobian_by_columns)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func`, of the shape of the argument twice.

    >>> hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
