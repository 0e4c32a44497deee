"""The iterations of a loop or a comprehension over a range, counted before the first of them runs."""

from __future__ import annotations

from gradcli.base.diagnostics import cover, error
from gradcli.graph.exact import count_text, number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.language.syntax import Expression, Name
    from gradcli.lowering.lowerer import Lowerer


def counted(lowerer: Lowerer, target: Name, bounds: Sequence[Expression], values: Sequence[Any], what: str) -> range:
    """The range of these values as `range_of` has it; raises GradcliError GC505 for too many iterations."""
    numbers = range_of(lowerer, bounds, values)
    repeat(lowerer, length(numbers), cover(target.span, bounds[-1].span), what)
    return numbers


def range_of(lowerer: Lowerer, bounds: Sequence[Expression], values: Sequence[Any]) -> range:
    """The range of these values; raises GradcliError GC306 for bounds that are not whole numbers."""
    whole = []
    for bound, value in zip(bounds, values, strict=True):
        n = lowerer.static(value, bound.span)
        if type(n) is not int:
            message = f"a bound of range must be a whole number, not {number_text(n)}"
            raise error("GC306", message, bound.span, help="round it: floor(...), ceil(...)")
        whole.append(n)
    if len(whole) == 3 and whole[2] == 0:
        raise error("GC306", "the step of range must not be 0", bounds[2].span)
    return range(*whole)


def length(numbers: range) -> int:
    """The length of a range, however long it is."""
    step = numbers.step
    return max(0, (numbers.stop - numbers.start + step - (1 if step > 0 else -1)) // step)


def repeat(lowerer: Lowerer, count: int, span: Span, what: str) -> None:
    """Count iterations; raises GradcliError GC505 where a script takes more of them than it may have nodes."""
    lowerer.repetitions += count
    if lowerer.repetitions > lowerer.limits.nodes:
        raise error(
            "GC505",
            f"the {what} would run {count_text(lowerer.repetitions)} times; {lowerer.limits.nodes:,} nodes are allowed",
            span,
            help="use arrays instead of a loop over scalars, or raise it with --limit nodes=...",
        )
