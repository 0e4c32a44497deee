"""The calculator: one function each for values, gradients, Hessians, Jacobians, formulas, traces and graphs.

Every function takes the script (a text or a `Source`), and by keyword the point `at` (a mapping of numbers, nested
lists or arrays, or texts as for `--at`), the leaves `wrt` to differentiate with respect to (default: all that are not
const), `dtype` ("float64", "float32", "complex128"), `backend` ("auto", "numpy", "cupy", "jax") and `limits`.

Many points (`along`, `sweeping`, `repeated`) stand here and not in `execution`: they read lowered scripts, and lowering
computes constants by `execution`.
"""

from __future__ import annotations

from gradcli.calculator.answers import (
    ask_gradient,
    ask_hessian,
    ask_jacobian,
    ask_value,
    diagnose_answer,
    point_of,
)
from gradcli.calculator.questions import (
    gradient_question,
    hessian_question,
    jacobian_question,
    leaf_names,
    prepare,
    scalar_output,
    value_question,
)
from gradcli.calculator.repeated.prepared import PreparedScript
from gradcli.language.limits import limits_of
from gradcli.lowering import unused_values
from gradcli.lowering.points import dtype_at, read_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.base.results.calculations import Evaluation, Gradient, Hessian, Jacobian, Trace
    from gradcli.base.results.findings import Explanation
    from gradcli.base.results.graph_vertices import Graph
    from gradcli.base.results.plan_reports import PlanReport
    from gradcli.language.limits import LimitsLike
    from gradcli.language.source import Source
    from gradcli.lowering import Lowered

    Point = Mapping[str, Any] | Sequence[str]


def evaluate(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    relax: bool = False,
    exact: bool = False,
) -> Evaluation:
    """The value of a script at a point: a float for a scalar, else an array; a tuple for several outputs.

    `relax` allows faster forms with larger rounding errors. With `exact`, if floats lost their digits, the result also
    has the exact value.

    Raises GradcliError if the script cannot be read or evaluated, with all errors of the script.

    >>> evaluate("hypot(x, y)", at={"x": 3, "y": 4}).value
    5.0
    """
    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype, relax)
    return ask_value(value_question(lowered), point, dtype, backend, notes, exact)


def grad(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    order: int = 1,
    relax: bool = False,
    exact: bool = False,
) -> Gradient:
    """Value and gradient of a scalar script at a point; with `order` also the derivatives 1..order of scalar leaves.

    The gradient with respect to a leaf has the shape of the leaf. `relax` allows faster forms with larger rounding
    errors. With `exact`, if floats lost their digits, the result also has the exact values.

    Raises GradcliError as `evaluate` does, GC307 if the output is not a scalar, GC209 if there is nothing to
    differentiate with respect to.

    >>> grad("(x*y+x)**2", at={"x": 2, "y": 3}).gradient
    {'x': 64.0, 'y': 32.0}
    >>> grad("x**3", at={"x": 2}, order=2).derivatives
    {'x': (12.0, 12.0)}
    """
    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype, relax)
    question = gradient_question(lowered, order)
    return ask_gradient(question, point, dtype, backend, notes, order, exact)


def hessian(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    sparse: bool | None = None,
) -> Hessian:
    """Value, gradient and second derivatives of a scalar script; `hessian[a][b]` has shape a + shape b.

    With `sparse`, blocks are CSR arrays of SciPy: a row for each entry of a, a column for each of b, and the entries
    that may differ from 0 by the structure of the script. By default a Hessian is sparse if a dense block would have
    too many entries.

    Raises GradcliError as `grad` does.

    >>> hessian("x**2*y", at={"x": 1, "y": 3}).hessian
    {'x': {'x': 6.0, 'y': 2.0}, 'y': {'x': 2.0, 'y': 0.0}}
    """
    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype)
    return ask_hessian(hessian_question(lowered, sparse), point, dtype, backend, notes)


def jacobian(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    sparse: bool | None = None,
) -> Jacobian:
    """All first derivatives of one or several outputs; each has the shape of the output, then that of the leaf.

    For several outputs the Jacobian is a tuple, with a table by leaf for each. `sparse` is as in `hessian`:
    arrays have a row for each entry of the output. Raises GradcliError as `evaluate` does.

    >>> jacobian("[x*y, x**2]", at={"x": 2, "y": 3}).jacobian
    {'x': array([3., 4.]), 'y': array([2., 0.])}
    """
    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype)
    return ask_jacobian(jacobian_question(lowered, sparse), point, dtype, backend, notes)


def trace(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    why_topo: bool = False,
    torch: bool = False,
    iteration: int | None = None,
    symbolic: bool = False,
) -> Trace:
    """The forward and the backward pass of a scalar script, step by step.

    The result is a `gradcli.base.results.calculations.Trace`. With `why_topo` it also has the depth-first order, which
    passes on cotangents before they are complete; with `torch`, nodes have PyTorch's names. Of a long loop it has the
    first and the last iteration, and iteration number `iteration`. With `symbolic`, local partials have formulas where
    possible.

    Raises GradcliError as `grad` does, and GC728 if no loop has that iteration.

    >>> found = trace("x*x + x", at={"x": 2})
    >>> [(step.text, step.value) for step in found.forward]
    [('x', 2.0), ('x*x', 4.0), ('x*x + x', 6.0)]
    >>> [contribution.accumulated for step in found.backward for contribution in step.contributions]
    [1.0, 1.0, 3.0, 5.0]
    """
    from gradcli.calculator.traces.shown_iterations import with_iterations
    from gradcli.calculator.traces.tracing import Tracer, in_torch_names

    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype)
    question = PreparedScript(lowered, leaf_names(lowered), [scalar_output(lowered)])
    values = question.values(point)
    results = question.run(values, backend, dtype)
    diagnostics = diagnose_answer(question, values, results, notes, dtype)
    at_point = point_of(lowered, values)
    shown, iterations = with_iterations(lowered, iteration)
    tracer = Tracer(shown, question.names, values, dtype, backend, iterations)
    passes = tracer.trace(at_point, diagnostics, why_topo=why_topo, fold=True, symbolic=symbolic)
    return in_torch_names(passes) if torch else passes


def plan(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
) -> PlanReport:
    """How value and gradient are computed in repeated evaluations; returns a PlanReport.

    For an output that is not a scalar, only the value is computed. Raises GradcliError as `evaluate` does.

    >>> plan("(x*y + x)**2", at={"x": 2, "y": 3}).runs
    'straight line'
    """
    from gradcli.calculator.repeated.planning import plan_of, plan_question

    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype)
    return plan_of(plan_question(lowered), point, dtype, backend, notes)


def why(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    tensor: str | None = None,
) -> Explanation:
    """Why the gradient of a scalar script is zero, NaN or huge at a point; for one leaf only, if `tensor` names it.

    Raises GradcliError as `grad` does, and GC206 if `tensor` is not a leaf.

    >>> [(one.reason, one.line) for one in why("x*detach(x - 1) + floor(y)", at={"x": 1, "y": 2.5}).findings]
    [('times-zero', 1), ('detached', 1), ('step-function', 1)]
    """
    from gradcli.calculator.script_reasons import explain
    from gradcli.calculator.traces.shown_iterations import to_explain
    from gradcli.calculator.traces.tracing import Tracer

    lowered, point, _, dtype = _prepared(script, at, wrt, limits, dtype)
    question = PreparedScript(lowered, leaf_names(lowered), [scalar_output(lowered)])
    values = question.values(point)
    shown, iterations = to_explain(lowered, values, dtype)
    at_point = point_of(lowered, values)
    result = Tracer(shown, question.names, values, dtype, backend, iterations).trace(at_point)
    return explain(shown, result, tensor, values, dtype)


def graph(
    script: str | Source,
    *,
    at: Point = (),
    wrt: Sequence[str] | None = None,
    dtype: str = "float64",
    backend: str = "auto",
    limits: LimitsLike = None,
    gradient: bool = False,
) -> Graph:
    """The graph of a script, as vertices and the vertices that they read; with `gradient`, also that of its gradient.

    If the point gives every leaf a value, vertices have values; for a scalar output also cotangents, and what each
    vertex sends back. Raises GradcliError as `evaluate` does, and as `grad` does for a gradient.

    >>> found = graph("x*y + x")
    >>> [(one.name, one.inputs) for one in found.vertices]
    [('x', ()), ('y', ()), ('mul', (0, 1)), ('add', (2, 0))]
    >>> graph("x*y", at={"x": 2, "y": 3}).vertices[0].cotangent
    3.0
    """
    from gradcli.calculator.traces.drawing import draw

    lowered, point, notes, dtype = _prepared(script, at, wrt, limits, dtype)
    known = {**lowered.values, **{name: value for name, value in point.items() if name in lowered.program.leaves}}
    return draw(lowered, point, point_of(lowered, known), dtype, backend, gradient, notes)


def _prepared(
    script: str | Source,
    at: Point,
    wrt: Sequence[str] | None,
    limits: LimitsLike,
    dtype: str = "float64",
    relax: bool = False,
) -> tuple[Lowered, dict[str, Any], tuple[Diagnostic, ...], str]:
    """A script as a program, the point, notes on it (files that were read, names that are not used), and the dtype."""
    known = limits_of(limits)
    point, notes = read_point(at, known)
    dtype = dtype_at(point, dtype)
    lowered = prepare(script, point, wrt, known, relax=relax, dtype=dtype)
    return lowered, point, (*notes, *unused_values(lowered, point)), dtype
