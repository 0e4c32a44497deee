"""Points at which an operation is tried: inside its samples, else its domains, near the defaults of its parameters."""

from __future__ import annotations

from math import isfinite, prod

from gradcli.graph.primitive import REQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gradcli.graph.primitive import Primitive

PLACES = (0.37, 0.61, 0.13, 0.83, 0.52)  # of points in an interval


def sample_points(primitive: Primitive) -> Iterator[dict[str, Any]]:
    """Values by the names of the arguments: numbers, or nested lists where a sample has a shape."""
    for turn in range(len(PLACES)):
        point: dict[str, Any] = {}
        for place, argument in enumerate(primitive.argument_names()):
            drawn = primitive.sample[place] if place < len(primitive.sample) else None
            bounds, shape = drawn if isinstance(drawn, tuple) else (drawn, ())
            default = (primitive.parameters or {}).get(argument, REQUIRED)
            low, high = (primitive.domain[place] if bounds is None else bounds).low, 0.0
            high = (primitive.domain[place] if bounds is None else bounds).high
            if bounds is None and default is not REQUIRED and low < default < high:
                low, high = max(low, default - 0.5), min(high, default + 0.5)
            low = low if isfinite(low) else high - 4 if isfinite(high) else -2.0
            high = high if isfinite(high) else low + 4
            numbers = [PLACES[(turn + 2 * place + 3 * k) % 5] + 0.01 * (k // 5) for k in range(prod(shape))]
            point[argument] = nested([low + part * (high - low) for part in numbers], shape)
        yield point


def nested(numbers: list[float], shape: tuple[int, ...]) -> Any:
    """Numbers as nested lists of a shape, or the only one."""
    if not shape:
        return numbers[0]
    size = len(numbers) // shape[0]
    return [nested(numbers[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]
