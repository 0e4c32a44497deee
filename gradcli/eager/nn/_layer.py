"""Functions of layers as single nodes, windows of images, and layers, declared by their options and functions.

`fused` records a formula of declared operations as one node with PyTorch's name; its derivatives of every order
are those of the operations. `layer("Softplus", softplus)` is a module whose constructor takes the options of
`softplus`, keeps them as attributes, passes them on in `forward`, and prints them; a subclass of `Layer` may have
parameters too.
"""

from __future__ import annotations

import inspect
import itertools
import math
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import ConstructorOptions, checked, constructor, options
from gradcli.eager._engine.record import declared, record
from gradcli.eager._ops import inplace as in_place
from gradcli.eager._ops.table import LAYER, op
from gradcli.eager._ops.tensor_creation import empty
from gradcli.eager.nn import init
from gradcli.eager.nn._module import Module
from gradcli.eager.nn.parameter import Parameter
from gradcli.primitives import catalogue
from gradcli.primitives.axes import reshaped
from gradcli.primitives.broadcasting import together
from gradcli.primitives.joining import joined
from gradcli.primitives.movement import slice_, unslice

Sizes = tuple[int, ...]


def fused(
    function: Any, xs: tuple[Any, ...], node: str, *, edges: int | None = None, keep_dtype: Sizes = (), **params: Any
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


def one_node(node: str, floating: bool = True, *, pointwise: bool = True) -> Callable[[Any], Any]:
    """Make a function of a layer from a formula of declared operations: it takes a tensor, and perhaps changes it.

    Its arguments are those of the formula, which is called with nodes of a graph. `node`: what PyTorch calls its node,
    and where that differs, the one of the change. `floating`: for floats only; `pointwise`: it works entry by entry.
    """
    nodes = node.split()

    def decorate(formula: Any) -> Any:
        names = list(inspect.signature(formula).parameters)[1:]

        def function(input: Tensor, *args: Any, **options: Any) -> Tensor:
            options |= zip(names, args, strict=False)
            inplace = options.pop("inplace", False)

            def run(x: Tensor) -> Tensor:
                result = record(formula, (x,), options, nodes[-1 if inplace else 0], pointwise=pointwise)
                return result if pointwise else dense(result)

            return in_place.change(input, run) if inplace else run(input)

        return checked(op(only=LAYER, node=node)(formula), floating=floating, call=function)

    return decorate


def records(node: str = "", floating: bool = False) -> Callable[[Any], Any]:
    """The row of a function of a layer that records these nodes by itself, with a check of its arguments.

    `floating`: NotImplementedError for whole numbers.
    """
    return lambda function: checked(op(only=LAYER, node=node)(function), floating=floating)


def combined(operation: str, x: Any, y: Any) -> Any:
    """A declared operation of two operands that broadcast."""
    return declared(operation, *together(x, y, verb=operation))


_WITH_NUMBER = "{}Backward1"


def with_number(operation: str, x: Tensor, number: float) -> Tensor:
    """An operation of a tensor and a number that the node does not show, as PyTorch's own composites have them."""
    return record(catalogue()[operation], (x, number), {}, _WITH_NUMBER.format(operation.capitalize()), edges=1)


def need_tensor(x: Any, function: str) -> Tensor:
    """The tensor; TypeError for anything else."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{function}(): the input must be a tensor, not {type(x).__name__}")
    return x


def spread(value: Any, count: int, what: str) -> Sizes:
    """One whole number for each axis. RuntimeError for another count, TypeError for what is not a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * count
    if not isinstance(value, (tuple, list)) or not all(isinstance(n, int) for n in value):
        raise TypeError(f"{what} must be a whole number or a tuple of them, not {value!r}")
    if len(value) == 1:
        return tuple(value) * count
    if len(value) != count:
        raise RuntimeError(f"expected {what} to be a single integer value or a list of {count} values, but got {value}")
    return tuple(value)


def taken(x: Any, start: Sizes, step: Sizes, size: Sizes) -> Any:
    """Slices along the last axes; the axes before them stay whole."""
    lead = len(x.shape) - len(start)
    return slice_(x, start=(0,) * lead + start, step=(1,) * lead + step, size=(*x.shape[:lead], *size))


def put(x: Any, start: Sizes, step: Sizes, size: Sizes) -> Any:
    """The transpose of `taken`: entries at their places among zeros of this size."""
    lead = len(x.shape) - len(start)
    shape = (*x.shape[:lead], *size)
    if shape == tuple(x.shape):
        return x
    return unslice(x, shape=shape, start=(0,) * lead + start, step=(1,) * lead + step)


class Windows(NamedTuple):
    """Windows along the last axes of an array with zeros around it.

    The sizes of a window, the steps from one to the next, the numbers of zeros at both ends, and the steps inside a
    window; the sizes of the array, the numbers of windows, and how far the last ones reach.
    """

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    sizes: Sizes
    out: Sizes
    full: Sizes

    @classmethod
    def on(
        cls, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool = False
    ) -> Windows:
        """The windows on an array; with `ceil` also those that begin on it and do not end on it."""
        out, full = [], []
        for n, k, by, edge, gap in zip(sizes, kernel, stride, padding, dilation, strict=True):
            reach = gap * (k - 1) + 1
            count = (n + 2 * edge - reach + (by - 1 if ceil else 0)) // by + 1
            if ceil and (count - 1) * by >= n + edge:
                count -= 1
            out.append(count)
            full.append(max((count - 1) * by + reach, n + edge))
        return cls(kernel, stride, padding, dilation, sizes, tuple(out), tuple(full))

    def starts(self) -> Iterator[Sizes]:
        """Where each entry of a window stands in the first one, in C order."""
        return itertools.product(*[range(0, n * gap, gap) for n, gap in zip(self.kernel, self.dilation, strict=True)])

    def parts(self, x: Any, frame: Any = None) -> list[Any]:
        """For each entry of a window the entries there in all windows; `frame`, unless a number, is added before."""
        x = put(x, self.padding, (1,) * len(self.full), self.full)
        x = combined("add", x, frame) if frame is not None and frame.shape else x
        return [taken(x, start, self.stride, self.out) for start in self.starts()]

    def columns(self, x: Any) -> Any:
        """Images (..., C, ...) with the windows as columns: (..., C * entries of a window, number of windows)."""
        *lead, channels = x.shape[: -len(self.out)]
        shape = (*lead, channels, 1, math.prod(self.out))
        columns = joined([reshaped(part, shape) for part in self.parts(x)], -2)
        return reshaped(columns, (*lead, channels * math.prod(self.kernel), shape[-1]))


def weighted(text: str, **defaults: Any) -> ConstructorOptions:
    """`options` of a layer with parameters, which has a device and a dtype too."""
    plain, star, by_name = text.partition(", *")
    return options(f"{plain}, device=None, dtype=None{star}{by_name}", **defaults)


class Layer(Module):
    """A module whose constructor, attributes, call and text follow from what its class declares.

    `_options` are the arguments of the constructor. `_build` takes them: the base makes them attributes, a subclass may
    check them first and make parameters. `forward` calls `function`, an argument of the class, with its inputs and the
    attributes that have the names of the function's other arguments. `_shown` is what the printed module says of
    itself, `{self.name}` for an attribute, and `_usual` has what is said only where it differs.
    """

    _options: ClassVar[ConstructorOptions] = ConstructorOptions()
    _function: ClassVar[Callable[..., Any]]
    _arguments: ClassVar[tuple[str, ...]] = ()
    _in_order: ClassVar[bool] = True  # whether nothing between the arguments is left out
    _tensors: ClassVar[tuple[str, ...]] = ()  # options that are buffers
    _shown: ClassVar[str | None] = None
    _usual: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, function: Callable[..., Any] | None = None, inputs: int = 1) -> None:
        super().__init_subclass__()
        if function is not None:
            cls._function = staticmethod(function)
            arguments = inspect.signature(function).parameters
            names = list(arguments)[inputs:]
            attributes = {"training", *[option.name for option in cls._options]}
            if "dtype" in attributes:  # the layer has parameters
                attributes |= {"weight", "bias"}
            cls._arguments = tuple([name for name in names if name in attributes])
            positional = [name for name in names if arguments[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            cls._in_order = list(cls._arguments) == positional[: len(cls._arguments)]
        if isinstance(vars(cls).get("_options"), ConstructorOptions):

            def start(self: Any, **options: Any) -> None:
                Module.__init__(self)
                options.pop("device", None)
                cls._build(self, **options)

            cls.__init__ = constructor(cls._options, start)  # type: ignore[method-assign]

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **options: Any) -> None: ...

    def _build(self, *args: Any, **options: Any) -> None:
        """Make the options attributes."""
        for name, value in options.items():
            if name in self._tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _weights(self, dtype: Any, **shapes: tuple[int, ...] | None) -> None:
        """Make parameters of some shapes, whose entries are not set yet; None for one that is left out."""
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(empty(*shape, dtype=dtype)))

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The function of the inputs."""
        values = [getattr(self, name) for name in self._arguments]
        if self._in_order and not named:
            return type(self)._function(*inputs, *values)
        return type(self)._function(*inputs, **named, **dict(zip(self._arguments, values, strict=True)))

    def extra_repr(self) -> str:
        if self._shown is None:
            values = {name: getattr(self, name) for name in self._arguments if name != "training"}
            return ", ".join([f"{name}={value!r}" for name, value in values.items() if name != "inplace" or value])
        usual = self._usual
        values = {name: getattr(self, name) for name in usual}
        if "bias" in values:
            values["bias"] = self._has_bias
        unusual = [f"{name}={value}" for name, value in values.items() if value != usual[name]]
        return ", ".join([*([self._shown.format(self=self)] if self._shown else []), *unusual])

    @property
    def _has_bias(self) -> bool:
        return self.bias is not None and self.bias is not False


class Affine(Layer):
    """A weight, and perhaps a bias, that start from uniform numbers by how many inputs an output has."""

    def reset_parameters(self) -> None:
        """Start again from new random numbers."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
            init.uniform_(self.bias, -bound, bound)


def layer(
    name: str,
    function: Callable[..., Any],
    *,
    inputs: int = 1,
    leave_out: Sequence[str] = (),
    last: str = "",
    base: type[Layer] = Layer,
    **attributes: Any,
) -> type[Any]:
    """The module of a function whose first arguments are the inputs of `forward`, the others its options.

    `training` is the module's own. `last` names an option that the constructor takes last. A `base` may have declared
    the options. Further attributes are those of the class: `ranks` for `_ranks`.

    >>> def scale(input, factor=2.0):
    ...     return input * factor
    >>> layer("Scale", scale)(3.0), layer("Scale", scale)(3.0)(1.0)
    (Scale(factor=3.0), 3.0)
    """
    arguments = base._options
    if not arguments:
        parameters = list(inspect.signature(function).parameters.values())[inputs:]
        kept = [p for p in parameters if p.name not in ("training", *leave_out)]
        arguments = ConstructorOptions(sorted(kept, key=lambda p: p.name == last))
    body = {
        "__module__": function.__module__,
        "__qualname__": name,
        "__doc__": f"`functional.{function.__name__}` as a module: {inspect.getdoc(function) or ''}".partition("\n")[0],
        "_options": arguments,
        "_tensors": tuple([p.name for p in arguments if p.annotation == "Tensor | None"]),
        **{f"_{attribute}": value for attribute, value in attributes.items()},
    }
    return types.new_class(name, (base,), {"function": function, "inputs": inputs}, lambda space: space.update(body))


def layers(functions: dict[str, Callable[..., Any]], **options: Any) -> dict[str, type[Any]]:
    """The modules of functions by their names, with the same options of `layer`."""
    return {name: layer(name, function, **options) for name, function in functions.items()}
