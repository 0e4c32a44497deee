"""Reads the claims, boxes and targets on the command line of `check`, and reports what is wrong with them."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.check_options import FILES, FUNCTION, KINDS, SECTIONS
from gradcli.interfaces.options.shared_options import is_file, joined_point
from gradcli.language.values import NAME, leaf_named, leaf_of, value_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gradcli import language
    from gradcli.interfaces.options.declaration import Option
else:
    language = room("language")


RANGE = re.compile(r"\s*\w+\s*=[^][():@=]+:[^][():@=]+")
OPERATOR = re.compile(r"[()*+^=<>]|[^/]@")  # the @ of a scoped folder, such as packages/@team, is none
PATH = re.compile(r"[.~]*/")  # how no expression begins
ASSIGNMENT = re.compile(r"\s*([^\W\d][\w-]*)\s*=\s*([^()*+^=<>@\s]*|\[[^()*+^=<>@]*\])\s*")  # jobs=4, x = 2
PERMITTED = ("kink", "inconclusive", "empty")  # the words of --allow
SHOWN = ("failing", "all", "files", "summary")


def is_expression(target: str) -> bool:
    """Whether a target is an expression: it does not exist as a file, and holds an operator or a blank.

    What is made of letters, digits and `_ - . /` alone is always a path, so a folder that was renamed is an error. So
    is a pattern in a folder that exists, which no file matches, and a name with a value: both would pass.
    """
    if target in ("-", "/dev/stdin") or target.endswith("\n"):  # standard input, and `-e`
        return True
    if is_file(target) or os.path.exists(target) or PATH.match(target) or ASSIGNMENT.fullmatch(target):
        return False
    if OPERATOR.search(target) is None:
        return re.search(r"\s", target.strip()) is not None and not os.path.exists(target.strip())
    return "/" not in target or not os.path.isdir(target.partition("/")[0])


def for_this_kind(
    kind: str, explicit: Iterable[str], options: Iterable[Option], targets: Sequence[str] = (), at: Sequence[str] = ()
) -> None:
    """Raise GC721 for options of the command line that do nothing for a kind of check, GC601 for a missing target."""
    names = {option.name: option.spellings[0] for option in options}
    for name in explicit:
        kinds = KINDS.get(name, (kind,))
        if kind not in kinds:
            existing(targets, at)
            hint = (
                "write the claims as asserts" if (name, kind) == ("claim", FILES) else f"it is for {', '.join(kinds)}"
            )
            raise error("GC732" if kind == FUNCTION else "GC721", f"{names[name]} does not go with {kind}", help=hint)


def judging(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `checks.check_script` that say how a check is judged, from those of the command or the settings.

    Raises GradcliError GC721 for a word that --allow does not know.
    """
    allow = permitted(values["allow"])
    same = ("dtype", "backend", "samples", "seed", "timeout", "require")
    return {
        **{name: values[name] for name in same},
        "dodge": values["avoid_kinks"],
        "allow_kink": "kink" in allow,
        "lenient": "inconclusive" in allow,
    }


def permitted(texts: Sequence[str] | str, words: Sequence[str] = PERMITTED) -> frozenset[str]:
    """The words of `--allow kink,inconclusive`, which may be repeated."""
    chosen = [
        word.strip().lower() for text in ([texts] if isinstance(texts, str) else texts) for word in text.split(",")
    ]
    for word in chosen:
        if word not in words:
            raise error("GC721", f"--allow does not know `{visible(word)}`", help=f"it takes {', '.join(words)}")
    return frozenset(chosen)


def claims(texts: tuple[str, ...]) -> dict[str, str]:
    """`LEAF = SCRIPT` texts by leaf, or `hessian(LEAF)`; raises GC725 for another form or a leaf that comes twice."""
    scripts: dict[str, str] = {}
    for text in [claim for claims in texts for claim in separate(claims)]:
        leaf, equals, script = text.partition("=")
        leaf = leaf.strip(" &")
        in_latex = leaf.startswith("\\") or "_{" in leaf
        if not equals or not (leaf_of(leaf)[0].isidentifier() or (in_latex and leaf.count("{") == leaf.count("}"))):
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


def separate(text: str) -> list[str]:
    """The parts of a text such as `x = 2*x*y, y = x**2`; a text of several statements is one part."""
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
        name, _, sides = text.partition("=")
        leaf = leaf_named(name.strip())
        low, _, high = sides.partition(":")
        try:
            interval = float(low), float(high)
        except ValueError:
            interval = (0.0, 0.0)
        width = interval[1] - interval[0]
        if not leaf.isidentifier() or not 0 < width < float("inf") or leaf in intervals:
            what = "there are two boxes for" if leaf in intervals else "cannot read the box"
            hint = "write --box x=0.5:2, the lower end first, once for each leaf"
            raise error("GC735", f"{what} `{text}`", help=hint)
        intervals[leaf] = interval
    return intervals


def ranges_apart(at: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of a point without its ranges, such as `x=-10:10`, and the ranges."""
    parts = [part for text in at for part in separate(text)]
    ranges = tuple(part for part in parts if RANGE.fullmatch(part))
    return (tuple(part for part in parts if part not in ranges), ranges) if ranges else (at, ())


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
            text = is_expression(path)
            hint = joined_point(at, paths) or ("several targets have to be files or folders" if text else reading(path))
            if os.path.lexists(path):
                hint = f"it is a link to {visible(os.readlink(path), 200)}, which does not exist"
            raise error("GC601", f"no such file or folder `{visible(path, 200)}`", help=hint)
        if not os.path.isfile(path) and not os.path.isdir(path):  # a pipe, a device
            hint = "pass the script on standard input: gradcli check - < FILE"
            raise error("GC721", f"{visible(path, 200)} is neither a file nor a folder", help=hint)
    return list(paths)


def reading(path: str) -> str:
    """What a path that does not exist may mean: another one beside it, an option or a point, or an expression."""
    if (pair := ASSIGNMENT.fullmatch(path)) is not None:
        name, value = pair.groups()
        own = [option for options in SECTIONS.values() for option in options if f"--{name}" in option.spellings]
        shown = "" if own and own[0].kind == "flag" else f" {visible(value, 200)}"
        return f"write --{name}{shown}" if own else f"a point stands behind --at, as --at {name}=2"
    if (near := nearest(path.strip().rstrip("/"))) is not None:
        return f"did you mean {visible(near, 200)}?"
    try:
        text = language.unparse(language.parse(language.Source(path)))
    except GradcliError:
        return "name a .grad file or a folder; without an argument the current folder is checked"
    from shlex import quote

    return f"to check the expression write -e {visible(quote(path if ';' in path else text), 200)}"


def nearest(path: str) -> str | None:
    """The path that exists with the most similar names, or None."""
    folder, name = os.path.split(path)
    inside = folder if os.path.isdir(folder or ".") else nearest(folder)
    if inside is None or not os.path.isdir(inside or "."):
        return None
    entries = []
    with suppress(OSError):  # a folder that cannot be read
        entries = os.listdir(inside or ".")
    near = name if name in entries else f"{name}.grad" if f"{name}.grad" in entries else did_you_mean(name, entries)
    return None if near is None else os.path.join(inside, near)
