"""The names of columns in a file of points or results, and the entry of a leaf in each column.

A scalar leaf `x` is the column `x`; an array `w` is the columns `w[0]`, `w[1]`, ... or `A[0,1]`, in any order. In the
results `value` is the value and `d_x` the derivative in `x`.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import Diagnostic, did_you_mean, error, visible
from gradcli.base.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

CELL = re.compile(r"\s*(\w+)\s*(?:\[([\d\s,]+)\])?\s*")


class LeafColumns(NamedTuple):
    """A leaf and its columns: the shape of one value, and the positions of its entries in row-major order."""

    name: str
    shape: tuple[int, ...]
    places: tuple[int, ...]


def grouped(path: str, names: Sequence[str]) -> tuple[LeafColumns, ...]:
    """The leaves of named columns; raises GradcliError (GC618) for names that form no array, or come twice.

    A name that no leaf can have forms a group of its own, which no script uses.
    """
    arrays: dict[str, dict[tuple[int, ...], int]] = {}
    others: list[LeafColumns] = []
    for place, name in enumerate(names):
        match = CELL.fullmatch(name)
        if match is None:
            others.append(LeafColumns(name if name.strip() else f"column {place + 1}", (), (place,)))
            continue
        index = tuple(int(i) for i in match[2].split(",")) if match[2] else ()
        entries = arrays.setdefault(match[1], {})
        if index in entries:
            raise error(
                "GC618", f"{visible(path)} has two columns {visible(name)}", help="give each column a name of its own"
            )
        entries[index] = place
    groups = [*(_group(path, name, entries) for name, entries in arrays.items()), *others]
    return tuple(sorted(groups, key=lambda group: group.places[0]))


def _separated(names: Sequence[str]) -> str | None:
    """Advice for a single name that looks like several names with another separator."""
    for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        parts = names[0].split(sign)
        if len(names) == 1 and len(parts) > 1 and all(CELL.fullmatch(part) for part in parts):
            tsv = ", or let its name end in .tsv" if sign == "\t" else ", and write decimals with a point"
            return f"cells are separated by {word}: separate them by commas{tsv}"
    return None


def _group(path: str, name: str, entries: Mapping[tuple[int, ...], int]) -> LeafColumns:
    ranks = {len(index) for index in entries}
    shape = tuple(max(axis) + 1 for axis in zip(*entries, strict=False)) if len(ranks) == 1 else (-1,)
    if len(ranks) > 1 or prod(shape) != len(entries):
        raise error(
            "GC618",
            f"{visible(path)}: the columns of {visible(name)} are not a whole array",
            help=f"give every entry once: {visible(name)}[0], {visible(name)}[1], ...",
        )
    return LeafColumns(name, shape, tuple(entries[index] for index in sorted(entries)))


def in_order(path: str, leaves: Sequence[str], count: int, how: str) -> tuple[LeafColumns, ...]:
    """Columns without names: one for each leaf of the script, in its order; or all of them for its one leaf.

    `how` says how such a file can name them.
    """
    if len(leaves) == 1 and count != 1:
        return (LeafColumns(leaves[0], (count,), tuple(range(count))),)
    if len(leaves) != count:
        phrase = ", ".join(map(visible, leaves)) or "no leaf"
        raise error(
            "GC618",
            f"{visible(path)} has {count} column{'' if count == 1 else 's'}, and the script has {phrase}",
            help=f"name the columns{how}, or give the other leaves with --at",
        )
    return tuple(LeafColumns(name, (), (place,)) for place, name in enumerate(leaves))


def missing(path: str, groups: Sequence[LeafColumns], errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The errors for leaves without values, reworded for a file; `errors` are those for a point."""
    phrase = listed([group.name for group in groups])
    return [
        Diagnostic(
            error.code,
            f"{error.message}, and {visible(path)} has no such column (it has {phrase})",
            error.span,
            help=f"{error.help}, or a column of its name" if error.help else None,
            source=error.source,
        )
        for error in errors
    ]


def used_groups(path: str, groups: Iterable[LeafColumns], leaves: Iterable[str]) -> tuple[LeafColumns, ...]:
    """The groups that the script uses; raises GradcliError (GC618) if it uses none."""
    leaves = list(leaves)
    groups = list(groups)
    used = tuple(group for group in groups if group.name in leaves)
    if not used:
        names = [group.name for group in groups]
        guesses = [(name, guess) for name in names if (guess := did_you_mean(name, leaves))]
        meant = [f"is {visible(name)} meant as {guess}?" for name, guess in guesses[:1]]
        raise error(
            "GC618",
            f"{visible(path)}: no column belongs to a leaf of the script ({', '.join(leaves) or 'it has none'}); "
            f"the file has {listed(names)}",
            help=_separated(names) or (meant or ["columns are named like leaves: x, w[0], A[0,1]"])[0],
        )
    return used


def listed(names: Sequence[str]) -> str:
    """Names of columns in a sentence."""
    return ", ".join([visible(name, 60) for name in names[:20]]) + (", ..." if len(names) > 20 else "")


def without_others(
    groups: Sequence[LeafColumns], names: Collection[str]
) -> tuple[tuple[LeafColumns, ...], tuple[int, ...]]:
    """The groups of these names in a table of their columns alone, and the positions of these in the whole table."""
    used = [group for group in groups if group.name in names]
    places = sorted([place for group in used for place in group.places])
    moved = {place: position for position, place in enumerate(places)}
    return (
        tuple([LeafColumns(name, shape, tuple([moved[place] for place in own])) for name, shape, own in used]),
        tuple(places),
    )


def entry_names(name: str, shape: Sequence[int]) -> list[str]:
    """The columns of an array: `d_w[0]`, `d_w[1]`."""
    if not shape:
        return [name]
    indices: list[list[int]] = [[]]
    for n in shape:
        indices = [[*index, i] for index in indices for i in range(n)]
    return [f"{name}[{','.join(map(str, index))}]" for index in indices]


def block_of(groups: Sequence[LeafColumns], table: Any) -> dict[str, Any]:
    """The leaves of a table of numbers [rows, columns]."""
    return {
        group.name: table[:, list(group.places)].reshape((len(table), *group.shape))
        if group.shape
        else table[:, group.places[0]]
        for group in groups
    }
