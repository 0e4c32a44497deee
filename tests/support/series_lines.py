"""Scripts and points go in, straight lines through them come out, as the series oracle reads them; judges nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.checks.derivatives.jets import DependencyCone, DirectionalJets, ExactJets
from gradcli.checks.evaluate import balls
from gradcli.language.parser import parse
from gradcli.lowering import lower


def lowered(text: str, at: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The program of a script, and its point as the oracle takes it."""
    found = lower(parse(text), at=at)
    point = {}
    for name, value in found.values.items():
        array = np.asarray(value.nested() if hasattr(value, "nested") else value, dtype=float)
        point[name] = (array.reshape(-1).tolist(), found.program.leaves[name].node.type.shape)
    return found.program, point


def lines(text: str, at: dict[str, Any], *wrt: str) -> DirectionalJets:
    """The lines through a point in which some leaves may move; by default the first one."""
    program, point = lowered(text, at)
    targets = [program.leaves[name].node for name in (wrt or (next(iter(at)),))]
    return DirectionalJets(balls.BallField(), DependencyCone(program.outputs[:1], *targets), point)


def exact_lines(text: str, at: dict[str, Any], *wrt: str) -> ExactJets:
    """The same in exact numbers."""
    through = lines(text, at, *wrt)
    return ExactJets(balls.ExactField(), through.paths, lowered(text, at)[1])
