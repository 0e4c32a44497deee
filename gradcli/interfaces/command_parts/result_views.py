"""Passes a result to the output with functions for its formats, of which only the needed one is called."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.interfaces.commands import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.base.results.calculations import Derivation
    from gradcli.rendering import machine
    from gradcli.rendering.document import Document, Grid, Style
    from gradcli.rendering.documents import calculus, formulas

    Payload = dict[str, Any]
else:
    calculus, formulas, machine = room("calculus"), room("formulas"), room("machine")


class View(NamedTuple):
    """Functions that render one result in each format. Only the one that is needed is called.

    A result of formats of its own, such as a drawing, has `texts` instead of `document` and `tidy`: it takes the name
    of the format and the style.
    """

    payload: Callable[[], Payload]
    document: Callable[[Style], Document] | None = None
    tidy: Callable[[], Grid] | None = None
    texts: Callable[[str, Style], str] | None = None
    lines: Callable[[], Iterable[Payload]] | None = None  # the payload alone
    diagnostics: tuple[Diagnostic, ...] = ()

    def records(self) -> Iterable[Payload]:
        """What JSON Lines has, one on each line."""
        return (self.payload(),) if self.lines is None else self.lines()


def derivation(result: Derivation) -> View:
    """The view of derivatives in closed form."""
    return View(
        document=lambda style: formulas.derivation(result, style),
        payload=lambda: machine.derivation("derive", result),
        tidy=lambda: formulas.tidy(result),
        diagnostics=result.diagnostics,
    )


def calculation(command: str, result: Any, hint: Callable[[], str] = str) -> View:
    """The view of an Evaluation, Gradient, Hessian or Jacobian; a terminal shows a hint below it."""
    builder = type(result).__name__.lower()

    def document(style: Style) -> Document:
        shown: Document = getattr(calculus, builder)(result, style)
        return shown if style.width is None else shown.with_note(hint())

    return View(
        document=document,
        payload=lambda: machine.calculation(command, result),
        tidy=lambda: calculus.tidy(result),
        diagnostics=result.diagnostics,
    )
