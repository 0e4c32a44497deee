"""Checks the values of arguments: shapes, names of leaves, and how values are broadcast."""

from __future__ import annotations

from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.execution.namespaces import namespace
from gradcli.lowering.points import array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.lowering import Lowered


MOST_WORK = 10_000  # steps of the search for a common place of two views


def alike(leaves: Mapping[str, Any], shapes: Mapping[str, Any]) -> bool:
    """Whether values are floats, or arrays of floats, of these shapes, so that they need no conversion."""
    if len(leaves) != len(shapes):
        return False
    for name, value in leaves.items():
        if type(value) is float:
            shape: Any = ()
        elif getattr(getattr(value, "dtype", None), "kind", "") == "f":
            shape = value.shape
        else:
            return False
        if shapes.get(name) != shape:
            return False
    return True


def equal(value: Any, other: Any) -> bool:
    same = value == other
    return bool(same.all()) if hasattr(same, "all") else bool(same)


def places(out: Any, names: Sequence[str], count: int, shapes: Sequence[tuple[int, ...]], dtype: str) -> list[Any]:
    """The arrays of `out` in the order of the results: the value, then the gradient in each leaf.

    Raises GradcliError before anything is computed: GC332 for another shape, GC333 for what cannot hold the results.
    """
    pair = "give (values, {leaf: gradients}), arrays such as np.empty(n)"
    try:
        values, slopes = out
        arrays = [values, *[slopes[name] for name in names]]
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        phrase = ", ".join(map(visible, names)) or "none"
        raise error(
            "GC333", f"`out` is not a pair of an array and a mapping with the leaves {phrase}", help=pair
        ) from None
    labels = ["`out[0]`", *[f"`out[1]['{visible(name)}']`" for name in names]]
    for label, place, shape in zip(labels, arrays, shapes, strict=True):
        kind = getattr(getattr(place, "dtype", None), "kind", "")
        if kind not in (("c",) if dtype == "complex128" else ("f", "c")):
            what = getattr(place, "dtype", None) or type(place).__name__
            raise error("GC333", f"{label} holds {what}, the results are {dtype}", help=pair)
        if tuple(place.shape) != (count, *shape):
            raise error("GC332", f"{label} has shape {list(place.shape)}, the result {[count, *shape]}")
        if not getattr(getattr(place, "flags", None), "writeable", True):
            raise error("GC333", f"{label} is read-only", help="give an array that may be written")
    _apart(labels, arrays)
    return arrays


def _apart(labels: Sequence[str], arrays: Sequence[Any]) -> None:
    """Raise GC333 if two NumPy arrays overlap in memory: one result would overwrite another."""
    numpy = namespace("numpy").library
    mine = [(label, place) for label, place in zip(labels, arrays, strict=True) if isinstance(place, numpy.ndarray)]
    for at, (label, place) in enumerate(mine):
        for other, second in mine[:at]:
            if numpy.may_share_memory(place, second) and _shared(numpy, place, second):
                raise error(
                    "GC333", f"{other} and {label} lie in the same memory", help="give each an array of its own"
                )


def _shared(numpy: Any, first: Any, second: Any) -> bool:
    try:
        return bool(numpy.shares_memory(first, second, max_work=MOST_WORK))
    except numpy.exceptions.TooHardError:  # views of several axes: taken to be meant
        return False


def filled(out: Any, arrays: Sequence[Any], result: tuple[Any, dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """The result in the arrays of the caller, which `places` has checked."""
    for place, value in zip(arrays, (result[0], *result[1].values()), strict=True):
        if place is not value:
            place[...] = value
    return out[0], out[1]


def spread(value: Any, count: int, shape: tuple[int, ...]) -> Any:
    """A result for every point, even if it does not depend on the point."""
    array = array_of(value)
    if array.ndim > len(shape):
        return array
    return array[None].repeat(count, axis=0)


def refuse_unknown(point: Mapping[str, Any], lowered: Lowered) -> None:
    """Raise GradcliError for a keyword that is not a leaf: the intended leaf would silently keep its default."""
    leaves = lowered.program.leaves
    for name in point:
        if name not in leaves:
            guess = did_you_mean(name, leaves)
            hint = f"did you mean `{guess}`?" if guess else "the leaves are: " + (", ".join(leaves) or "none")
            raise error("GC206", f"unknown leaf `{visible(name)}`", help=hint)
