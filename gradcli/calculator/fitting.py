"""Values beside what is expected of them: shapes alike, equal, put into arrays of the caller, given for every point."""

from __future__ import annotations

from gradcli.diagnostics import error
from gradcli.points import array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def alike(leaves: Mapping[str, Any], shapes: Mapping[str, Any]) -> bool:
    """Whether values are floats, or arrays of floats, of these shapes: then there is nothing to read."""
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


def equal(one: Any, other: Any) -> bool:
    same = one == other
    return bool(same.all()) if hasattr(same, "all") else bool(same)


def filled(out: Any, result: tuple[Any, dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """The result in arrays of the caller; GC332 where one has another shape."""
    values, slopes = out
    for place, found in [(values, result[0]), *((slopes[name], slope) for name, slope in result[1].items())]:
        if place.shape != found.shape:
            raise error("GC332", f"`out` has shape {list(place.shape)}, the result {list(found.shape)}")
        if place is not found:
            place[...] = found
    return values, slopes


def spread(value: Any, count: int, shape: tuple[int, ...]) -> Any:
    """A result for every point, also where it does not depend on the point."""
    array = array_of(value)
    if array.ndim > len(shape):
        return array
    return array[None].repeat(count, axis=0)
