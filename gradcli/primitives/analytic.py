"""Declares a special function from one formula in complex balls: its digits, its enclosures and its derivatives.

`function` computes with python-flint's complex balls, and is analytic where the real parts of its arguments are inside
`smooth`, by default its domain. Where a derivative has no closed form, such as that by the order of a Bessel function,
an internal operation stands for it, whose values Cauchy's formula gives.
"""

from __future__ import annotations

from gradcli.graph.primitive import Primitive, elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.graph.domain import Interval

    Function = Callable[..., Any]


def analytic(
    name: str,
    summary: str,
    function: Function,
    *,
    domain: Sequence[Interval],
    smooth: Sequence[Interval] | None = None,
    **fields: Any,
) -> Primitive:
    """A function with the digits of its balls; SciPy's, by its name there, tells about infinities."""
    inside = domain if smooth is None else smooth
    fields.setdefault("traits", "real_only")
    fields.setdefault("ball", lambda fl, *xs: fl.analytic(function, inside, *xs))

    def impl(xp: Any, *xs: Any) -> Any:
        address = primitive.called("jax" if xp.name == "jax" else "scipy") or ""
        return xp.analytic(address.rpartition(".")[2], function, domain, *xs)

    primitive = elementwise(name, summary, impl=impl, domain=domain, **fields)
    return primitive


def parametric(
    name: str,
    summary: str,
    function: Function,
    *,
    domain: Sequence[Interval],
    smooth: Sequence[Interval] | None = None,
    closed: Function | None = None,
    texts: Mapping[tuple[int, ...], str] | None = None,
    **fields: Any,
) -> Primitive:
    """Such a function with its `derivative`: an operation that is one of given `orders` in the arguments.

    `closed` is that derivative in public operations, or None for orders without such a form, by default what the last
    partial says; `texts` are formulas for people, by their orders, in x, y and z.
    """
    written = texts or {}

    def partials(*xs: Any, out: Any, orders: tuple[int, ...]) -> tuple[Any, ...]:
        raised = [tuple(n + (i == k) for k, n in enumerate(orders)) for i in range(len(xs))]
        return tuple(primitive.derivative(*xs, orders=each) for each in raised)

    def by_last(*xs: Any, orders: tuple[int, ...]) -> Any:
        if orders[-1] != 1 or any(orders[:-1]):
            return None
        return primitive.partials(*xs, out=primitive(*xs))[-1]  # type: ignore[misc]

    inside = domain if smooth is None else smooth
    primitive = analytic(name, summary, function, domain=domain, smooth=smooth, **fields)
    primitive.derivative = elementwise(
        f"{name}_derivative",
        f"A derivative of {name} of given orders in its arguments.",
        impl=lambda xp, *xs, orders: xp.derivative(function, orders, inside, *xs),
        ball=lambda fl, *xs, orders: fl.derivative(function, orders, inside, *xs),
        partials=partials,
        arity=primitive.arity,
        internal=True,
        static=("orders",),
        closed=closed or by_last,
        formula=lambda *, orders: written.get(orders, ""),
        traits="real_only",
        domain=domain,
        sample=primitive.sample,
    )
    return primitive
