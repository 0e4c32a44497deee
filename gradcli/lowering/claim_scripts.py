"""Claims: a hand-written gradient or Jacobian is a script that sees the names of the script it is about."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import Call, FunctionDef, Name, nodes_of
from gradcli.lowering.assigned_names import assigned_names
from gradcli.lowering.lowered import Claim, shape_help
from gradcli.lowering.names import IMAGINARY
from gradcli.lowering.operands import number, tagged
from gradcli.lowering.script_pass import ScriptPass
from gradcli.lowering.unknown_names import unknown_leaf
from gradcli.primitives.broadcasting import stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from gradcli.language.syntax import Script

OWN = "′"  # behind the names of a claim that the script has too


def lowered_claim(lowerer: ScriptPass, leaf: str, text: str) -> Claim:
    """A hand-written gradient, Jacobian of an array, or of `hessian(x)` Hessian: a script that sees the names and
    functions of the script, and those of the point.

    What it assigns or defines itself is its own, in functions of the script too.
    """
    from gradcli.language.values import leaf_of  # few programs have claims beside them: start-up time

    source = Source(text, f"<claim for {leaf}>")
    about, (leaf, order) = leaf, leaf_of(leaf)
    if leaf not in lowerer.leaves:
        raise unknown_leaf(lowerer, leaf)
    if len(lowerer.outputs) != 1:
        hint = "write the values as one list, [a, b], whose Jacobian the claim is"
        raise error("GC307", "a claim is about one output, and this script has several", help=hint)
    target, output = lowerer.leaves[leaf].node, lowerer.outputs[0]
    script = with_own_names(parse(source, lowerer.limits), {*lowerer.scope, *lowerer.leaves, *lowerer.functions})
    inner = ScriptPass(script, lowerer.vocabulary, lowerer.library, lowerer.limits, lowerer.at, lowerer.mode)
    inner.builder, inner.sizes, inner.open_shapes = lowerer.builder, lowerer.sizes, lowerer.open_shapes
    inner.leaves, inner.values, inner.symmetric = dict(lowerer.leaves), lowerer.values, lowerer.symmetric
    known = {**{name: leaf.node for name, leaf in lowerer.leaves.items()}, **lowerer.scope}
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
    _add_leaves(lowerer, inner, source, known)
    if len(inner.outputs) != 1:
        raise error("GC314", "a claim has one value", source=source)
    right = number(inner, inner.outputs[0])
    from gradcli.transforms import derivatives

    if order == 2 and output.type.shape:
        raise error("GC307", f"a Hessian needs a scalar, and the output is {output.type}", script.span, source=source)
    name = "hessian" if order == 2 else "jacobian" if output.type.shape else "grad"
    if name == "grad":
        left = derivatives.grad(output, [target])[0]
    else:
        left = tagged(lowerer, getattr(derivatives, name)(output, target))
        lowerer.derived[left] = (name, output, target)
    if right.type.shape not in ((), left.type.shape):
        what = f"the {'gradient' if name == 'grad' else name.title()} with respect to `{visible(leaf)}`"
        message = f"{what} is {left.type}, but the claim is {right.type}"
        hint = shape_help(left.type.shape, right.type.shape, inner.text.replace(OWN, ""))
        raise error("GC314", message, script.span, help=hint, source=source)
    own = inner.text.replace(OWN, "")
    text = f"{name}({own and lowerer.text}, {leaf}) == {own}"
    derivative = (output, target) if name == "grad" else None
    return Claim(left, stretch(right, left.type.shape), script.span, text, source, leaf=about, derivative=derivative)


def _add_leaves(lowerer: ScriptPass, inner: ScriptPass, source: Source, known: Mapping[str, Any]) -> None:
    """The leaves that a claim reads and the script does not: data, with a value of the point."""
    for name, known_leaf in inner.leaves.items():
        if name in lowerer.leaves:
            continue
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
