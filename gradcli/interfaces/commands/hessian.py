"""`gradcli hessian`: print the second derivatives of a script at a point."""

from __future__ import annotations

from functools import partial

from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration
from gradcli.interfaces.options.shared_options import EVALUATION, MATRIX_OUTPUT, SCRIPT, Point, answered, evaluation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.interfaces.options.shared_options import CommandOutput
else:
    calculator = room("calculator")


def hessian(output: CommandOutput, script: str, *, point: Point) -> int:
    """Value, gradient and second derivatives at a point.

    The output must be a number. The block of two leaves a and b has the shape of a followed by the shape
    of b; the matrix is symmetric wherever the second derivatives are continuous. Without a point it is shown
    as a formula, as `gradcli derive --hessian` does.

    The formats mtx and npz hold one sparse matrix for SciPy: rows and columns count the entries of the leaves in order.

    Examples:
      gradcli hessian "x**2*y + sin(y)" --at x=1.5,y=-0.5
      gradcli hessian "logsumexp(x)" --at "x=[1,2,3]" --digits 6
      gradcli hessian loss.grad --wrt w --format json
      gradcli hessian "sum((x[1:]-x[:-1])**4)" --at "x=randn(9999)" --output h.npz
    """
    source, options = evaluation(output, script, point)
    result = partial(calculator.hessian, source, sparse=False, **options)
    return answered(output, source, options, "hessian", result, quantity="hessian")


DECLARATION = Declaration(hessian, (SCRIPT,), (*EVALUATION, *MATRIX_OUTPUT), groups=(Point,))
