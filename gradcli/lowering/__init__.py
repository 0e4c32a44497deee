"""Lowers a syntax tree to a program at a point: names, arity, shapes and domains are decided here.

`Lowerer` is the state; each construct has a module of plain functions of it, which `script_pass.py` calls; a claim is a
script beside it (`claim_scripts.py`). Expressions run on a stack machine without recursion; functions are inlined, and
equal calls are looked up. Decisions:

- An `if` may read sizes, loop indices, const names, and scalar leaves with a whole default, which become const with a
  note. Any other condition on a leaf is an error that proposes `where`: the branch would hide half of the derivative.
- `const` takes literals, files and other constants; a leaf that is read as a size, index or bound becomes const and
  cannot be differentiated. Sizes, bounds and axes are exact fractions (`statics.py`).
- `grad` in a script differentiates with respect to a leaf, or to a name that is assigned once.
- A hand-written rule (`def f.vjp`) may not read leaves other than its operands: their gradient would be lost.
- Errors in claims are always reported, but the limits on sizes apply to claims only where they are checked.
"""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, pointing_into
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.graph.program import HandRule, Program
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.lowering.claim_scripts import lowered_claim
from gradcli.lowering.lowered import Claim, Lowered
from gradcli.lowering.names import NO_CLAIMS, USUAL, LoweringMode
from gradcli.lowering.operands import ScriptList
from gradcli.lowering.script_pass import ScriptPass
from gradcli.lowering.shapes.open_shapes import OpenCount
from gradcli.lowering.unknown_names import missing_values, number_for_array, refuse_numbers, unknown_leaf, unused_values
from gradcli.primitives import catalogue, functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Script
    from gradcli.lowering.shapes.open_shapes import OpenShapes

__all__ = [
    "NO_CLAIMS",
    "Claim",
    "HandRule",
    "Lowered",
    "LoweringMode",
    "lower",
    "missing_values",
    "refuse_numbers",
    "unused_values",
]


def lower(
    script: Script,
    *,
    at: Mapping[str, Any] | None = None,
    wrt: Sequence[str] | None = None,
    limits: Limits | None = None,
    claims: Mapping[str, str] | None = None,
    shapes: OpenShapes | None = None,
    mode: LoweringMode = USUAL,
) -> Lowered:
    """The program of a script.

    `at` gives values (numbers, nested lists, arrays) to leaves and thereby their shapes; `wrt` names the leaves to
    differentiate with respect to, default all that are not const; `claims` are hand-written gradients, a script per
    leaf. `shapes` are assumed for free names without values; without it these are numbers. Raises GradcliError with
    every error of the script.

    >>> from gradcli.language.parser import parse
    >>> lowered = lower(parse("const k = 3; w = [1, 2]; sum(k*w)"))
    >>> lowered.wrt, lowered.text
    (('w',), 'sum(k*w)')
    >>> lowered.program
    <program of k, w -> 1 outputs, 6 nodes>
    """
    while True:
        lowerer = ScriptPass(script, catalogue(), functions(), limits or DEFAULT_LIMITS, at or {}, mode)
        if shapes is not None:
            lowerer.open_shapes = shapes
        try:
            lowered = _lowered(lowerer, wrt, claims or {})
        except OpenCount as open_count:
            if shapes is None:
                from gradcli.lowering.shapes.open_sizes import (
                    OpenSizes,  # most scripts have no range that ends at a free name
                )

                shapes = OpenSizes()
            shapes.counting(open_count)
            continue
        except GradcliError as problem:
            with pointing_into(script.source):
                if shapes is None or not shapes.fit(problem):
                    raise
            continue
        with pointing_into(script.source):
            if shapes is None or not shapes.fit(None):
                return lowered


def _lowered(lowerer: ScriptPass, wrt: Sequence[str] | None, claims: Mapping[str, str]) -> Lowered:
    script = lowerer.script
    lowerer.run()
    builder = lowerer.builder
    if lowerer.reads_positions:
        _fix_positions(lowerer)
    names = _wrt(lowerer, wrt)
    for leaf, text in claims.items():
        lowerer.claims.append(lowered_claim(lowerer, leaf, text))
    builder.span = None
    program = Program(builder, lowerer.leaves, lowerer.outputs, lowerer.statics, builder.other_spans)
    builder.other_spans = {}
    builder.close()
    lowered = Lowered(
        script=script,
        program=program,
        values=dict(lowerer.values),
        claims=tuple(lowerer.claims),
        rules=tuple(lowerer.rules),
        wrt=names,
        notes=(*script.diagnostics, *(note.with_source(script.source) for note in lowerer.notes)),
        text=lowerer.text,
        several=lowerer.several,
        uses=dict(lowerer.uses),
        reassigned=dict(lowerer.reassigned),
        expect=lowerer.expect or script.expect,
        names=_intermediates(lowerer),
        blocks=tuple(lowerer.blocks),
        random_arrays=lowerer.random_arrays,
        derived=lowerer.derived,
    )
    note = number_for_array(lowered) if lowered.claims and not claims else None
    return lowered if note is None else lowered._replace(notes=(*lowered.notes, note))


def _intermediates(lowerer: ScriptPass) -> dict[Node, str]:
    """The names of the values that the script computes; a list stands for the array that was read from it."""
    names = {}
    for name, value in lowerer.scope.items():
        node = value.tagged or value.array if isinstance(value, ScriptList) else value
        if isinstance(node, Node) and node.args:
            names[node] = name
    return names


def _fix_positions(lowerer: ScriptPass) -> None:
    """A leaf that is read as positions or labels is data: it is never differentiated."""
    for node in reachable(lowerer.outputs):
        if node.primitive.name == "cast" and node.params["kind"] == "int" and node.args[0].primitive is LEAF:
            leaf = lowerer.leaves.get(node.args[0].params["name"])
            if leaf is not None:  # it does not stand for entries that an array of another size would have
                leaf.const = True


def _wrt(lowerer: ScriptPass, wrt: Sequence[str] | None) -> tuple[str, ...]:
    if wrt is None:
        return tuple(name for name, leaf in lowerer.leaves.items() if not leaf.const)
    for name in wrt:
        if name in lowerer.leaves:
            span = lowerer.uses.get(name) or lowerer.leaves[name].span
            if span is not None or lowerer.is_const(lowerer.leaves[name].node):
                lowerer.differentiated(lowerer.leaves[name].node, span)
        elif name in lowerer.at:
            lowerer.free_leaf(name, None)
        else:
            raise unknown_leaf(lowerer, name)
    return tuple(dict.fromkeys(wrt))
