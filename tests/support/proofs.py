"""A script of claims and a point go in; for each claim whether the normal forms prove it comes out, and how long it took."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.algebra import proof
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower

if TYPE_CHECKING:
    from collections.abc import Mapping

WRONG = ("({})*(1 + 1e-9)", "-({})", "({}) + 1e-30")  # three ways to be wrong: a factor, a sign, a value


class Proof(NamedTuple):
    """What came of one claim."""

    text: str
    answer: dict[str, Any]
    seconds: float

    @property
    def proved(self) -> bool:
        return bool(self.answer["proved"])

    def assumed(self, kind: str) -> list[str]:
        """What the proof assumes, of one kind."""
        return [text for one, text in self.answer["assumed"] if one == kind]


def proofs(script: str, at: Mapping[str, Any]) -> list[Proof]:
    """The attempts at all claims of a script; every leaf has its value in `at`."""
    lowered = lower(parse(Source(script)), at=dict(at))
    values = {name: np.asarray(value, dtype=float) for name, value in {**lowered.values, **at}.items()}
    point = {
        name: (values[name].reshape(-1).tolist(), values[name].shape)
        for name in lowered.program.leaves
        if name in values
    }
    found = []
    for claim in lowered.claims:
        started = process_time()
        if claim.derivative is None or claim.derivative[0].type.shape:
            answer = proof.prove_equal(claim.left, claim.right, lowered.wrt, point)
        else:
            output, target = claim.derivative
            entries = range(target.type.size)
            answer = proof.prove_derivative(output, target, claim.right, lowered.wrt, point, entries)
        found.append(Proof(claim.text, answer, process_time() - started))
    return found


def derivative_script(function: str, variable: str, derivative: str) -> str:
    """A script that claims a derivative."""
    return f"value = {function}\nassert grad(value, {variable}) == {derivative}\nvalue"


def identity_script(left: str, right: str, names: Mapping[str, Any]) -> str:
    """A script that claims an identity."""
    return f"assert {left} == {right}\n{' + '.join(names)}"
