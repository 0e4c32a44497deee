"""The convention for complex leaves: the derivative of the real part L of the value, as dL/d(conj z).

A program on complex numbers gives dL/dx - i*dL/dy, which is f'(z) where f is holomorphic; its conjugate is what PyTorch
gives.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.lowering import Lowered


def conjugated(value: Any, gradient: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The real part of the output and its gradient; values may be arrays over points."""
    return value.real, {name: partial.conjugate() for name, partial in gradient.items()}


def real_part_note(lowered: Lowered, value: Any) -> list[Diagnostic]:
    """A note where the imaginary part of the output is left out."""
    if not (isinstance(value, complex) and value.imag):
        return []
    message, place = "the output is complex: its real part is taken", lowered.program.outputs[0].span
    return [Diagnostic("GC407", message, place, severity="note", source=lowered.source)]
