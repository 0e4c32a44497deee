"""`gradcli eval`: print the value of a script at a point."""

from __future__ import annotations

from gradcli.interfaces.command_parts.result_views import calculation
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration
from gradcli.interfaces.options.shared_options import (
    CLUSTER,
    EVALUATION,
    OUTPUT,
    POINTS,
    RELAX,
    SCRIPT,
    Point,
    evaluation,
    many_points,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.interfaces.options.shared_options import CommandOutput
else:
    calculator = room("calculator")


def evaluate(
    output: CommandOutput, script: str, *, point: Point, points: str | None, relax: bool, cluster: str | None
) -> int:
    """Value at a point.

    The output of a script is its last expression, else the last name that it assigns. Several outputs
    (`a, b`) give several values. The expression is shown as it was parsed, so a mistake in precedence is
    visible.

    Examples:
      gradcli eval "hypot(x, y)" --at x=3,y=4
      gradcli eval "1/2x" --at x=4
      gradcli eval "A @ b" --at "A=[[1,2],[3,4]]" --at "b=[1,1]"
      echo "x = 2; sin(x)" | gradcli eval -
    """
    if points is not None or cluster is not None:
        return many_points(output, script, point, points, False, relax=relax, cluster=cluster)
    source, options = evaluation(output, script, point)
    result = calculator.evaluate(source, **options, relax=relax, exact=True)
    output.emit(calculation("eval", result))
    return 0


VALUE = tuple(option for option in EVALUATION if option.name != "wrt")
DECLARATION = Declaration(evaluate, (SCRIPT,), (*VALUE, POINTS, RELAX, CLUSTER, *OUTPUT), groups=(Point,))
