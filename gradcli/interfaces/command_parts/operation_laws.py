"""The laws of one operation, for `gradcli ops NAME --check`: each compares two readings of its declaration."""

from __future__ import annotations

import math
from itertools import islice

from gradcli.base.diagnostics import GradcliError, error
from gradcli.base.records import NamedTuple
from gradcli.interfaces.commands import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import gradcli as package
    from gradcli.graph.primitive import Primitive
    from gradcli.primitives import sample_points

    Point = dict[str, Any]
else:
    package, sample_points = room("package"), room("sample_points")

CLOSE = 1e-9  # relative


class Law(NamedTuple):
    """A law and what came of it: ok, FAIL, `?` where it could not be decided, `-` where it says nothing."""

    law: str
    result: str
    detail: str


def laws(primitive: Primitive) -> Iterator[Law]:
    """Every law; raises GC721 for an operation whose arguments have no names."""
    if primitive.parameters is None and primitive.kind != "elementwise":
        hint = "it takes operations that work entry by entry, and those declared by gradcli.operation"
        raise error("GC721", f"--check cannot call `{primitive.name}` by itself", help=hint)
    points = list(sample_points.sample_points(primitive))
    for name, law in LAWS.items():
        try:
            result, detail = law(primitive, points)
        except GradcliError as problem:
            result, detail = "FAIL", problem.diagnostics[0].message
        yield Law(name, result, detail)


def call_of(primitive: Primitive) -> str:
    return f"{primitive.name}({', '.join(primitive.argument_names())})"


def shown(point: Point) -> str:
    return ", ".join(f"{name} = {value:.6g}" if isinstance(value, float) else name for name, value in point.items())


def of_numbers(points: list[Point]) -> bool:
    """Whether the arguments are numbers, no arrays."""
    return all(isinstance(value, float) for value in points[0].values())


def values(primitive: Primitive, points: list[Point]) -> tuple[str, str]:
    """Every value at the sample points is finite."""
    for point in points:
        value = package.evaluate(call_of(primitive), at=point).value
        if not math.isfinite(flat_sum(value)):
            return "FAIL", f"{value} at {shown(point)}"
    return "ok", f"finite at {len(points)} points"


def flat_sum(value: Any) -> float:
    """The sum of a number's or an array's entries: it is finite where all of them are."""
    return float(value.sum()) if hasattr(value, "sum") else float(value)


def of_order(order: int) -> Callable[[Primitive, list[Point]], tuple[str, str]]:
    """The law that `check` passes the derivatives of an order, at a point and at three beside it."""

    def judged(primitive: Primitive, points: list[Point]) -> tuple[str, str]:
        names = primitive.argument_names()
        value = package.evaluate(call_of(primitive), at=points[0]).value
        if order > 1 and (hasattr(value, "shape") or not of_numbers(points)):
            return "-", "of functions of numbers only"
        scripts = [call_of(primitive)]
        for _ in range(order - 1):
            scripts = [f"grad({script}, {name})" for script in scripts for name in names]
        verdicts: dict[str, int] = {}
        for script in scripts[:4]:
            for point in islice(points, 2):
                for check in package.check(script, at=point, witnesses="none").checks:
                    verdicts[check.verdict] = verdicts.get(check.verdict, 0) + 1
                    if not check:
                        undecided = check.verdict == "INCONCLUSIVE" and "worst" not in check.evidence
                        result = "?" if undecided else "FAIL"  # differences contradict it
                        return result, f"{check.verdict} by {check.leaf} at {shown(point)}: {check.message}"
        return "ok", ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())

    return judged


def forward(primitive: Primitive, points: list[Point]) -> tuple[str, str]:
    """Forward mode gives what reverse mode gives."""
    if not of_numbers(points):
        return "-", "of functions of numbers only"
    for point in points:
        gradient: dict[str, Any] = package.grad(call_of(primitive), at=point).gradient
        for name, slope in gradient.items():
            tangent: Any = package.evaluate(f"jvp({call_of(primitive)}, {name}, 1)", at=point).value
            if not math.isclose(slope, tangent, rel_tol=CLOSE, abs_tol=1e-300):
                return "FAIL", f"by {name} at {shown(point)}: {tangent}, reverse mode {slope}"
    return "ok", f"equal at {len(points)} points"


def batched(primitive: Primitive, points: list[Point]) -> tuple[str, str]:
    """Many points at once give what one at a time gives."""
    names = primitive.argument_names()
    function = package.compile(call_of(primitive))
    together = function.at_points(**{name: [point[name] for point in points] for name in names}, gradient=False)[0]
    for value, point in zip(together, points, strict=True):
        alone = function(**point)
        if not abs(value - alone).max() <= CLOSE * max(abs(flat_sum(abs(value))), 1e-300):
            return "FAIL", f"{value} at {shown(point)}, alone {alone}"
    return "ok", f"equal at {len(points)} points"


def outside(primitive: Primitive, points: list[Point]) -> tuple[str, str]:
    """Outside its domain an operation has no finite value, and a note says so."""
    ends = [
        (name, end)
        for name, domain in zip(primitive.argument_names(), primitive.domain, strict=True)
        for end in (domain.low - 0.625, domain.high + 0.625)
        if math.isfinite(end) and isinstance(points[0][name], float)
    ]
    for name, end in ends:
        answer = package.evaluate(call_of(primitive), at={**points[0], name: end})
        if math.isfinite(flat_sum(answer.value)) or not answer.diagnostics:
            return "FAIL", f"{answer.value} at {name} = {end:.6g}"
    return ("ok", f"no value at {len(ends)} points outside") if ends else ("-", "it is every number")


def examples(primitive: Primitive, points: list[Point]) -> tuple[str, str]:
    """The examples have the values that are stated."""
    for text, stated in primitive.examples:
        value = package.evaluate(text).value
        if not math.isclose(flat_sum(value), flat_sum(stated), rel_tol=CLOSE, abs_tol=1e-12):
            return "FAIL", f"{text} is {value}, stated {stated}"
    return ("ok", f"{len(primitive.examples)} right") if primitive.examples else ("-", "it has none")


LAWS: dict[str, Callable[[Any, list[Point]], tuple[str, str]]] = {
    "values": values,
    "first derivatives": of_order(1),
    "second derivatives": of_order(2),
    "third derivatives": of_order(3),
    "forward mode": forward,
    "many points": batched,
    "domain": outside,
    "examples": examples,
}
