"""A function of tensors goes in, a function that computes its derivatives comes out: PyTorch's transforms."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.creation import ones_like
from gradcli.eager._ops.joining import stack
from gradcli.eager.func.levels import Linearized
from gradcli.eager.func.trees import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Argnums = int | tuple[int, ...]


class _Call:
    """A function at some arguments, seen as a function of the tensors in a few of them."""

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
    """A function that gives the gradient of `func` by some arguments, and its value.

    RuntimeError unless `func` returns one number as a tensor.

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
    """A function that gives the gradient of `func` by some arguments; nested, derivatives of any order.

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
    """The value, and a function from cotangents of the outputs to gradients of the primals.

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
            raise RuntimeError(f"{len(cts)} cotangents do not fit {len(run.outputs)} outputs")
        for ct, out in zip(cts, run.outputs, strict=True):
            if tuple(ct.shape) != tuple(out.shape):
                raise RuntimeError(f"a cotangent of shape {list(ct.shape)} does not fit an output {list(out.shape)}")
        return call.gathered(run.back(cts))

    return (outputs, back, _aux(run)) if has_aux else (outputs, back)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value, and the derivative in a direction. RuntimeError where tangents do not fit the primals.

    >>> import gradcli.eager as torch
    >>> jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp takes the primals as a tuple, and the tangents too")
    if len(primals) != len(tangents) or not primals:
        raise RuntimeError(f"jvp: {len(primals)} primals and {len(tangents)} tangents do not fit")
    call = _Call(func, tuple(range(len(primals))), primals, {}, has_aux)
    directions = flatten(tangents)[0]
    for x, t in zip(call.points, directions, strict=True):
        if tuple(x.shape) != tuple(t.shape):
            raise RuntimeError(f"jvp: a tangent of shape {list(t.shape)} does not fit a primal {list(x.shape)}")
    run = Linearized(call, call.points)
    moved = call.rebuild(run.along(directions))
    outputs = call.rebuild(run.results())
    return (outputs, moved, _aux(run)) if has_aux else (outputs, moved)


# --- whole matrices ---------------------------------------------------------------------------------------------------


def _units(x: Tensor) -> list[Tensor]:
    count = x._raw.size
    rows = np.eye(count, dtype=x._raw.dtype).reshape(count, *x._raw.shape)
    return [Tensor(row) for row in rows]


def _rows(parts: list[Tensor], shape: tuple[int, ...], like: Tensor, axis: int) -> Tensor:
    if not parts:
        return Tensor(np.zeros(shape, like._raw.dtype))
    result: Tensor = stack(parts, axis).reshape(shape)
    return result


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None, **_: Any
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, row by row: axes of the output, then of the input.

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
            seeds = [[unit if i == k else None for i in range(len(run.outputs))] for unit in _units(out)]
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
    """A function that gives the Jacobian of `func`, column by column: axes of the output, then of the input.

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
            [run.along([*still[:i], unit, *still[i + 1 :]]) for unit in _units(x)] for i, x in enumerate(run.inner)
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
    """A function that gives the second derivatives of `func`.

    >>> import gradcli.eager as torch
    >>> hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
