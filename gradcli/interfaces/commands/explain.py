"""`gradcli explain`: print the documentation of a diagnostic code, or the list of codes."""

from __future__ import annotations

from gradcli.base.codes import CODES, VERDICTS
from gradcli.base.diagnostics import did_you_mean, error, visible
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, PositionalArgument
from gradcli.interfaces.options.shared_options import OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.base.codes import CodeDoc
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.rendering import machine
    from gradcli.rendering.document import Document, Style
    from gradcli.rendering.documents import catalogue
else:
    catalogue, machine = room("catalogue"), room("machine")


def explain(output: CommandOutput, code: str | None) -> int:
    """What an error code or a verdict means and what to do.

    Every error names a code such as GC301, every check ends in a verdict such as KINK. This command prints what
    it means, the reason, an example, and what to do. Without a code, it lists all codes.

    Examples:
      gradcli explain GC301
      gradcli explain kink
      gradcli explain
    """
    shown = CODES if code is None else dict([chosen(code)])

    def fields() -> list[Any]:
        return [catalogue.explanation_fields(name, doc) for name, doc in shown.items()]

    def document(style: Style) -> Document:
        return catalogue.codes(shown, style) if code is None else catalogue.explanation(*chosen(code), style)

    output.emit(
        View(
            document=document,
            payload=lambda: {**machine.opening("explain"), **({"codes": fields()} if code is None else fields()[0])},
            lines=lambda: ({**machine.opening("explain"), **entry} for entry in fields()),
            tidy=lambda: catalogue.tidy_codes(shown),
        )
    )
    return 0


def chosen(code: str) -> tuple[str, CodeDoc]:
    """A code or a verdict in any case, with its explanation; raises GC726 for another word."""
    word = " ".join(code.upper().split())
    name, doc = VERDICTS.get(word) or (name := f"GC{code}" if code.isdecimal() else word, CODES.get(name))
    if doc is None:
        guess = did_you_mean(word, [*CODES, *VERDICTS])
        hint = f"did you mean `{guess}`?" if guess else "gradcli explain lists all codes"
        raise error("GC726", f"unknown code `{visible(code)}`", help=hint)
    return name, doc


CODE = PositionalArgument("code", "[CODE]", "A code such as GC301, or a verdict such as KINK.", required=False)
DECLARATION = Declaration(explain, (CODE,), OUTPUT)
