"""What is said of names that are no leaves, have no value or no shape, or are not used."""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic, GradcliError, did_you_mean, error, visible
from gradcli.graph.node import reachable
from gradcli.language.syntax import Call, Comprehension, List, Subscript, names_in, nodes_of
from gradcli.primitives import functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.graph.types import Shape
    from gradcli.lowering.lowered import Lowered
    from gradcli.lowering.script_pass import ScriptPass


AXES = frozenset(("axis", "reduction"))  # parameters of functions of whole arrays
ARRAYS = (List, Subscript, Comprehension)  # what is no number where its names are


def unknown_leaf(lowerer: ScriptPass, name: str) -> GradcliError:
    """The error for a name that is to be differentiated by and is no leaf."""
    if name in lowerer.scope:
        return error(
            "GC206",
            f"`{visible(name)}` is computed from other names, so it is not a leaf",
            help="--wrt names leaves: " + ", ".join(lowerer.leaves),
        )
    guess = did_you_mean(name, lowerer.leaves)
    product = next((leaf for leaf in lowerer.leaves if name in leaf and re.fullmatch("[a-z]{2,3}", leaf)), None)
    if guess:
        hint = f"did you mean `{guess}`?"
    elif product is not None and len(name) == 1:
        hint = f"`{product}` is one name; write {'*'.join(product)} for a product"
    else:
        hint = "the leaves are: " + (", ".join(lowerer.leaves) or "none")
    return error("GC206", f"unknown leaf `{visible(name)}`", help=hint)


def unused_values(lowered: Lowered, point: Mapping[str, Any]) -> list[Diagnostic]:
    """A note for each name of the point that the script does not use."""
    leaves, notes = lowered.program.leaves, []
    for name in point:
        if name not in leaves:
            guess = did_you_mean(name, leaves)
            hint = f"did you mean `{guess}`?" if guess else None
            notes.append(Diagnostic("GC211", f"the script does not use `{visible(name)}`", help=hint, severity="note"))
    return notes


def missing_values(lowered: Lowered, point: Mapping[str, Any]) -> list[Diagnostic]:
    """An error for each leaf that the outputs need and that has a value neither in the script nor at the point."""
    needed = {node.params["name"] for node in lowered.program.nodes() if node.primitive.name == "leaf"}
    problems = []
    text = lowered.source.text
    for name in lowered.program.leaves:
        if name in needed and name not in lowered.values and name not in point:
            problems.append(
                Diagnostic(
                    "GC202",
                    f"`{visible(name)}` has no value",
                    lowered.uses.get(name),
                    help=_missing_help(name, [*lowered.values, *point], lowered.program.leaves[name].node.shape, text),
                    source=lowered.source,
                )
            )
    return problems


def number_for_array(lowered: Lowered) -> Diagnostic | None:
    """A note where a function along an axis takes a number that free names make: `mean(x**2)` is written of arrays."""
    program, known = lowered.program, functions()
    leaves = {name: leaf for name, leaf in program.leaves.items() if not (leaf.node.shape or leaf.domain)}
    free = leaves.keys() - lowered.values.keys() - program.statics.keys()
    if not free:
        return None
    computed = {name: node for node, name in lowered.names.items() if not node.shape}
    for node in nodes_of(lowered.script):
        function = known.get(node.function.id) if isinstance(node, Call) else None
        if not isinstance(node, Call) or function is None or AXES.isdisjoint(function.static):
            continue
        parts = [part for arg in node.args for part in nodes_of(arg)]
        called = [known.get(part.function.id) for part in parts if isinstance(part, Call)]
        used = {name for arg in node.args for name in names_in(arg)}
        whole = any(isinstance(part, ARRAYS) for part in parts) or not all(call and call.pointwise for call in called)
        if whole or not used <= leaves.keys() | computed.keys() or (function.chooses and len(node.args) > 1):
            continue
        below = {leaf.params.get("name") for leaf in reachable([computed[name] for name in used & computed.keys()])}
        for name in sorted(free & (used | below)):
            message = f"{node.function.id} takes an array, and `{visible(name)}` is free, so it counts as a number"
            hint = f"declare its shape, as in `{visible(name)}[n] in real`, or give it a value"
            return Diagnostic("GC307", message, node.span, help=hint, severity="note", source=lowered.source)
    return None


def refuse_numbers(lowered: Lowered, claims: Mapping[str, str] | None) -> None:
    """Raise GradcliError GC307 for claims about a script that takes a number for an array."""
    note = number_for_array(lowered) if claims else None
    if note is not None:
        raise GradcliError(note._replace(severity="error"))


def _missing_help(name: str, known: Sequence[str], shape: Shape, text: str) -> str:
    quotient = re.search(r"\bd(\w*)\s*/\s*d(\w+)", text) if name[0] == "d" else None  # dy/dx
    if name == "π":
        return "write pi for the number"
    if len(name) > 1 and all(char in known for char in name):
        return f"did you mean {'*'.join(name)}?"
    guess = did_you_mean(name, known)
    derivative = f"; a derivative is grad({quotient[1] or '...'}, {quotient[2]})" if quotient else ""
    value = f'"{visible(name)}=randn({", ".join(map(str, shape))})"' if shape else f"{visible(name)}=1"
    if guess:
        return f"did you mean `{guess}`? Else give it a value: --at {value}"
    return f"give it a value: --at {value}{derivative}"
