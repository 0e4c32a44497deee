"""Functions of layers as single nodes, and layers without parameters, each declared by its function.

`fused` and `by_entry` record a formula of declared operations as one node with PyTorch's name; its derivatives of every
order are those of the operations. `layer("Softplus", softplus)` is a module whose constructor takes the options of
`softplus`, keeps them as attributes, passes them on in `forward`, and prints them.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import checked, constructor
from gradcli.eager._engine.record import declared, record
from gradcli.eager._ops import inplace as in_place
from gradcli.eager.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


_OLD_SWITCHES = ("size_average", "reduce")  # of losses: they become `reduction`


class Layer(Module):
    """A function of tensors with its options as attributes; options that are tensors are buffers."""

    _function: ClassVar[Callable[..., Any]]
    _options: ClassVar[tuple[str, ...]] = ()
    _tensors: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[str | None] = None

    def _start(self, **options: Any) -> None:
        Module.__init__(self)
        old = [options.pop(name, None) for name in _OLD_SWITCHES]
        if old != [None, None]:
            options["reduction"] = reduction_of("mean", *old)
        self._keep(**options)

    def _keep(self, **options: Any) -> None:
        """Make the options attributes; a subclass may check or change them first."""
        for name, value in options.items():
            if name in self._tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The function of the inputs."""
        return type(self)._function(*inputs, **named, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        if self._shown is not None:
            return self._shown.format(self=self)
        values = {name: getattr(self, name) for name in self._options if name != "training"}
        return ", ".join([f"{name}={value!r}" for name, value in values.items() if name != "inplace" or value])


def layer(
    name: str,
    function: Callable[..., Any],
    *,
    inputs: int = 1,
    leave_out: Sequence[str] = (),
    last: str = "",
    keyword_only: bool = False,
    base: type[Layer] = Layer,
    shown: str | None = None,
) -> type[Any]:
    """The module of a function whose first arguments are the inputs of `forward`, the others its options.

    `training` is the module's own. `last` names an option that the constructor takes last. `shown` is what the printed
    module says of itself, `{self.name}` for an option; without it all options are printed.

    >>> def scale(input, factor=2.0):
    ...     return input * factor
    >>> layer("Scale", scale)(3.0), layer("Scale", scale)(3.0)(1.0)
    (Scale(factor=3.0), 3.0)
    """
    given = [one for one in list(inspect.signature(function).parameters.values())[inputs:] if one.name not in leave_out]
    kind = inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [one.replace(kind=kind) for one in given if one.name != "training"]
    options.sort(key=lambda one: one.name == last)
    body = {
        "__module__": function.__module__,
        "__qualname__": name,
        "__doc__": f"`functional.{function.__name__}` as a module: {inspect.getdoc(function) or ''}".partition("\n")[0],
        "__init__": constructor(options, base._start),
        "_function": staticmethod(function),
        "_options": tuple([one.name for one in given if one.name not in _OLD_SWITCHES]),
        "_tensors": tuple([one.name for one in given if one.annotation == "Tensor | None"]),
        "_shown": base._shown if shown is None else shown,
    }
    return type(name, (base,), body)
