"""Lowers a syntax tree to a program at a point: names, arity, shapes and domains are decided here.

`Lowerer` is the state; each construct has a module of plain functions of it, which `script_pass.py` calls. Expressions
run on a stack machine without recursion; functions are inlined, and equal calls are looked up. Decisions:

- An `if` may read sizes, loop indices, const names, and scalar leaves with a whole default, which become const with a
  note. Any other condition on a leaf is an error that proposes `where`: the branch would hide half of the derivative.
- `const` takes literals, files and other constants; a leaf that is read as a size, index or bound becomes const and
  cannot be differentiated. Sizes, bounds and axes are exact fractions (`statics.py`).
- `grad` in a script differentiates with respect to a leaf, or to a name that is assigned once.
- A hand-written rule (`def f.vjp`) may not read leaves other than its operands: their gradient would be lost.
- Errors in claims are always reported, but the limits on sizes apply to claims only where they are checked.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic, GradcliError, did_you_mean, error, pointing_into, visible
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.graph.program import HandRule, Program
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import Call, FunctionDef, Name, nodes_of
from gradcli.lowering.assigned_names import assigned_names
from gradcli.lowering.lowered import Claim, Lowered, shape_help
from gradcli.lowering.names import IMAGINARY, NO_CLAIMS, USUAL, LoweringMode
from gradcli.lowering.operands import ScriptList, number, tagged
from gradcli.lowering.script_pass import ScriptPass
from gradcli.lowering.shapes.open_shapes import OpenCount
from gradcli.primitives import catalogue, functions
from gradcli.primitives.broadcasting import stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from gradcli.graph.types import Shape
    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Script
    from gradcli.lowering.shapes.open_shapes import OpenShapes

__all__ = ["NO_CLAIMS", "Claim", "HandRule", "Lowered", "LoweringMode", "lower"]

OWN = "′"  # behind the names of a claim that the script has too


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
        lowerer.claims.append(_claim(lowerer, leaf, text))
    builder.span = None
    program = Program(builder, lowerer.leaves, lowerer.outputs, lowerer.statics, builder.other_spans)
    builder.other_spans = {}
    builder.close()
    return Lowered(
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
            lowerer.leaves[node.args[0].params["name"]].const = True


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
            raise _unknown_leaf(lowerer, name)
    return tuple(dict.fromkeys(wrt))


def _unknown_leaf(lowerer: ScriptPass, name: str) -> GradcliError:
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


def _claim(lowerer: ScriptPass, leaf: str, text: str) -> Claim:
    """A hand-written gradient, or Jacobian of an array: a script that sees the names and functions of the script, and
    those of the point.

    What it assigns or defines itself is its own, in functions of the script too.
    """
    source = Source(text, f"<claim for {leaf}>")
    if leaf not in lowerer.leaves:
        raise _unknown_leaf(lowerer, leaf)
    if len(lowerer.outputs) != 1:
        hint = "write the values as one list, [a, b], whose Jacobian the claim is"
        raise error("GC307", "a claim is about one output, and this script has several", help=hint)
    target, output = lowerer.leaves[leaf].node, lowerer.outputs[0]
    script = with_own_names(parse(source, lowerer.limits), {*lowerer.scope, *lowerer.leaves, *lowerer.functions})
    inner = ScriptPass(script, lowerer.vocabulary, lowerer.library, lowerer.limits, lowerer.at, lowerer.mode)
    inner.builder, inner.sizes = lowerer.builder, lowerer.sizes
    inner.leaves, inner.values = dict(lowerer.leaves), lowerer.values
    known = {**lowerer.scope, **{name: leaf.node for name, leaf in lowerer.leaves.items()}}
    for name in IMAGINARY - known.keys() if lowerer.mode.plane else ():
        known[name] = lowerer.builder.call("times_i", lowerer.builder.constant(1))
    inner.scope = {**known, **{name + OWN: value for name, value in known.items()}}
    inner.functions, inner.hand_written = dict(lowerer.functions), dict(lowerer.hand_written)
    inner.ruled = lowerer.ruled
    inner.leaves_allowed = False
    try:
        inner.run()
    except GradcliError as problem:
        renamed = [note._replace(message=note.message.replace(OWN, "")) for note in problem.diagnostics]
        raise GradcliError(*renamed) from None
    for name, known_leaf in inner.leaves.items():
        if name not in lowerer.leaves:
            if name not in lowerer.at:
                guess = did_you_mean(name, known)
                hint = "give it a value with --at; complex numbers need --dtype complex128" if name in IMAGINARY else ""
                raise error(
                    "GC202",
                    f"the claim reads `{visible(name)}`, which is no name of the script",
                    inner.uses.get(name),
                    help=hint or (f"did you mean `{guess}`?" if guess else "give it a value with --at"),
                    source=source,
                )
            known_leaf.const = True
            lowerer.leaves[name] = known_leaf
    if len(inner.outputs) != 1:
        raise error("GC314", "a claim has one value", source=source)
    right = number(inner, inner.outputs[0])
    from gradcli.transforms import derivatives

    if output.type.shape:
        left = tagged(lowerer, derivatives.jacobian(output, target))
        lowerer.derived[left] = ("jacobian", output, target)
    else:
        left = derivatives.grad(output, [target])[0]
    if right.type.shape not in ((), left.type.shape):
        what = f"the {'Jacobian' if output.type.shape else 'gradient'} with respect to `{visible(leaf)}`"
        message = f"{what} is {left.type}, but the claim is {right.type}"
        hint = shape_help(left.type.shape, right.type.shape, inner.text.replace(OWN, ""))
        raise error("GC314", message, script.span, help=hint, source=source)
    name, own = "jacobian" if output.type.shape else "grad", inner.text.replace(OWN, "")
    text = f"{name}({own and lowerer.text}, {leaf}) == {own}"
    derivative = None if output.type.shape else (output, target)
    return Claim(left, stretch(right, left.type.shape), script.span, text, source, leaf=leaf, derivative=derivative)


def with_own_names(script: Script, taken: Collection[str]) -> Script:
    """A script in which the names that it assigns or defines have OWN behind them where they are taken."""
    functions = {function.name.id for function in script.statements if isinstance(function, FunctionDef)}
    own = {*assigned_names(script.statements), *functions} & {*taken}
    for node in nodes_of(script) if own else ():
        if isinstance(node, Name) and node.id in own:
            node.id += OWN
        elif isinstance(node, Call) and node.function.id.removesuffix(OWN) in functions:
            for keyword in node.keywords:
                keyword.name += OWN * (keyword.name in own)
    return script


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
