"""`gradcli explain`: print the documentation of a diagnostic code, or the list of codes."""

from __future__ import annotations

from gradcli.codes import CODES, VERDICTS
from gradcli.commands import room
from gradcli.commands._declaration import Declaration, Operand
from gradcli.commands._shared import OUTPUT
from gradcli.commands._views import View
from gradcli.diagnostics import did_you_mean, error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.commands._shared import Output
    from gradcli.rendering import machine
    from gradcli.rendering.documents import catalogue
else:
    catalogue, machine = room("catalogue"), room("machine")


def explain(output: Output, code: str | None) -> int:
    """What an error code or a verdict means and what to do.

    Every error names a code such as GC301, every check ends in a verdict such as KINK. This command prints what
    it means, the reason, an example, and what to do. Without a code, it lists all codes.

    Examples:
      gradcli explain GC301
      gradcli explain kink
      gradcli explain
    """
    if code is None:
        output.emit(
            View(
                document=lambda style: catalogue.codes(CODES, style),
                payload=lambda: {
                    **machine.opening("explain"),
                    "codes": [catalogue.explanation_fields(name, doc) for name, doc in CODES.items()],
                },
                lines=lambda: (
                    {**machine.opening("explain"), **catalogue.explanation_fields(name, doc)}
                    for name, doc in CODES.items()
                ),
                tidy=lambda: catalogue.tidy_codes(CODES),
            )
        )
        return 0
    word = " ".join(code.upper().split())
    name, doc = VERDICTS.get(word) or (name := f"GC{code}" if code.isdecimal() else word, CODES.get(name))
    if doc is None:
        guess = did_you_mean(word, [*CODES, *VERDICTS])
        hint = f"did you mean `{guess}`?" if guess else "gradcli explain lists all codes"
        raise error("GC726", f"unknown code `{visible(code)}`", help=hint)
    output.emit(
        View(
            document=lambda style: catalogue.explanation(name, doc, style),
            payload=lambda: {**machine.opening("explain"), **catalogue.explanation_fields(name, doc)},
            tidy=lambda: catalogue.tidy_codes({name: doc}),
        )
    )
    return 0


CODE = Operand("code", "[CODE]", "A code such as GC301, or a verdict such as KINK.", required=False)
DECLARATION = Declaration(explain, (CODE,), OUTPUT)
