"""Values on their way in and out: a caller's values as arrays that fit their leaves, constants, plain results."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.arrays import nearest_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import GradcliError
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape


def plain_number(value: Any) -> float | None:
    """A single real number as a float; None for anything else."""
    if isinstance(value, (int, float)):
        return nearest_float(value)
    if hasattr(value, "numerator") and not hasattr(value, "dtype"):
        return nearest_float(value)
    return None


def plain_result(array: Any) -> Any:
    """A result as the caller gets it: a number of Python for a scalar, else an array; truth values as numbers."""
    kind = array.dtype.kind
    if not array.shape:
        return complex(array) if kind == "c" else float(array)
    return array if kind in "fc" else array.astype("float64")


def constant_value(xp: Any, node: Node) -> Any:
    """A constant as a Python float for `math`, else as an array of its shape."""
    number = nearest_float(node.params["value"])
    return number if xp.name == "math" else xp.spread(xp.array(number, node.type.kind), node.type.shape)


def impl_params(node: Node) -> dict[str, Any]:
    """The keyword arguments of an `impl`: metadata, and core ranks unless it works entry by entry."""
    if node.primitive.pointwise:
        return node.params
    return {**node.params, "ranks": tuple([len(arg.type.shape) for arg in node.args])}


def leaf_value(xp: Any, node: Node, value: Any) -> Any:
    """An input as an array of the namespace, its own shape last."""
    name, shape = node.params["name"], node.type.shape
    try:
        array = xp.numbers(value, node.type.kind)
    except (TypeError, ValueError) as wrong:
        raise error("GC333", f"the value of {name} is not an array of numbers: {wrong}", node.span) from wrong
    rank = len(shape)
    if array.shape[max(array.ndim - rank, 0) :] != shape:
        expected = _shape_text(shape)
        raise error(
            "GC313",
            f"the value of {name} has shape {_shape_text(array.shape)}, the script expects {expected}",
            node.span,
            help=f"give {name} a value of shape {expected}; leading batch axes are allowed",
        )
    return array


class Unbatched:
    """Reads the values of leaves at one point, all but those that are held."""

    __slots__ = ("_array", "_input_values", "_held", "_wanted", "_xp")

    def __init__(self, xp: Any, tape: Any, held: Mapping[str, Any] | None = None) -> None:
        self._xp = xp
        self._array = xp.library.ndarray
        self._input_values = tape.input_values
        self._held = held or {}
        leaves = [(place, node, node.params["name"]) for place, (node, _) in enumerate(tape.inputs)]
        self._wanted = [
            (place, node, name, node.type.shape, xp.kind_type(node.type.kind))
            for place, node, name in leaves
            if name not in self._held
        ]

    def __call__(self, values: Mapping[str, Any], exact: bool = False) -> list[Any] | None:
        """The arrays, in the order of the tape's inputs; None where one has batch axes.

        With `exact` None too, unless all values are there, as arrays of the types and shapes of their leaves.
        """
        if exact and len(values) != len(self._wanted):
            return None
        arrays, inputs = [], None
        for place, node, name, shape, dtype in self._wanted:
            array: Any = values.get(name)
            if type(array) is not self._array or array.dtype != dtype or array.shape != shape:
                if exact:
                    return None
                if inputs is None:
                    inputs = self._input_values({**self._held, **values} if self._held else values)
                array = leaf_value(self._xp, node, inputs[place])
                if array.ndim != len(shape):
                    return None
            arrays.append(array)
        return arrays


def data_value(xp: Any, node: Node, value: Any) -> Any:
    """An array of constants as one of the namespace; GC333 for complex data in a real program."""
    try:
        return xp.numbers(value, node.type.kind)
    except (TypeError, ValueError) as wrong:
        raise error("GC333", f"the data is not an array of numbers: {wrong}", node.span) from wrong


def _shape_text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


def leads_differ(inputs: Sequence[tuple[Node, int]], leaves: Sequence[Any]) -> GradcliError:
    leads = [
        f"{node.params['name']} has {_shape_text(leaf.shape[: leaf.ndim - len(node.shape)])}"
        for (node, _), leaf in zip(inputs, leaves, strict=True)
        if leaf.ndim > len(node.shape)
    ]
    return error(
        "GC332",
        f"the batch axes of the values do not agree: {', '.join(leads)}",
        help="give all leaves the same number of points",
    )


def missing_values(nodes: Sequence[Node], values: Mapping[str, Any], defaults: Mapping[str, Any]) -> GradcliError:
    lacking = [node for node in nodes if values.get(node.params["name"], defaults.get(node.params["name"])) is None]
    names = [node.params["name"] for node in lacking]
    return error(
        "GC202",
        f"no value for {', '.join(names)}",
        lacking[0].span,
        help=f"give a value, e.g. --at {','.join(f'{name}=1' for name in names)}",
    )
