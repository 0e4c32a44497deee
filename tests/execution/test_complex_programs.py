"""Random programs on complex numbers: value and gradient are those of PyTorch's `backward` on the real part of the output.

Real-valued operations stand inside others, so that cotangents with an imaginary part reach them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gradcli import calculator

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")

pytestmark = pytest.mark.peers

HOLOMORPHIC = (
    "exp(0.5*{})", "sin({})", "cos({})", "tanh({})", "sqrt({} + 3)", "log({} + 4)", "({})**2", "1/({} + 5)", "-({})",
    "cumsum({})", "fft({})", "ifft({})", "({})[::-1]", "softmax({})", "where(real({}) > 0.2, {}, 2*({}))",
)  # fmt: skip
REAL_VALUED = (
    "abs({})", "real({})", "imag({})", "angle({})", "conj({})", "sign({})", "abs({})**2", "relu(real({}))",
    "maximum(abs({}), 0.7)", "real({})*imag({})", "sort(imag({}))",
)  # fmt: skip
REDUCED = (
    "sum({})", "mean({})", "prod({})", "norm({})", "std({})", "var({})", "norm({}, 1)", "norm({}, inf)", "logsumexp({})",
    "max(abs({}))", "l1_loss({}, w)", "sum(({})*w)", "sum(std(outer(w, {}), axis=0))", "sum(norm(outer(w, {}), axis=1))",
)  # fmt: skip
BINARY = ("({} + {})", "({} - {})", "({})*({})", "({})/({} + 5)")


class Table(dict[str, Any]):
    """The functions of the programs in PyTorch; of reductions, those that gradcli and NumPy mean."""

    def __init__(self) -> None:
        def along(axis: int | None) -> dict[str, Any]:
            return {} if axis is None else {"dim": axis}

        super().__init__(
            {name: getattr(torch, name) for name in "exp sin cos tanh sqrt log real angle conj prod sum mean outer".split()},
            abs=torch.abs, sign=torch.sgn, inf=torch.inf, ifft=torch.fft.ifft, fft=torch.fft.fft,
            imag=lambda z: z.imag if z.is_complex() else torch.zeros_like(z),
            cumsum=lambda z: torch.cumsum(z, 0), relu=torch.relu, where=torch.where,
            softmax=lambda z: torch.exp(z)/torch.sum(torch.exp(z)),
            maximum=lambda x, y: torch.maximum(x, torch.tensor(y, dtype=x.dtype)), max=torch.max,
            sort=lambda x: torch.sort(x).values,
            norm=lambda z, order=None, axis=None: torch.linalg.vector_norm(z, order or 2, **along(axis)),
            std=lambda z, axis=None: torch.std(z, unbiased=False, **along(axis)),
            var=lambda z: torch.var(z, unbiased=False), logsumexp=lambda z: torch.logsumexp(z, 0),
            l1_loss=torch.nn.functional.l1_loss,
        )  # fmt: skip


def program(random: Any) -> str:
    """A sum of reductions, some multiplied by entries of the leaves."""

    def array(depth: int) -> str:
        if depth == 0:
            return str(random.choice(["v", "w", "v*w", "v - 2*w"]))
        if random.random() < 0.25:
            return str(random.choice(BINARY)).format(array(depth - 1), array(depth - 1))
        template = str(random.choice(HOLOMORPHIC if random.random() < 0.6 else REAL_VALUED))
        return template.replace("{}", array(depth - 1))

    terms = []
    for _ in range(random.integers(1, 3)):
        factor = random.choice(["", "*v[0]", "*conj(w[1])", "*abs(v[2])*w[0]"])
        terms.append(str(random.choice(REDUCED)).format(array(int(random.integers(1, 4)))) + str(factor))
    return " + ".join(terms)


def agrees(seed: int) -> str | None:
    """None where both agree; what differs otherwise; "refused" where PyTorch has no such gradient."""
    random = np.random.default_rng(seed)
    text = program(random)
    at = {n: np.round(random.uniform(-1, 1, 3) + 1j * random.uniform(-1, 1, 3), 3) for n in ("v", "w")}
    leaves = {name: torch.tensor(value, requires_grad=True) for name, value in at.items()}
    written = text.replace("[::-1]", ".flip(0)")
    try:
        value = eval(written, Table(), leaves)
        value = value.real if value.is_complex() else value
        value.backward()
        number = value.item()
    except RuntimeError as problem:
        return f"refused: {problem}"
    expected = {
        name: np.zeros(3) if leaf.grad is None else leaf.grad.numpy(force=True) for name, leaf in leaves.items()
    }
    if not all(np.isfinite(entry).all() for entry in expected.values()):
        return "refused: not finite"
    result = calculator.grad(text, at=at, wrt=sorted({*re.findall(r"\b[vw]\b", text)}), dtype="complex128")
    size = 1 + max(np.abs(entry).max() for entry in expected.values())
    if abs(result.value - number) > 1e-9 * (1 + abs(number)):
        return f"{text} at {at}: value {result.value}, PyTorch has {number}"
    for name, found in result.gradient.items():
        if np.abs(found - expected[name]).max() > 1e-9 * size:
            return f"{text} at {at}: {found}, PyTorch has {expected[name]} by {name}"
    return None


def test_gradients_of_random_programs_are_those_of_pytorch() -> None:
    compare(range(100))


@pytest.mark.deep
def test_gradients_of_many_random_programs_are_those_of_pytorch() -> None:
    compare(range(100, 2_100))


def compare(seeds: range) -> None:
    answers = [agrees(seed) for seed in seeds]
    assert [answer for answer in answers if answer is not None and not answer.startswith("refused")] == []
    assert sum(answer is None for answer in answers) > 0.8 * len(seeds)
