"""`gradcli jacobian`: print all partial derivatives of an array-valued script at a point."""

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


def jacobian(output: CommandOutput, script: str, *, point: Point) -> int:
    """All partial derivatives of an array or of several outputs.

    The array of a leaf has the shape of the output followed by the shape of the leaf. Without a point it is
    shown as a formula, as `gradcli derive --jacobian` does.

    The formats mtx and npz hold one sparse matrix for SciPy: rows and columns count the entries of outputs and leaves.

    Examples:
      gradcli jacobian "[x*y, x + y]" --at x=2,y=3
      gradcli jacobian "tanh(W @ x)" --at "W=[[1,2],[3,4]],x=[0.1,0.2]"
      gradcli jacobian "x*y, x/y" --at x=2,y=3 --format csv
      gradcli jacobian "x[1:]*x[:-1]" --at "x=[1,2,3,4]" --format mtx
    """
    source, options = evaluation(output, script, point)
    result = partial(calculator.jacobian, source, sparse=False, **options)
    return answered(output, source, options, "jacobian", result, quantity="jacobian")


DECLARATION = Declaration(jacobian, (SCRIPT,), (*EVALUATION, *MATRIX_OUTPUT), groups=(Point,))
