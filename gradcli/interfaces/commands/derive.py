"""`gradcli derive`: print closed formulas for the gradient of a script."""

from __future__ import annotations

import re

from gradcli.base.diagnostics import error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.command_parts import quiz_session
from gradcli.interfaces.command_parts.result_views import derivation
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option
from gradcli.interfaces.options.shared_options import EVALUATION, FORMATS, SCRIPT, allowed, load, names, presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.derivation import deriving
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.language import values
    from gradcli.rendering import code
else:
    code, deriving, values = room("code"), room("deriving"), room("values")

SHAPE_TEXT = re.compile(r"\s*([^\W\d]\w*)\s*=\s*((?:\w+\s*(?:,\s*\w+\s*)*)?)")


class Derivatives(NamedTuple):
    """Which derivatives, and how they are written."""

    wrt: str | None
    shape: tuple[str, ...]
    hessian: bool
    jacobian: bool
    order: int
    style: str
    direction: str | None
    steps: bool


def derive(
    output: CommandOutput,
    script: str,
    *,
    derivatives: Derivatives,
    emit: str | None,
    quiz: bool,
    limit: tuple[str, ...],
) -> int:
    """The gradient as a formula, without a point.

    Shapes of free names are inferred: A and X are matrices, x and b vectors, lam and sigma numbers, unless the
    script uses them otherwise, and sizes that have to agree are one symbol. The assumptions are printed;
    --shape overrides them. A gradient has the shape of its leaf.

    With --emit the value and the gradient are a function for NumPy, PyTorch, JAX or C, in a file that does
    not need gradcli and has a test of its values at one point: run it, or test it with pytest.

    Details:

    Every formula is checked like a hand-written claim before it is shown, at three choices of sizes, and has to be
    the same at all sizes; where algebra proves it for every size, the verdict says so. With --hessian and --order
    each formula is checked as a derivative of the one before it. In --format json `formula` is in the script
    language, as `gradcli check --claim` expects it.

    With --steps the derivation precedes the formula: a line for each operation with its rule. For a number the
    lines are derivatives, for an array differentials: d(A @ x) = A @ dx. Every line is proved by its normal
    form.

    With --quiz you enter the gradient yourself; a wrong answer is diagnosed like a wrong claim.

    With --direction v the result is the derivative along v, which has the shape of the leaf: the gradient times
    v, or for an array the Jacobian times v; with --hessian also the Hessian times v.

    Examples:
      gradcli derive "mean((A@x - b)**2)" --wrt x
      gradcli derive "sum((Y - U@V.T)**2)"
      gradcli derive "x**2*exp(-x)" --order 3 --style factored
      gradcli derive "x**2*exp(-x)" --steps
      gradcli derive "logsumexp(x)" --hessian
      gradcli derive "logsumexp(x)" --direction v --hessian
      gradcli derive "tanh(W@x + b)" --jacobian --wrt x,b
      gradcli derive "mean((A@x - b)**2)" --emit torch --output loss.py
      gradcli derive "sum(exp(a*x))" --shape a= --format json
    """
    bounds = allowed(limit, output)
    options: dict[str, Any] = {name: getattr(derivatives, name) for name in ("style", "order", "steps", "direction")}
    options["quantity"] = "hessian" if derivatives.hessian else "jacobian" if derivatives.jacobian else "gradient"
    if quiz:
        quiz_session.possible(output, script)
    source = load(script, output, bounds)
    result = deriving.derive(
        source, wrt=names(derivatives.wrt), shapes=shapes_of(derivatives.shape), limits=bounds, **options
    )
    if quiz:
        return quiz_session.quiz(output, list(deriving.questions(source, result, bounds)))
    if emit is not None:
        import dataclasses

        text = code.source_file(deriving.emitted(source, result, bounds), emit)
        if output.format not in ("json", "jsonl"):
            output.write([text])
            output.note(*result.diagnostics)
            return 0
        result = dataclasses.replace(result, emitted=text)
    output.emit(derivation(result))
    return 0


def shapes_of(texts: tuple[str, ...]) -> dict[str, tuple[str | int, ...]]:
    """The shapes of `--shape A=m,n`: symbols or numbers, an empty tuple for a number."""
    shapes: dict[str, tuple[str | int, ...]] = {}
    for text in texts:
        match = SHAPE_TEXT.fullmatch(text)
        if match is None:
            raise error("GC744", f"--shape {visible(text)} is not a shape", help="write --shape A=m,n or --shape b=3")
        sizes = [size.strip() for size in match[2].split(",") if size.strip()]
        if any(size[0].isdigit() and not (size.isdecimal() and int(size)) for size in sizes):
            raise error(
                "GC744", f"--shape {visible(text)} is not a shape", help="a size is a name or a whole number from 1"
            )
        shapes[values.leaf_named(match[1])] = tuple([int(size) if size.isdecimal() else size for size in sizes])
    return shapes


SHAPE = Option(
    "--shape",
    kind="texts",
    metavar="NAME=SIZES",
    help="The shape of a free name, such as A=m,n or x=3; b= is a number. May be repeated.",
)
HESSIAN = Option("--hessian", kind="flag", help="Second derivatives too, up to symmetry.")
JACOBIAN = Option("--jacobian", kind="flag", help="The derivative of an array: a row for each entry of the output.")
ORDER = Option(
    "--order",
    kind="int",
    default=1,
    bounds=(1, 9),
    help="Derivatives of order 1 to N by each leaf; leaves must be numbers.",
)
STYLE = Option(
    "--style",
    choices=("simplified", "factored", "index", "derived"),  # the last is an earlier name of the first
    metavar="simplified|factored|index",
    default="simplified",
    help="Form of a formula: simplified, factored by SymPy if it is without arrays, or index for an entry of it.",
)
EMIT = Option(
    "--emit",
    choices=("numpy", "torch", "jax", "c"),
    help="Write the value and the gradient as a function, with a test.",
)
QUIZ = Option("--quiz", kind="flag", help="Ask you for the gradient, and check your answers.")
DIRECTION = Option(
    "--direction",
    metavar="NAME",
    help="The derivative along a direction of this name; with --hessian, the Hessian times it.",
)
STEPS = Option(
    "--steps", kind="flag", help="Show the derivation of first derivatives line by line: rule, line, result."
)
WRT, LIMIT = (option for option in EVALUATION if option.spellings[0] in ("--wrt", "--limit"))
FORMS = presentation(*FORMATS, "mathml")
DECLARATION = Declaration(
    derive,
    (SCRIPT,),
    (WRT, SHAPE, HESSIAN, JACOBIAN, ORDER, STYLE, DIRECTION, STEPS, EMIT, QUIZ, LIMIT, *FORMS),
    (Derivatives,),
    conflicts={
        "jacobian": ("hessian", "order"),
        "order": ("hessian",),
        "steps": ("hessian", "order"),
        "emit": ("hessian", "jacobian", "order", "steps"),
        "quiz": ("hessian", "jacobian", "order", "steps", "emit"),
        "direction": ("jacobian", "order", "steps", "emit", "quiz"),
    },
    endings={".py": ("emit", EMIT.choices[:3]), ".c": ("emit", ("c",))},
)
