"""NumPy's broadcasting made explicit: operands of several shapes become operands of one, by reshape and broadcast."""

from __future__ import annotations

from gradcli.base.diagnostics import error
from gradcli.graph.types import broadcast_shapes
from gradcli.primitives.movement import broadcast, reshape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.graph.types import Shape


def stretch(x: Any, shape: Shape) -> Any:
    """An operand repeated to a shape that it broadcasts to: the rank is raised first, then axes are stretched."""
    if x.shape == shape:
        return x
    if len(x.shape) < len(shape):
        x = reshape(x, shape=(1,) * (len(shape) - len(x.shape)) + x.shape)
    return broadcast(x, shape=shape) if x.shape != shape else x


def together(*xs: Any, verb: str = "combine") -> tuple[Any, ...]:
    """The operands in their common shape; raises GradcliError GC301 where NumPy would refuse."""
    first = xs[0].shape
    if all(x.shape == first for x in xs):
        return xs
    shape = broadcast_shapes(*(x.shape for x in xs))
    if shape is None:
        names = [_type_text(x) for x in xs]
        message = f"cannot {verb} {', '.join(names[:-1])} and {names[-1]}"
        raise error("GC301", message, help=_shape_help(xs), sizes=unequal(*(x.shape for x in xs)))
    return tuple(stretch(x, shape) for x in xs)


def unequal(*shapes: Shape) -> tuple[int, int] | None:
    """The first two sizes, counted from the last axis, that do not broadcast."""
    for position in range(1, max(map(len, shapes)) + 1):
        sizes = [shape[-position] for shape in shapes if position <= len(shape) and shape[-position] != 1]
        other = next((n for n in sizes if n != sizes[0]), None)
        if other is not None:
            return sizes[0], other
    return None


def _type_text(x: Any) -> str:
    kind = getattr(x, "type", None)
    return str(kind) if kind is not None else f"f64[{','.join(map(str, x.shape))}]"


def _shape_help(xs: tuple[Any, ...]) -> str | None:
    """What usually fixes it: a slice of the longer vector, or a new axis."""
    if all(len(x.shape) == 1 for x in xs):
        return f"slice one of them, e.g. b[0:{min(x.shape[0] for x in xs)}], or add an axis: a[:, None]"
    return "axes must be equal or 1, counted from the last; reshape or add an axis with x[:, None]"
