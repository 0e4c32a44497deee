"""The one-line command that reproduces one verdict of a check."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

LONGEST = 400  # characters of a command that can still be copied


def replay(
    targets: Sequence[str],
    options: Sequence[tuple[str, Sequence[str]]],
) -> Callable[[Any, Any], str]:
    """A function of a report and one of its checks; `options` are spellings with the values that were given.

    The seed of the check comes last: without it, the points near the given one would be others.
    """
    from shlex import quote

    shared = [f"{name} {quote(value)}" for name, values in options for value in values]

    def command(report: Any, check: Any) -> str:
        where = [report.file] if report.file else list(targets[:1])
        if where == ["-"]:
            where = [report.expression]
        if report.block:
            where.append("--docs")
        seed = check.evidence.get("seed")
        words = [*map(quote, where), *shared, *([] if seed is None else [f"--seed {seed}"])]
        text = " ".join(["gradcli check", *words])
        return text if len(text) <= LONGEST and text.isprintable() else ""

    return command
