"""Random loops against torch.autograd: the same script is run by Python with PyTorch's functions, orders 1 to 3.

Loops are nodes here however short they are: with masks, values that are held, nesting, lists and comprehensions.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from gradcli.execution.evaluate import evaluate
from gradcli.graph.builder import building
from gradcli.graph.loop import readers_by_loop
from gradcli.graph.node import reachable
from gradcli.language import parse
from gradcli.lowering import lower
from gradcli.transforms import derivatives

torch = pytest.importorskip("torch")

VALUES = {"a": 0.625, "b": -0.375, "c": 1.25}
SMOOTH = [
    "sin({0})*{1}", "0.5*{0} + 0.25*{1}", "tanh({0} - {1})", "{0}*exp(-{1}**2)/2", "{0}/(1 + {1}**2)", "sqrt(1 + {0}**2) - 1",
    "log(2 + sin({0})) + {1}/4", "cos({0}*{1})",
]  # fmt: skip
MASKED = [
    "where({0} > {1}, sin({0}), {1}/2)",
    "where({0} > 0, sqrt(abs({0}) + 0.1), {1})",
    "detach({0})*{1}",
    "detach({0}*{1}) + {0}/3",
]


class Writer:
    """A script with loops in loops, which is also Python."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines = ["x = a", "y = b*c", "z = c", "path = []"]

    def value(self, *more: str) -> str:
        pool = ["x", "y", "z", "x", "y", "a", "b", "c", *more]
        form = self.random.choice([*SMOOTH, *SMOOTH, *MASKED])
        return form.format(self.random.choice(pool), self.random.choice(pool))

    def body(self, before: str, index: str, depth: int) -> None:
        random = self.random
        for _ in range(random.randint(1, 3)):
            kind = random.randrange(7 if depth else 6)
            if kind < 3:
                self.lines.append(f"{before}{random.choice('xyz')} = {self.value(f'{index}/40')}")
            elif kind == 3:
                self.lines.append(f"{before}x, y = y, {self.value()}")
            elif kind == 4:
                self.lines.append(f"{before}path.append({self.value(f'{index}/40')})")
            elif kind == 5:
                self.lines.append(
                    f"{before}z = 0.9*z + sum([{self.value('i/40')} for i in range({random.choice((2, 36))})])/40"
                )
            else:
                self.loop(before, "j", depth - 1, random.choice((2, 36)))

    def loop(self, before: str, index: str, depth: int, turns: int) -> None:
        first = self.random.choice(("", "1, ", "2, "))
        self.lines.append(f"{before}for {index} in range({first}{turns}):")
        self.body(before + "    ", index, depth)

    def text(self) -> str:
        for _ in range(self.random.choice((1, 1, 2))):
            self.loop("", "t", 1, self.random.choice((36, 37, 40)))
        self.lines.append("path.append(x*y)")
        self.lines.append("x + y*z + sum(path)/len(path)")
        return "\n".join(self.lines)


def by_torch(text: str) -> list[list[float]]:
    leaves = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in VALUES.items()}

    def function(name: str) -> Any:
        return lambda x: getattr(torch, name)(torch.as_tensor(x, dtype=torch.float64))

    def where(condition: Any, x: Any, y: Any) -> Any:
        x, y = (torch.as_tensor(one, dtype=torch.float64) for one in (x, y))
        return torch.where(torch.as_tensor(condition), x, y)

    scope = {name: function(name) for name in ("sin", "cos", "tanh", "exp", "sqrt", "log", "abs")}
    scope |= {"where": where, "detach": lambda x: torch.as_tensor(x).detach(), "sum": sum, "len": len, "range": range}
    *above, last = text.split("\n")
    found = {**scope, **leaves}
    exec("\n".join([*above, f"output = {last}"]), found)  # a script of ours
    output = found["output"]
    orders, order = [[output.item()]], output
    for _ in range(3):
        if not order.requires_grad:
            break
        slopes = torch.autograd.grad(order, list(leaves.values()), create_graph=True, allow_unused=True)
        orders.append([0.0 if one is None else one.item() for one in slopes])
        order = sum(
            (one * weight for one, weight in zip(slopes, (1, 0.5, -0.25), strict=True) if one is not None),
            torch.tensor(0.0),
        )
    return orders


def by_nodes(text: str, orders: int) -> list[list[float]]:
    leaves = [f"{name} = {value}" for name, value in VALUES.items()]
    made = lower(parse("\n".join([*leaves, text])), loops="node")
    (output,) = made.program.outputs
    nodes = [made.program.leaves[name].node for name in VALUES]
    found, order = [[output]], output
    with building(made.program.builder, reachable([output, *nodes])):
        for _ in range(orders):
            slopes = derivatives.grad(order, nodes)
            found.append(slopes)
            order = slopes[0] + 0.5 * slopes[1] - 0.25 * slopes[2]
    values = evaluate([node for one in found for node in one], made.values)
    shaped = iter(values)
    return [[float(next(shaped)) for _ in one] for one in found]


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(12, 200))])
def test_random_loops_have_the_derivatives_of_torch(seed: int) -> None:
    text = Writer(seed).text()
    theirs = by_torch(text)
    for one, other in zip(by_nodes(text, len(theirs) - 1), theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8, err_msg=text)


def test_most_of_these_loops_are_nodes() -> None:
    leaves = [f"{name} = {value}" for name, value in VALUES.items()]
    made = [lower(parse("\n".join([*leaves, Writer(seed).text()])), loops="node") for seed in range(12)]
    assert sum(bool(readers_by_loop(reachable(one.program.outputs))) for one in made) >= 6
