"""A script and a point in, value and gradient out: one call of the calculator."""

from __future__ import annotations

from gradcli.commands import room
from gradcli.commands._declaration import Declaration, Option
from gradcli.commands._shared import EVALUATION, OUTPUT, SCRIPT, evaluation
from gradcli.commands._views import calculation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.commands._shared import Output
else:
    calculator = room("calculator")


def grad(
    output: Output,
    script: str,
    *,
    at: tuple[str, ...],
    wrt: str | None,
    dtype: str,
    backend: str,
    limit: tuple[str, ...],
    order: int,
) -> int:
    """Value and gradient at a point.

    The output must be a number; for an array use `jacobian`, or sum it. Every leaf gets a gradient of its own
    shape, a leaf that the output does not depend on gets zeros. No point is refused: the result is what the
    formulas give in floating point, with a note where the point lies outside the domain.

    With --order N the derivatives 1..N by each scalar leaf are added.

    Examples:
      gradcli grad "(x*y+x)**2" --at x=2,y=3
      gradcli grad "sum(w**2)" --at w=[1,2,3] --format json
      gradcli grad "-x**2" --at x=3 --order 2
      gradcli grad loss.grad --wrt w,b
    """
    source, told = evaluation(output, script, at=at, wrt=wrt, dtype=dtype, backend=backend, limit=limit)
    result = calculator.grad(source, **told, order=order)
    output.emit(calculation("grad", result))
    return 0


ORDER = Option("--order", kind="int", default=1, low=1, help="Derivatives 1..N by each scalar leaf.")
DECLARATION = Declaration(grad, (SCRIPT,), (*EVALUATION, ORDER, *OUTPUT))
