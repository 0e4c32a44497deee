"""Declare an operation of your own: by a formula, or by its value and its partial derivatives.

The result is a `Primitive`, the record that gradcli's own operations are. Scripts of the same process know it at once,
those of a command with `--import FILE`. Put it in a module and name the module under the entry point group
`gradcli.operations`, and every command knows it.
"""

from __future__ import annotations

import re
from functools import cache
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import GradcliError, error, visible
from gradcli.execution.evaluate import evaluate
from gradcli.graph.domain import REAL, Interval
from gradcli.graph.domain import Closed as ClosedInterval
from gradcli.graph.node import CONSTANT, DATA, LEAF, is_reader, reachable
from gradcli.graph.primitive import REQUIRED, Closed, Kink, Operand, Primitive, composite
from gradcli.language import syntax
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.unparse import unparse
from gradcli.lowering import LoweringMode, lower
from gradcli.lowering.assigned_names import CONSTANTS, DERIVATIVES
from gradcli.lowering.shapes.open_shapes import OpenShapes
from gradcli.primitives import declare, declared, forget
from gradcli.primitives.sample_points import sample_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gradcli.graph.node import Node
    from gradcli.graph.program import Program
    from gradcli.graph.types import Shape

__all__ = ["operation"]

Point = dict[str, float]
Bounds = tuple[float, float] | tuple[float, float, tuple[int, ...]]

STEPS = (2e-3, 1e-5, 1e-7)  # of differences, relative; the last ones for values that oscillate
CLOSE, ROUGH = 1e-9, 1e-6  # relative errors of a value, and of a partial, that are not held against a declaration
SHARP = 1e-2  # a relative error bound with which no further steps are tried
OUT = "out"  # what a partial derivative calls the value of the operation
WORDS = (*CONSTANTS, *DERIVATIVES, "load", "True", "False", "None", OUT)  # names with a meaning of their own


def operation(
    form: str,
    formula: str = "",
    *,
    summary: str = "",
    value: Callable[..., Any] | None = None,
    partials: Mapping[str, str] | None = None,
    symbolic: Callable[..., Any] | None = None,
    ball: Callable[..., Any] | None = None,
    domain: Sequence[str] = (),
    kinks: Mapping[str, str] | None = None,
    sample: Sequence[Bounds] = (),
    examples: Mapping[str, float] | None = None,
) -> Primitive:
    """An operation for scripts and tensors, declared by a formula, or by a value and partial derivatives.

    `form` is how a script calls it, such as "gated(x, b=1)"; a default is a number.

    With a `formula`, an expression or short script of the language in these names, everything else follows: value,
    derivatives of every order, exact readings. A `value` and `partials` beside it compute the floats where the formula
    overflows or loses digits.

    Without a formula, `value` and `partials` are needed, and the operation is applied entry by entry. `value` computes
    floats: either `value(x, ...)` on NumPy arrays, such as a function of SciPy, or `value(xp, x, ...)` with NumPy's
    functions in `xp`, which then also runs on Python's floats, CuPy and JAX. `partials` gives the derivative with
    respect to each argument as text, in the arguments, `out` (the value) and any operation, this one included.
    `symbolic(sp, x, ...)` is the value in SymPy and `ball(fl, x, ...)` in balls of python-flint (`fl.integer(2)`,
    `x.exp()`); without `ball`, `check` compares with finite differences. Write them independently of `value`: what is
    written twice can be checked.

    `domain` is an interval for each argument, such as "(0, inf)". `kinks` maps an expression that is zero where the
    operation is not smooth to the derivative that is taken there, in words. `sample` gives each argument's bounds
    (low, high), or (low, high, shape) where it is an array: tests draw from it. `examples` maps calls to values.

    The declaration is judged: at points of `sample`, else of `domain`, a value is compared with the formula, and
    partials with differences of the value. A name that was declared before in this process gets the new meaning.

    Raises GradcliError GC216 where these do not fit together, with the point, and for a name of gradcli's own.

    >>> import gradcli
    >>> gated = gradcli.operation("gated(x, b=1)", "x*sigmoid(b*x)", summary="A gate.", sample=[(-2, 2), (0.5, 2)])
    >>> gated
    <composite gated>
    >>> gradcli.grad("gated(x)", at={"x": 0}).gradient
    {'x': 0.5}
    >>> from gradcli import eager as torch
    >>> x = torch.tensor([0.0, 1.0], requires_grad=True)
    >>> gated(x).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.9277])
    """
    name, parameters = _read_form(form)
    before = declared.get(name)
    try:
        fields: dict[str, Any] = {
            "parameters": parameters,
            "arity": len(parameters),
            "package": "",
            "symbolic": symbolic,
            "ball": ball,
            "domain": [_interval(name, text) for text in domain] or [REAL] * len(parameters),
            "kinks": [_kink(name, parameters, text, taken) for text, taken in (kinks or {}).items()],
            "sample": [_sample(bounds) for bounds in sample],
            "examples": list((examples or {}).items()),
        }
        definition = OperationFormula(name, formula, parameters) if formula else None
        impl = None if value is None else _impl(name, value, len(parameters))
        if definition is not None and (impl is not None or partials is not None) and not definition.pointwise:
            message = "a formula of arrays has a value and derivatives of its own"
            raise _unfit(name, message, "leave out value and partials")
        if partials is not None and impl is not None:
            fields |= {"partials": _partials(name, parameters, partials), "pointwise": True}
            written = formula or f"{name}({', '.join(parameters)})"
            fields |= {"impl": impl, "definition": definition, "formula": written}
            primitive = Primitive(name, "elementwise", summary or written, **fields)
        elif definition is None or partials is not None:
            raise _unfit(name, "it needs a formula, or a value and partials", 'such as partials={"x": "cos(x)"}')
        else:
            fields["pointwise"] = definition.pointwise
            primitive = composite(name, summary or formula, definition=definition, impl=impl, formula=formula, **fields)
        declare(primitive)
        if impl is not None and declared.get(name) is primitive:
            _judge(primitive, formula, partials or {}, kinks or ())
        return primitive
    except GradcliError as problem:
        if declared.get(name) is not before:
            forget(name) if before is None else declare(before)
        first = problem.diagnostics[0]
        if first.code == "GC216":
            raise
        raise _unfit(name, first.message, first.help) from None


def _judge(primitive: Primitive, formula: str, partials: Mapping[str, str], kinks: Iterable[str]) -> None:
    """Raise GC216, with the point, where a value is not that of the formula, or a partial not that of differences."""
    import numpy as np

    name, arguments = primitive.name, primitive.argument_names()
    call = f"{name}({', '.join(arguments)})"

    @cache
    def program(text: str) -> Program:
        return lower(parse(text)).program

    def value_at(point: Point, text: str = call) -> float:
        read = program(text)
        (value,) = evaluate(read, {leaf: point[leaf] for leaf in read.leaves})
        return float(np.asarray(value).real)

    def refuse(what: str, stated: float, known: float, source: str, point: Point) -> GradcliError:
        where = ", ".join(f"{argument} = {x:.6g}" for argument, x in point.items())
        return _unfit(name, f"{what} is {stated:.9g} at {where}, and {source} {known:.9g}", "correct one of them")

    points = [point for point in sample_points(primitive) if isfinite(value_at(point))]
    if not points:
        raise _unfit(name, "its value is not finite at any sample point", "say by domain or sample where it has values")
    for point in points:
        value = value_at(point)
        if formula and abs(value - (known := value_at(point, formula))) > CLOSE * max(abs(value), abs(known), CLOSE):
            raise refuse("its value", value, known, "its formula gives", point)
        for argument, text in partials.items():

            def along(x: float, text: str = call, point: Point = point, argument: str = argument) -> float:
                return value_at({**point, argument: x}, text)

            def stated(x: float, partial: str = f"{OUT} = {call}\n{text}", f: Callable[..., float] = along) -> float:
                return f(x, partial)

            x = point[argument]
            beside = x + max(1.0, abs(x)) * STEPS[0] / 3
            slope = _contradiction(stated(x), along, x, kinks)
            if slope is not None and _contradiction(stated(beside), along, beside, kinks) is not None:
                what = f"its partial with respect to {argument}, {text},"
                raise refuse(what, stated(x), slope, "differences of its value give", point)


def _contradiction(stated: float, f: Callable[..., float], x: float, kinks: Iterable[str]) -> float | None:
    """The slope of f at x by differences where it is not the stated one and no kink lies near, else None."""
    measured = [(inf, stated, 0.0)]  # relative error bound, slope, error bound
    for step in STEPS:
        size = step * max(1.0, abs(x))
        places = [x + k * j * size for k in (1, 2, 4) for j in (-2, -1, 1, 2)]
        values = [f(place) for place in places]
        hidden = any(len({f(place, kink) > 0 for place in places}) > 1 for kink in kinks)
        if hidden or (step < STEPS[0] and len({*values}) < len({*places})):  # by a kink, or by rounding
            continue
        slopes = [
            (left - 8 * near_left + 8 * near_right - right) / (12 * k * size)
            for k, (left, near_left, near_right, right) in zip(
                (1, 2, 4), (values[:4], values[4:8], values[8:]), strict=True
            )
        ]
        slope = slopes[0]
        error_bound = 40 * sum(abs(other - slope) for other in slopes) + ROUGH * max(abs(slope), abs(f(x)))
        if isfinite(error_bound):
            measured.append((error_bound / (abs(slope) or 1.0), slope, error_bound))
        if min(measured)[0] < SHARP:
            break
    _, slope, error_bound = min(measured)
    return None if abs(stated - slope) <= error_bound else slope


def _unfit(name: str, message: str, help: str | None) -> GradcliError:
    return error("GC216", f"operation {visible(name)}: {message}", help=help)


def _read_form(form: str) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a form such as `gated(x, b=1)`."""
    help = 'write it as a script calls it, such as "gated(x, b=1)"'
    try:
        statement = parse(form).statements[-1]
    except GradcliError:
        raise error("GC216", f"`{visible(form)}` is not the form of a call", help=help) from None
    call = statement.value if isinstance(statement, syntax.ExpressionStatement) else None
    if not isinstance(call, syntax.Call) or not all(isinstance(argument, syntax.Name) for argument in call.args):
        raise error("GC216", f"`{visible(form)}` is not the form of a call", help=help)
    name = call.function.id
    parameters: dict[str, Any] = {argument.id: REQUIRED for argument in call.args if isinstance(argument, syntax.Name)}
    for keyword in call.keywords:
        try:
            parameters[keyword.name] = float(unparse(keyword.value))
        except ValueError:
            raise _unfit(name, f"the default of `{keyword.name}` is not a number", help) from None
    if not parameters or len(parameters) != len(call.args) + len(call.keywords):
        raise _unfit(name, "it needs arguments with names of their own", help)
    for word in (name, *parameters):
        if word in WORDS:
            raise _unfit(name, f"`{word}` is a word of the language", "choose another name")
    return name, {key: int(x) if x is not REQUIRED and x.is_integer() else x for key, x in parameters.items()}


def _partials(name: str, parameters: Mapping[str, Any], partials: Mapping[str, str]) -> Callable[..., Any]:
    """The rule of the partial derivatives, which are written as text."""
    for wrong in sorted({*partials} ^ {*parameters}):
        message = f"partials has no `{wrong}`" if wrong in parameters else f"partials names `{visible(wrong)}`"
        raise _unfit(name, message, f"its arguments are {', '.join(parameters)}: give one partial for each")
    rules = [OperationFormula(name, partials[argument], (*parameters, OUT)) for argument in parameters]
    for argument, rule in zip(parameters, rules, strict=True):
        if not rule.pointwise:
            raise _unfit(
                name,
                f"the partial with respect to {argument} is not computed entry by entry",
                "declare it by a formula",
            )
    return lambda *xs, out: tuple([rule(*xs, out) for rule in rules])


def _impl(name: str, value: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """The rule `impl(xp, *xs)` of a value, whichever of the two forms it has."""
    import inspect

    if not callable(value):
        raise _unfit(name, f"its value is a {type(value).__name__}, not a function", "a text is a formula: formula=...")
    try:
        names: Mapping[str, inspect.Parameter] = inspect.signature(value).parameters
    except (TypeError, ValueError):  # functions in C have none, ufuncs say it otherwise
        names = {}
    skipped = next(iter(names), None) == "xp"
    free = any(taken.kind in (taken.VAR_POSITIONAL, taken.VAR_KEYWORD) for taken in names.values())
    most = getattr(value, "nin", arity if free or not names else len(names) - skipped)
    least = most if free or not names else sum(taken.default is taken.empty for taken in names.values()) - skipped
    if not least <= arity <= most:
        message = f"its value takes {least if arity < least else most} arguments, its form {arity}"
        raise _unfit(name, message, "give both the same arguments")
    if skipped:
        return value

    def rule(xp: Any, *xs: Any) -> Any:
        if any(hasattr(x, "__array_interface__") for x in xs):
            return _computed(name, value, xs)
        return float(_computed(name, value, _scalars(xs)))

    return rule


def _scalars(xs: Sequence[Any]) -> list[Any]:
    """Python's numbers as NumPy's; anything else has no value that is written for NumPy."""
    import numpy as np

    from gradcli.execution.namespaces import Unavailable

    if not all(isinstance(x, (int, float, complex)) for x in xs):
        raise Unavailable("the value of an operation from outside that is written for NumPy")
    return [np.asarray(x).astype(complex if isinstance(x, complex) else float)[()] for x in xs]


def _computed(name: str, value: Callable[..., Any], xs: Sequence[Any]) -> Any:
    """What a value returns; raises GradcliError GC216 where that is no number for every entry of the operands."""
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            result = value(*xs)
    except Exception as problem:
        message = f"its value raised {type(problem).__name__}: {visible(str(problem))}"
        raise _unfit(name, message, "call the function alone to see where") from problem
    shape = np.broadcast_shapes(*map(np.shape, xs))
    kinds = "biufc" if any(map(np.iscomplexobj, xs)) else "biuf"
    array = np.asarray(result)
    if array.dtype.kind not in kinds or array.shape != shape:
        message = f"its value returns {type(result).__name__}" + (
            f" of shape {array.shape}, its operands have shape {shape}" if array.dtype.kind in kinds else ""
        )
        raise _unfit(name, message, "it returns a real number for each entry of its operands")
    return result


def _interval(name: str, text: str) -> Interval:
    match = re.fullmatch(r"\s*([\[(])\s*([^,]+),([^,]+?)\s*([\])])\s*", text)
    try:
        if match is not None:
            return Interval(float(match[2]), float(match[3]), match[1] == "(", match[4] == ")")
    except ValueError:
        pass
    raise _unfit(name, f"`{visible(text)}` is not an interval", 'write one such as "(0, inf)" or "[-1, 1]"')


def _kink(name: str, parameters: Mapping[str, Any], text: str, taken: str) -> Kink:
    surface = OperationFormula(name, text, parameters)
    return Kink(surface, f"{text} = 0", taken)


def _sample(bounds: Bounds) -> Any:
    interval = ClosedInterval(bounds[0], bounds[1])
    return interval if len(bounds) == 2 else (interval, tuple(bounds[2]))


class OperationFormula:
    """A text of the language as a function of operands: nodes, or eager tensors.

    It is lowered once for numbers where it works entry by entry, else once for each tuple of shapes, and its steps are
    repeated on the operands.
    """

    def __init__(self, name: str, text: str, parameters: Iterable[str]) -> None:
        self.name = name
        self.text = text
        self.names = tuple(parameters)
        self._known: dict[tuple[Shape, ...], list[Node]] = {}
        self._lowering = False
        for node in syntax.nodes_of(parse(text)):
            if isinstance(node, syntax.Call) and node.function.id == name and OUT not in self.names:
                raise _unfit(name, "its formula calls itself", None)
        self.pointwise = self._works_entry_by_entry()

    def _works_entry_by_entry(self) -> bool:
        """Whether it holds operations on numbers only; a partial of operations that are not known yet is taken to."""
        try:
            steps = self._steps(((),) * len(self.names))
        except GradcliError as problem:
            code = problem.diagnostics[0].code
            if code == "GC201" and OUT in self.names:
                return True
            if code.startswith("GC3") or code == "GC201":
                return False
            raise
        return all(node.primitive.pointwise or not node.args for node in steps)

    def _steps(self, shapes: tuple[Shape, ...]) -> list[Node]:
        known = self._known.get(shapes)
        if known is None:
            if self._lowering:
                raise _unfit(self.name, "its formula calls itself", None)
            self._lowering = True
            try:
                known = self._lowered(shapes)
            finally:
                self._lowering = False
            self._known[shapes] = known
        return known

    def _lowered(self, shapes: tuple[Shape, ...]) -> list[Node]:
        source = Source(self.text, f"<formula of {self.name}>")
        lowered = lower(
            parse(source), shapes=Given(dict(zip(self.names, shapes, strict=True))), mode=LoweringMode(loops="unroll")
        )
        for leaf in lowered.program.leaves:
            if leaf not in self.names:
                allowed = ", ".join(self.names)
                raise _unfit(self.name, f"`{visible(leaf)}` is not one of its arguments", f"they are {allowed}")
        if len(lowered.program.outputs) != 1:
            raise _unfit(self.name, "its formula has several results", "declare one operation for each")
        steps = reachable(list(lowered.program.outputs))
        if any(node.primitive is DATA or is_reader(node) for node in steps):
            raise _unfit(self.name, "its formula reads an array of constants", "make it an argument")
        return steps

    def __call__(self, *xs: Any) -> Any:
        operands = dict(zip(self.names, xs, strict=True))
        first: Any = next(x for x in xs if isinstance(x, Operand) and not isinstance(x, Closed))
        shapes = tuple([tuple(x.shape) if isinstance(x, Operand) and not self.pointwise else () for x in xs])
        values: dict[Node, Any] = {}
        result: Any = None
        for node in self._steps(shapes):
            if node.primitive is LEAF:
                result = operands[node.params["name"]]
            elif node.primitive is not CONSTANT:
                result = node.primitive(*[values[arg] for arg in node.args], **node.params)
            elif self.pointwise and not isinstance(node.params["value"], str):
                result = node.params["value"]  # the operand beside it gives it a shape
            else:
                result = first.builder.constant(node.params["value"], first.shape if self.pointwise else node.shape)
            values[node] = result
        if not isinstance(result, Operand) or isinstance(result, Closed):
            result = first.builder.lifted(result, first.shape)
        return result


class Given(OpenShapes):
    """The shapes of the operands, for the names of a formula."""

    __slots__ = ("shapes",)

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self.shapes = shapes

    def shape(self, name: str) -> Shape:
        return self.shapes.get(name, ())
