"""A script and a point in, both passes of reverse mode out, step by step: one call of the calculator."""

from __future__ import annotations

from gradcli.commands import room
from gradcli.commands._declaration import Declaration, Option
from gradcli.commands._shared import EVALUATION, OUTPUT, SCRIPT, evaluation
from gradcli.commands._views import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import calculator
    from gradcli.commands._shared import Output
    from gradcli.rendering import machine
    from gradcli.rendering import trace as listing
else:
    calculator, listing, machine = room("calculator"), room("trace"), room("machine")


def trace(
    output: Output,
    script: str,
    *,
    at: tuple[str, ...],
    wrt: str | None,
    dtype: str,
    backend: str,
    limit: tuple[str, ...],
    why_topo: bool,
    style: str,
) -> int:
    """The forward and the backward pass, step by step.

    Forward: every node of the computation in topological order, with what it reads and its value.
    Backward: which node sends which cotangent to whom (the cotangent times the local partial), and what
    the receiver holds then.

    A node must wait until everybody who read it has contributed. With --why-topo the depth-first order
    that does not wait stands beside the right one, with the wrong gradient that it gives.

    Examples:
      gradcli trace "(x*y+x)**2" --at x=2,y=3
      gradcli trace "h = x**2; h*sin(h)" --at x=2 --why-topo
      gradcli trace "sin(x)*x" --at x=2 --style torch
      gradcli trace loss.grad --format json
    """
    source, told = evaluation(output, script, at=at, wrt=wrt, dtype=dtype, backend=backend, limit=limit)
    result = calculator.trace(source, **told, why_topo=why_topo, torch=style == "torch")
    output.emit(
        View(
            document=lambda look: listing.trace(result, look),
            payload=lambda: machine.trace("trace", result),
            lines=lambda: machine.trace_lines("trace", result),
            tidy=lambda: listing.tidy(result),
            diagnostics=result.diagnostics,
        )
    )
    return 0


WHY = Option("--why-topo", kind="flag", help="Show the naive depth-first order beside the right one.")
STYLE = Option("--style", choices=("gradcli", "torch"), default="gradcli", help="Names of nodes: ours, or PyTorch's.")
DECLARATION = Declaration(trace, (SCRIPT,), (*EVALUATION, WHY, STYLE, *OUTPUT))
