"""`gradcli grad`: print the value and the gradient of a script at a point."""

from __future__ import annotations

from functools import partial

from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option
from gradcli.interfaces.options.shared_options import (
    CLUSTER,
    EVALUATION,
    OUTPUT,
    POINTS,
    RELAX,
    SCRIPT,
    Point,
    answered,
    evaluation,
    many_points,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.interfaces.options.shared_options import CommandOutput
else:
    calculator = room("calculator")


def grad(
    output: CommandOutput,
    script: str,
    *,
    point: Point,
    points: str | None,
    relax: bool,
    cluster: str | None,
    order: int,
) -> int:
    """Value and gradient at a point.

    The output must be a number; for an array use `jacobian`, or sum it. Every leaf gets a gradient of its own
    shape; a leaf that the output does not depend on gets zeros. Every point is allowed: the result is what the
    formulas give in floating point, with a note if the point lies outside the domain.

    Details:

    With --points every row of a file is a point: its columns are named x, w[0], A[0,1]. Results stream to
    the file of --output; an interrupted run continues where it stopped. With --cluster the workers of a Dask
    cluster compute them.

    --order N adds the derivatives of order 1 to N by each scalar leaf. Without a point the gradient is shown as
    a formula, as `gradcli derive` does.

    Examples:
      gradcli grad "(x*y+x)**2" --at x=2,y=3
      gradcli grad "sum(w**2)" --at "w=[1,2,3]" --format json
      gradcli grad "-x**2" --at x=3 --order 2
      gradcli grad loss.grad --wrt w,b
      gradcli grad "sin(x)*y" --points points.csv --output slopes.csv
      gradcli grad f.grad --points in.npy -o out.npy --cluster tcp://host:8786
    """
    if points is not None or cluster is not None:
        return many_points(output, script, point, points, True, relax=relax, cluster=cluster)
    source, options = evaluation(output, script, point)
    result = partial(calculator.grad, source, **options, order=order, relax=relax, exact=True)
    return answered(output, source, options, "grad", result, order=order, hint=lambda: to_check(script, point))


def to_check(script: str, point: Point) -> str:
    """How to check this gradient, in one line."""
    from gradcli.interfaces.command_parts.replay import check_command, operand

    options = [("--at", point.at), ("--wrt", (point.wrt,) if point.wrt else ())]
    options += [] if point.dtype == "float64" else [("--dtype", (point.dtype,))]
    command = check_command(operand(script), options) if script != "-" else ""
    return f"checked? {command}" if command else ""


ORDER = Option(
    "--order", kind="int", default=1, bounds=(1, None), help="Derivatives of order 1 to N by each scalar leaf."
)
DECLARATION = Declaration(
    grad,
    (SCRIPT,),
    (*EVALUATION, POINTS, RELAX, CLUSTER, ORDER, *OUTPUT),
    groups=(Point,),
    conflicts={"points": ("order",)},
)
