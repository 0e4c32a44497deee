"""Reads the claims, boxes and targets on the command line of `check`, and reports what is wrong with them."""

from __future__ import annotations

import os

from gradcli.commands._shared import is_file, joined_point
from gradcli.diagnostics import error, visible
from gradcli.language.values import NAME, value_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def callable_only(
    targets: tuple[str, ...], claim: tuple[str, ...], backend: str, python: str | None, script: str | None
) -> str:
    """The target of --python; raises GC732 for options that do not go with it."""
    if python is None:
        raise error("GC732", "--grad needs --python", help="write --python losses.py:f --grad losses.py:df")
    extra = "a script" if targets else "--claim" if claim else "--backend" if backend != "auto" else script
    if extra:
        raise error("GC732", f"--python does not go with {extra}", help="check them one after the other")
    return python


def looks_like_path(target: str) -> bool:
    """Whether a target is more likely a mistyped folder than an expression: names and slashes only, and not there.

    A check of the expression `samples / fise` would pass although nothing was checked.
    """
    return not is_file(target) and all(part.isidentifier() for part in target.strip("/").split("/"))


def claims(texts: tuple[str, ...]) -> dict[str, str]:
    """`LEAF = SCRIPT` texts by leaf; raises GC725 if one does not have that form or a leaf comes twice."""
    scripts: dict[str, str] = {}
    for text in [claim for claims in texts for claim in _separate(claims)]:
        leaf, equals, script = text.partition("=")
        leaf = leaf.strip()
        if not equals or not leaf.isidentifier():
            example = (script if equals else text).strip() or "2*x"
            step = f'write the leaf first: --claim "x = {example}"'
            raise error("GC725", f"`{text}` is not LEAF = SCRIPT", help=step)
        if leaf in scripts:
            raise error("GC725", f"there are two claims for `{leaf}`", help="give one claim per leaf")
        scripts[leaf] = script.strip()
    return scripts


def one_claim(text: str) -> tuple[str, str]:
    """The leaf and the script of the only claim in a text; raises GC725 if there are more."""
    (first, *more) = claims((text,)).items()
    if more:
        raise error("GC725", f"a plot shows one claim, and `{visible(text, 200)}` has more", help="plot each alone")
    return first


def _separate(text: str) -> list[str]:
    """The claims in a text such as `x = 2*x*y, y = x**2`; a text of several statements is one claim."""
    if ";" in text or "\n" in text:
        return [text]
    claims, start, end = [], 0, value_end(text, 0)
    while end < len(text):
        if NAME.match(text, end + 1):
            claims.append(text[start:end])
            start = end + 1
        end = value_end(text, end + 1)
    return [*claims, text[start:]]


def boxes(texts: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """`LEAF=LO:HI` texts by leaf; raises GC735 if one does not have that form or a leaf comes twice."""
    intervals: dict[str, tuple[float, float]] = {}
    for text in texts:
        leaf, _, sides = text.partition("=")
        low, _, high = sides.partition(":")
        try:
            interval = float(low), float(high)
        except ValueError:
            interval = (0.0, 0.0)
        width = interval[1] - interval[0]
        if not leaf.strip().isidentifier() or not 0 < width < float("inf") or leaf.strip() in intervals:
            what = "there are two boxes for" if leaf.strip() in intervals else "cannot read the box"
            hint = "write --box x=0.5:2, the lower end first, once for each leaf"
            raise error("GC735", f"{what} `{text}`", help=hint)
        intervals[leaf.strip()] = interval
    return intervals


def python_targets(targets: Sequence[str]) -> None:
    """Raise GC721 for a Python file, or a function in one, that is named without --python."""
    for target in targets:
        path, _, name = target.partition(":")
        if path.endswith(".py") and os.path.isfile(path) and (name.isidentifier() or path == target):
            what = "is a Python file, not a script" if path == target else "is a Python function"
            function = target if name else f"{path}:f"
            help = f"write --python {visible(function, 200)} --grad {visible(path, 200)}:df, with df its derivative"
            raise error("GC721", f"{visible(target, 200)} {what}", help=help)


def existing(paths: Sequence[str], at: Sequence[str] = ()) -> list[str]:
    """The paths; raises GC601 for one that does not exist. `at` is the point of the command line."""
    for path in paths:
        if not os.path.exists(path):
            hint = None if is_file(path) else "several targets have to be files or folders; quote an expression"
            hint = joined_point(at, paths) or hint
            raise error("GC601", f"cannot read {path}: no such file or folder", help=hint)
    return list(paths)
