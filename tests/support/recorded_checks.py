"""Judges a recorded program as a script is: every gradient, and its hand-written rules; no test by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcli.checks.expectations import settled
from gradcli.checks.oracle import oracle_client
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.checks.report import Report, Settings
from gradcli.checks.scripts import verdict_on
from gradcli.checks.subjects import subjects
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering.lowered import Lowered

if TYPE_CHECKING:
    from gradcli.graph.program import Program


@oracle_client.exclusive
def check_program(program: Program, allow_kink: bool = False) -> Report:
    """The report on a program at the values of its leaves; a point at which a recorded branch changes is a KINK."""
    given = {name: leaf.default for name, leaf in program.leaves.items() if leaf.default is not None}
    values = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    source = Source("0")  # a script that says nothing stands for the one that there is not
    rules = tuple(getattr(program, "rules", ()))  # the backwards of its Functions
    text, wrt = "a recorded function", tuple(program.wrt())
    lowered = Lowered(parse(source), program, values, (), rules, wrt, (), text, False, {}, {}, None, {})
    found = subjects(lowered, values, Settings(seed=0, allow_kink=allow_kink))
    exact = Exact(oracle_client.shared(), [node for subject in found for node in subject.nodes()], 60.0)
    outcomes = [verdict_on(exact, subject) for subject in found]
    return Report(text, tuple(settled(outcomes, lowered)))
