"""The convention for complex leaves: the derivative of the real part L of the value, as dL/d(conj z).

The rules of the engine are holomorphic. Their result is conjugated, which is dL/d(conj z) as PyTorch has it. An
operation that is not holomorphic (`norm`, or `abs(z)*z`) has no such rule, so the gradient is compared with
differences of L along one direction, and a warning is given where the two disagree.
"""

from __future__ import annotations

from math import cos, sin

from gradcli.diagnostics import Diagnostic
from gradcli.points import array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.calculator.repeated.prepared import Question

STEPS = (1e-4, 1e-5, 1e-6)  # relative to the size of each leaf; agreement on one of them is enough
TOLERANCE = 1e-3


def conjugated(value: Any, gradient: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The real part of the output and its gradient; values may be arrays over points."""
    return value.real, {name: partial.conjugate() for name, partial in gradient.items()}


def complex_notes(
    question: Question, values: Mapping[str, Any], value: Any, gradient: Mapping[str, Any], backend: str
) -> list[Diagnostic]:
    """Notes on a gradient in complex leaves: the imaginary part of the output is left out, a rule does not hold."""
    lowered, notes = question.lowered, []
    place = lowered.program.outputs[0].span
    if isinstance(value, complex) and value.imag:
        message = "the output is complex: its real part is taken"
        notes.append(Diagnostic("GC407", message, place, severity="note", source=lowered.source))
    if not _agrees(question, values, gradient, backend):
        notes.append(
            Diagnostic(
                "GC411",
                "the gradient does not fit differences of the real part: an operation here is not holomorphic",
                place,
                help="use the real and the imaginary part as separate leaves",
                severity="warning",
                source=lowered.source,
            )
        )
    return notes


def _agrees(question: Question, values: Mapping[str, Any], gradient: Mapping[str, Any], backend: str) -> bool:
    """Whether differences along one direction match the gradient, on one side at least; True where not finite."""
    directions: dict[str, Any] = {}
    slope, count = 0.0, 0
    for name, partial in gradient.items():
        entries = array_of(partial).reshape(-1)
        unit = [complex(cos(count + k), sin(2 * (count + k) + 1)) for k in range(len(entries))]
        count += len(entries)
        slope += sum((g.conjugate() * u).real for g, u in zip(entries.tolist(), unit, strict=True))
        directions[name] = array_of(unit).reshape(array_of(partial).shape)
    size = 1 + max((abs(array_of(values[name])).max(initial=0.0) for name in directions), default=0.0)
    center = _real_output(question, values, backend)
    for step in STEPS:
        h = step * size
        ends = []
        for signed in (h, -h):
            moved = {name: array_of(values[name]) + signed * unit for name, unit in directions.items()}
            ends.append(_real_output(question, {**values, **moved}, backend))
        rounding = max(map(abs, (center, *ends))) * 1e-13 / h
        # one side is enough: the other may lie beyond a branch cut
        for difference in ((ends[0] - ends[1]) / (2 * h), (ends[0] - center) / h, (center - ends[1]) / h):
            if not abs(difference - slope) > TOLERANCE * max(abs(slope), abs(difference)) + rounding:
                return True
    return False


def _real_output(question: Question, values: Mapping[str, Any], backend: str) -> float:
    return complex(question.run(values, backend, "complex128")[0]).real
