"""Random formulas, written in several typographies, have the values that this file computes from their trees."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli import GradcliError

POINT: dict[str, Any] = {
    "a": 0.7,
    "b": -1.3,
    "c": 2.1,
    "alpha": 0.4,
    "x": [0.3, -0.8, 1.1],
    "y": [1.2, 0.5, -0.4],
    "n": 3.0,
    "W": [[0.2, -0.5, 0.9], [1.4, 0.3, -0.7], [0.6, -1.1, 0.8]],
}
FUNCTIONS: dict[str, Callable[[float], float]] = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "exp": math.exp}
COUNT = 3


class Tree:
    """A formula: its LaTeX, whether it is a sum or begins with a sign, and its value for numbers of its indices."""

    def __init__(self, text: str, value: Callable[[dict[str, int]], float], loose: bool = False) -> None:
        self.text = text
        self.value = value
        self.loose = loose


class Formulas:
    """Makes trees."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def brackets(self, text: str) -> str:
        pairs = (("(", ")"), (r"\left(", r"\right)"), ("[", "]"), (r"\left[", r"\right]"), (r"\bigl(", r"\bigr)"))
        left, right = self.rng.choice(pairs)
        return f"{left}{text}{right}"

    def group(self, tree: Tree) -> str:
        return self.brackets(tree.text)

    def factor(self, tree: Tree) -> str:
        return self.group(tree) if tree.loose else tree.text

    def make(self, depth: int, indices: tuple[str, ...]) -> Tree:
        kinds = ["sum", "product", "fraction", "power", "root", "function", "bars", "larger"]
        kinds += ["series", "pairs", "extremum"] if len(indices) < 2 else []
        if depth == 0 or self.rng.random() < 0.15:
            return self.leaf(indices)
        return getattr(self, self.rng.choice(kinds))(depth - 1, indices)

    def leaf(self, indices: tuple[str, ...]) -> Tree:
        rng = self.rng
        if indices and rng.random() < 0.75:
            i, j = rng.choice(indices), rng.choice(indices)
            if rng.random() < 0.3:
                text = rng.choice([f"W_{{{i}{j}}}", f"W_{{{i},{j}}}", f"W_{{{i} {j}}}"])
                return Tree(text, lambda at: POINT["W"][at[i]][at[j]])
            name = rng.choice("xy")
            return Tree(
                rng.choice([f"{name}_{i}", f"{name}_{{{i}}}", f"{{{name}}}_{i}"]), lambda at: POINT[name][at[i]]
            )
        if rng.random() < 0.4:
            number = rng.choice(["2", "3", "0.5", "1.25", "7"])
            return Tree(number, lambda at: float(number))
        name = rng.choice(["a", "b", "c", "alpha"])
        return Tree(rf"\{name}" if name == "alpha" else name, lambda at: POINT[name])

    def sum(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, y = self.make(depth, indices), self.make(depth, indices)
        sign = self.rng.choice("+-")
        text = f"{x.text} {sign} {self.factor(y)}"
        return Tree(text, lambda at: x.value(at) + (y.value(at) if sign == "+" else -y.value(at)), loose=True)

    def product(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, y = self.make(depth, indices), self.make(depth, indices)
        sign = self.rng.choice([r" \cdot ", r" \times ", " ", r"\,"])
        left = self.group(x) if x.loose or "\\sum" in x.text or "\\prod" in x.text else x.text
        return Tree(f"{left}{sign}{self.group(y)}", lambda at: x.value(at) * y.value(at))

    def fraction(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, y = self.make(depth, indices), self.make(depth, indices)
        text = rf"{self.rng.choice([chr(92) + 'frac', chr(92) + 'dfrac'])}{{{x.text}}}{{3 + {self.group(y)}^2}}"
        return Tree(text, lambda at: x.value(at) / (3 + y.value(at) ** 2))

    def power(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, n = self.make(depth, indices), self.rng.choice([2, 3])
        return Tree(f"{self.group(x)}^{self.rng.choice([str(n), f'{{{n}}}'])}", lambda at: x.value(at) ** n)

    def root(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, n = self.make(depth, indices), self.rng.choice([2, 3, 5])
        if n == 2:
            return Tree(rf"\sqrt{{1 + {self.group(x)}^2}}", lambda at: math.sqrt(1 + x.value(at) ** 2))
        return Tree(rf"\sqrt[{n}]{{{x.text}}}", lambda at: math.copysign(abs(x.value(at)) ** (1 / n), x.value(at)))

    def function(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, name = self.make(depth, indices), self.rng.choice([*FUNCTIONS])
        apply = FUNCTIONS[name]
        if name == "exp":  # of what is not large
            inner = rf"\sin{self.group(x)}"
            text = rf"e^{{{inner}}}" if self.rng.random() < 0.5 else rf"\exp({inner})"
            return Tree(text, lambda at: math.exp(math.sin(x.value(at))))
        return Tree(rf"\{name}{self.group(x)}", lambda at: apply(x.value(at)))

    def bars(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x = self.make(depth, indices)
        return Tree(rf"\left| {x.text} \right|", lambda at: abs(x.value(at)))

    def larger(self, depth: int, indices: tuple[str, ...]) -> Tree:
        x, y = self.make(depth, indices), self.make(depth, indices)
        name = self.rng.choice(["max", "min"])
        choose = max if name == "max" else min
        return Tree(rf"\{name}({x.text}, {y.text})", lambda at: choose(x.value(at), y.value(at)))

    # --- over indices

    def body(self, depth: int, indices: tuple[str, ...], new: tuple[str, ...]) -> Tree:
        """A product that reads all new indices."""
        inner = self.make(depth, (*indices, *new))
        names = [self.rng.choice("xy") for _ in new]
        entries = " ".join(f"{name}_{i}" for name, i in zip(names, new, strict=True))

        def value(at: dict[str, int]) -> float:
            return inner.value(at) * math.prod(POINT[name][at[i]] for name, i in zip(names, new, strict=True))

        return Tree(f"{entries} {self.group(inner)}", value)

    def series(self, depth: int, indices: tuple[str, ...]) -> Tree:
        i = "k" if "i" in indices else "i"
        body = self.body(depth, indices, (i,))
        ranges = [rf"_{{{i}=1}}^{{n}}", rf"_{{{i}=1}}^n", f"_{i}", rf"_{{{i}}}", rf"\limits_{{{i}=1}}^{{3}}"]
        word, total = self.rng.choice([("sum", math.fsum), ("sum", math.fsum), ("prod", math.prod)])
        text = rf"\{word}{self.rng.choice(ranges)} {body.text}"
        return Tree(text, lambda at: total([body.value({**at, i: n}) for n in range(COUNT)]), loose=True)

    def pairs(self, depth: int, indices: tuple[str, ...]) -> Tree:
        i, j = ("k", "l") if "i" in indices else ("i", "j")
        body = self.body(depth, indices, (i, j))
        below, holds = self.rng.choice(
            [
                (f"{i}<{j}", lambda p, q: p < q),
                (rf"{i} \le {j}", lambda p, q: p <= q),
                (rf"{i} \ne {j}", lambda p, q: p != q),
                (rf"{i} \neq {j}", lambda p, q: p != q),
                (f"{i},{j}", lambda p, q: True),
                (f"{i}{j}", lambda p, q: True),
                (rf"1 \le {i} < {j} \le n", lambda p, q: p < q),
            ]
        )
        places = [(p, q) for p in range(COUNT) for q in range(COUNT) if holds(p, q)]
        text = rf"\sum_{{{below}}} {body.text}"
        return Tree(text, lambda at: math.fsum(body.value({**at, i: p, j: q}) for p, q in places), loose=True)

    def extremum(self, depth: int, indices: tuple[str, ...]) -> Tree:
        i, name = "k" if "i" in indices else "i", self.rng.choice(["max", "min"])
        body, choose = self.body(depth, indices, (i,)), max if name == "max" else min
        below = self.rng.choice([f"_{i}", rf"_{{{i}}}", rf"_{{1 \le {i} \le n}}", rf"_{{{i}=1,\dots,n}}"])
        text = rf"\{name}{below} {self.brackets(body.text)}"
        return Tree(text, lambda at: choose([body.value({**at, i: n}) for n in range(COUNT)]), loose=True)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.deep)])
def test_random_formulas_have_their_values(count: int) -> None:
    refused = []
    for seed in range(count):
        tree = Formulas(seed).make(3, ())
        at = {name: value for name, value in POINT.items() if name.replace("alpha", r"\alpha") in tree.text}
        try:
            value = float(gradcli.evaluate(f"${tree.text}$", at=at).value)
        except GradcliError as problem:
            refused.append((seed, tree.text, str(problem)))
            continue
        assert math.isclose(value, tree.value({}), rel_tol=1e-9, abs_tol=1e-9), (seed, tree.text)
    assert len(refused) <= count // 20, refused[:5]
