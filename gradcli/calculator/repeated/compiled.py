"""A script as a Python function: compiled once for each combination of shapes, then called at one point or at many."""

from __future__ import annotations

from _thread import RLock
from functools import partial, wraps

from gradcli.base.diagnostics import error, pointing_into, visible
from gradcli.calculator.answers import ask_hessian, ask_jacobian, hessian_again
from gradcli.calculator.notes.convention import conjugated
from gradcli.calculator.questions import (
    gradient_question,
    hessian_question,
    jacobian_question,
    prepare,
    value_question,
)
from gradcli.calculator.repeated.argument_shapes import alike, equal, filled, places, refuse_unknown, spread
from gradcli.calculator.repeated.blocks import PointPlans
from gradcli.calculator.repeated.prepared import PreparedScript
from gradcli.language.limits import limits_of
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering.names import shape_of
from gradcli.lowering.points import array_of, read_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from gradcli.base.results.calculations import Hessian, Jacobian, Value
    from gradcli.base.results.plan_reports import PlanReport
    from gradcli.language.limits import LimitsLike
    from gradcli.lowering import Lowered

    Method = TypeVar("Method", bound=Callable[..., Any])

SETTLED = 2  # calls with scalars, after which generating straight-line code pays
MOST_KEPT = 64  # combinations of shapes and static values that stay compiled
_keeping = RLock()


def unnamed(function: CompiledScript, values: Sequence[Any]) -> TypeError:
    """The error for arguments without names."""
    names = prepare(function.source, {}, function.wrt, function.limits).program.leaves
    shown = ", ".join([f"{name}={value!r:.40}" for name, value in zip(names, values, strict=False)])
    return TypeError(f"arguments are named, by the leaves of the script: write ({shown or 'x=...'})")


def named(method: Method) -> Method:
    """A method that takes named arguments alone, and says so."""

    @wraps(method)
    def called(self: CompiledScript, /, *values: Any, **arguments: Any) -> Any:
        if values:
            raise unnamed(self, values)
        return method(self, **arguments)

    return called  # type: ignore[return-value]


class CompiledScript:
    """A script that is compiled once for each combination of shapes and static values."""

    def __init__(
        self,
        script: str | Source,
        wrt: Sequence[str] | None = None,
        dtype: str = "float64",
        backend: str = "auto",
        limits: LimitsLike = None,
        relax: bool = False,
    ) -> None:
        self.source = script if isinstance(script, Source) else Source(script)
        self.wrt = wrt if wrt is None or isinstance(wrt, str) else tuple(wrt)
        self.dtype = dtype
        self.backend = backend
        self.limits = limits_of(limits)
        self.relax = relax
        self._kept: dict[Any, PreparedScript] = {}
        self._recent: dict[
            str, tuple[PreparedScript, dict[str, Any]]
        ] = {}  # the last one of a kind that has no statics
        self._calls: dict[str, int] = {}
        self._point_plans = PointPlans(backend, dtype)
        self._value: Callable[..., Any] = self._careful_value
        with pointing_into(self.source):
            parse(self.source, self.limits)

    def __repr__(self) -> str:
        return f"<compiled {visible(self.source.text, 60)!r}>"

    def __call__(self, /, *values: Any, **leaves: Any) -> Value | tuple[Value, ...]:
        """The value at a point; a tuple for several outputs. Raises GradcliError as `calculator.evaluate` does."""
        if values:
            raise unnamed(self, values)
        value: Value | tuple[Value, ...] = self._value(**leaves)
        return value

    def _careful_value(self, /, **leaves: Any) -> Value | tuple[Value, ...]:
        """The value for any arguments, by a prepared question."""
        question, results = self._found("value", value_question, leaves)
        if self._calls.get("_value", 0) < SETTLED:
            self._specialise("_value", question, [None], CompiledScript._careful_value)
        return tuple(results) if question.lowered.several else results[0]

    @named
    def value_and_grad(self, /, **leaves: Any) -> tuple[Value, dict[str, Value]]:
        """The value and the gradient in every leaf of `wrt` at one point; the output must be a scalar (else GC307).

        >>> f = CompiledScript("sum((A@w)**2)", wrt=("w",))
        >>> f.value_and_grad(A=[[1, 2], [3, 4]], w=[1, 0])
        (10.0, {'w': array([20., 28.])})
        """
        recent = self._recent.get("grad")
        again = None if recent is None else recent[0].run_again(leaves, self.backend, self.dtype)
        if recent is not None and again is not None:
            return again[0], dict(zip(recent[0].names, again[1:], strict=True))
        question, results = self._found("grad", _gradient, leaves)
        value, gradient = results[0], dict(zip(question.names, results[1:], strict=True))
        if self.dtype == "complex128":
            return conjugated(value, gradient)
        if self._calls.get("value_and_grad", 0) < SETTLED:
            self._specialise("value_and_grad", question, [None, *question.names], CompiledScript.value_and_grad)
        return value, gradient

    def _specialise(
        self, name: str, question: PreparedScript, result: Sequence[str | None], careful: Callable[..., Any]
    ) -> None:
        """At the second call with scalars, replace a method of this instance by straight-line code.

        Calls with floats then run only that code, which passes other calls to `careful`. Long code is made in a thread.
        """
        lowered = question.lowered
        plain = self.dtype == "float64" and self.backend in ("auto", "math") and question.tape.scalar
        if not plain or lowered.program.statics or lowered.several:
            return
        self._calls[name] = self._calls.get(name, 0) + 1
        if self._calls[name] < SETTLED:
            return
        from gradcli.execution.emit_python import PIECE, straight
        from gradcli.execution.generated import in_background

        def rest(*values: Any, **arguments: Any) -> Any:
            return careful(self, *values, **{leaf: value for leaf, value in arguments.items() if value is not None})

        leaves = lowered.program.leaves
        defaults = {name: None if leaf.default is None else float(leaf.default) for name, leaf in leaves.items()}

        def generate() -> None:
            code = straight(question.tape, defaults, result, rest)
            if code is not None:
                code.__name__, code.__doc__ = careful.__name__, careful.__doc__
                code.__qualname__ = careful.__qualname__  # what an error of Python names
                setattr(self, name, code)

        if len(question.tape.nodes) <= PIECE:
            generate()
        else:
            in_background(generate)

    @named
    def at_points(
        self, /, *, shared: Sequence[str] = (), gradient: bool = True, out: Any = None, **leaves: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Values and gradients at many points: the first axis of each leaf counts points.

        All points share the leaves named in `shared`, and those with one number as their value. Values and gradients
        have an axis of n points before the shape of the output or of the leaf. With `gradient=False` the output may be
        an array, and there are no gradients. `out`, a pair like the result, is filled and returned instead of new
        arrays.

        Raises GradcliError if the numbers of points differ, or `out` cannot hold the results.

        >>> values, gradient = CompiledScript("sin(x)*y").at_points(x=[0.0, 0.0], y=[1.0, 2.0])
        >>> gradient["x"]
        array([1., 2.])
        """
        columns, batched = self._columns(leaves, shared)
        counts = {name: column.shape[0] for name, column in columns.items() if name in batched}
        if len(set(counts.values())) != 1:
            phrase = ", ".join(f"{visible(name)}: {n}" for name, n in counts.items())
            raise error(
                "GC332",
                f"the leaves have different numbers of points ({phrase})" if counts else "no leaf has points",
                help="name what all points share, such as shared=('W',)",
            )
        count = next(iter(counts.values()))
        if not count:
            raise error("GC332", "the leaves hold no points")
        first = {name: column[0] if name in batched else column for name, column in columns.items()}
        kind, make = ("grad", _gradient) if gradient else ("value", value_question)
        question, _ = self._question(kind, make, first)
        lowered = question.lowered
        if lowered.several:
            raise error("GC307", "several outputs at many points", help="stack them in one array: [a, b]")
        names = lowered.program.leaves
        values = {**question.values(first), **{k: v for k, v in columns.items() if k in names}}
        shapes = [lowered.program.outputs[0].type.shape, *(names[name].node.type.shape for name in question.names)]
        used = [name for name in batched if name in names]
        room = None if out is None else places(out, question.names, count, shapes, self.dtype)
        results = self._point_plans.at_all(question, values, used, count, room, shapes)
        if self.dtype == "complex128" and gradient:
            value, slopes = conjugated(results[0], dict(zip(question.names, results[1:], strict=True)))
            results = [value, *slopes.values()]
        full = [spread(value, count, shape) for value, shape in zip(results, shapes, strict=True)]
        if self.dtype == "float32":  # numbers that no point enters come as Python's
            kinds = [node.type.kind for node in question.tape.outputs]
            full = [
                part.astype("float32", copy=False) if kind == "float" else part
                for part, kind in zip(full, kinds, strict=True)
            ]
        result = full[0], dict(zip(question.names, full[1:], strict=True))
        return result if room is None else filled(out, room, result)

    @staticmethod
    def _columns(leaves: Mapping[str, Any], shared: Sequence[str]) -> tuple[dict[str, Any], set[str]]:
        """Every value as an array, and the names of those whose first axis counts points."""
        point = read_point(leaves)[0]
        unknown = [name for name in shared if name not in point]
        if unknown:
            raise error("GC206", f"`{visible(unknown[0])}` is shared, but it has no value here")
        for name, value in point.items():
            shape_of(value, name)  # refuses rows of different lengths
        columns = {name: array_of(value) for name, value in point.items()}
        return columns, {name for name, column in columns.items() if name not in shared and column.shape}

    @named
    def hessian(self, /, *, sparse: bool | None = None, **leaves: Any) -> Hessian:
        """Value, gradient and second derivatives at one point; see `calculator.hessian`.

        >>> f = CompiledScript("sum((x[1:] - x[:-1]**2)**2)")
        >>> f.hessian(sparse=True, x=[1.0, 1.0, 1.0]).hessian["x"]["x"].toarray()
        array([[ 8., -4.,  0.],
               [-4., 10., -4.],
               [ 0., -4.,  2.]])
        """
        kind = f"hessian {sparse}"
        recent = self._recent.get(kind)
        if recent is not None and self.backend in ("auto", "numpy"):
            result = hessian_again(recent[0], leaves, self.dtype)
            if result is not None:
                return result
        question, point = self._question(kind, partial(hessian_question, sparse=sparse), leaves)
        return ask_hessian(question, point, self.dtype, self.backend, again=True)

    @named
    def jacobian(self, /, *, sparse: bool | None = None, **leaves: Any) -> Jacobian:
        """All first derivatives of the outputs at one point; see `calculator.jacobian`.

        >>> CompiledScript("[x*y, x**2]").jacobian(x=2, y=3).jacobian
        {'x': array([3., 4.]), 'y': array([2., 0.])}
        """
        question, point = self._question(f"jacobian {sparse}", partial(jacobian_question, sparse=sparse), leaves)
        return ask_jacobian(question, point, self.dtype, self.backend, again=True)

    @named
    def plan(self, /, **leaves: Any) -> PlanReport:
        """How value and gradient are computed at points of these shapes.

        For an output that is not a scalar, only the value is computed.

        >>> CompiledScript("sum(exp(x))").plan(x=[0.5, 1.5]).order[0].operation
        'exp'
        """
        from gradcli.calculator.repeated.planning import plan_of, plan_question

        question, point = self._question("plan", plan_question, leaves)
        return plan_of(question, point, self.dtype, self.backend)

    def _found(
        self, kind: str, make: Callable[[Lowered], PreparedScript], leaves: Mapping[str, Any]
    ) -> tuple[PreparedScript, list[Any]]:
        """A question at a point, and its result."""
        question, point = self._question(kind, make, leaves)
        return question, question.run_planned(question.values(point), self.backend, self.dtype)

    def _question(
        self, kind: str, make: Callable[[Lowered], PreparedScript], leaves: Mapping[str, Any]
    ) -> tuple[PreparedScript, dict[str, Any]]:
        """The compiled form for the shapes of these values; static values must agree too."""
        recent = self._recent.get(kind)
        if recent is not None and alike(leaves, recent[1]):
            return recent[0], dict(leaves)
        point = read_point(leaves)[0]
        key = (kind, *((name, shape_of(value, name)) for name, value in sorted(point.items())))
        question = self._kept.get(key)
        if question is not None:
            statics = question.lowered.program.statics
            if all(equal(point.get(name, value), value) for name, value in statics.items()):
                if not statics:
                    self._recent[kind] = question, {name: shape_of(value, name) for name, value in point.items()}
                return question, point
        question = make(prepare(self.source, point, self.wrt, self.limits, "skipped", self.relax, self.dtype))
        refuse_unknown(point, question.lowered)
        with _keeping:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = question
        return question, point


def _gradient(lowered: Lowered) -> PreparedScript:
    return gradient_question(lowered, instead="jacobian, or at_points for many points")
