"""One call per question: a script and a point go in, a value, gradient, Hessian, Jacobian or trace comes out."""

from __future__ import annotations

from gradcli.calculator.answers import ask_gradient, ask_hessian, ask_jacobian, ask_value, diagnose_answer, point_of
from gradcli.calculator.questions import (
    Question,
    gradient_question,
    hessian_question,
    jacobian_question,
    leaf_names,
    prepare,
    scalar_output,
    value_question,
)
from gradcli.points import read_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.execution.results import Evaluation, Gradient, Hessian, Jacobian, Trace
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source

    Point = Mapping[str, Any] | Sequence[str]


def evaluate(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: Limits | None = None,
) -> Evaluation:
    """The value of a script at a point. Raises GradcliError for what cannot be evaluated.

    >>> evaluate("hypot(x, y)", at={"x": 3, "y": 4}).value
    5.0
    """
    point, notes = read_point(at, limits)
    lowered = prepare(script, point, wrt, limits)
    return ask_value(value_question(lowered), point, dtype, backend, notes)


def grad(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: Limits | None = None,
    order: int = 1,
) -> Gradient:
    """Value and gradient of a scalar script at a point; with `order` also the derivatives 1..order of scalar leaves.

    >>> grad("(x*y+x)**2", at={"x": 2, "y": 3}).gradient
    {'x': 64.0, 'y': 32.0}
    """
    point, notes = read_point(at, limits)
    question = gradient_question(prepare(script, point, wrt, limits), order)
    return ask_gradient(question, point, dtype, backend, notes, order)


def hessian(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: Limits | None = None,
) -> Hessian:
    """Value, gradient and second derivatives of a scalar script; `hessian[a][b]` has shape a + shape b."""
    point, notes = read_point(at, limits)
    question = hessian_question(prepare(script, point, wrt, limits))
    return ask_hessian(question, point, dtype, backend, notes)


def jacobian(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: Limits | None = None,
) -> Jacobian:
    """All first derivatives of one or several outputs; each has output shape + leaf shape."""
    point, notes = read_point(at, limits)
    question = jacobian_question(prepare(script, point, wrt, limits))
    return ask_jacobian(question, point, dtype, backend, notes)


def trace(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: Limits | None = None,
    why_topo: bool = False,
) -> Trace:
    """The forward and the backward pass of a scalar script, step by step; see `tracing`."""
    from gradcli.calculator.tracing import trace_passes

    point, notes = read_point(at, limits)
    lowered = prepare(script, point, wrt, limits)
    question = Question(lowered, leaf_names(lowered), [scalar_output(lowered)])
    values = question.values(point)
    found = question.run(values, backend, dtype)
    diagnostics = diagnose_answer(question, values, found, point, notes, dtype)
    return trace_passes(
        lowered, question.names, values, point_of(lowered, values), dtype, backend, why_topo, diagnostics
    )
