"""The one-line command that reproduces one verdict of a check, and the point as it was written."""

from __future__ import annotations

from gradcli.interfaces.command_parts.check_inputs import is_expression
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.shared_options import is_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gradcli.primitives import plugins
    from gradcli.rendering.documents.cards import Replay
else:
    plugins = room("plugins")

LONGEST = 400  # characters of a command that can still be copied


def replay(
    targets: tuple[str, ...],
    options: Sequence[tuple[str, Sequence[str]]],
) -> Callable[[Any, Any], Replay]:
    """A function of a report and one of its checks; `options` are spellings with the values that were given.

    The seed of the check comes last: without it, the points near the given one would be others.
    """
    from gradcli.rendering.documents.cards import Replay

    def called(report: Any, check: Any) -> Replay:
        text = report.file or (report.expression if targets[:1] == ("-",) else "".join(targets[:1]))
        where = operand(text, file=bool(report.file)) if text else []
        if report.block:
            where.append("--docs")
        seed = check.evidence.get("seed")
        words = [*options, *([] if seed is None else [("--seed", (str(seed),))])]
        return Replay(check_command(where, words), written_arrays(options))

    return called


def operand(text: str, file: bool = False) -> list[str]:
    """The arguments by which a text is a file, or an expression, to `check`."""
    text = text.removesuffix("\n")
    if file or is_file(text):
        return [f"./{text}" if text.startswith("-") else text]
    return [text] if is_expression(text) else ["-e", text]


def check_command(operands: Sequence[str], options: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A command line of `check` with the files that are imported; empty where it could not be copied."""
    from shlex import quote

    words = [*options, *plugins.as_options()]
    spelled = [f"{name} {quote(value)}" for name, values in words for value in values]
    text = " ".join(["gradcli check", *map(quote, operands), *spelled])
    return text if len(text) <= LONGEST and text.isprintable() else ""


def written_arrays(options: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """The names of the point that a call or a file gives, as they were written; none where a box moves the point."""
    from gradcli.language.values import FileReference, parse_at

    values = dict(options)
    texts = [] if values.get("--box") else [text for text in values.get("--at", ()) if len(text) <= LONGEST]
    written = {}
    for binding in (binding for text in texts for binding in parse_at(text)):
        if isinstance(binding.value, FileReference):
            written[binding.name] = f"@{binding.value.path}"
        elif type(binding.value).__name__ == "Call":
            line, start, _, end = binding.value.span
            written[binding.name] = binding.source.line(line)[start - 1 : end - 1]
    return written
