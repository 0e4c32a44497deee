"""Checks a program that was recorded from Python, and reports a verdict on each of its gradients.

Such a program has no text: a finding names a leaf, never a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.decide.verdict import judge, unanswered
from gradcli.checks.expectations import settled
from gradcli.checks.formatting import plain
from gradcli.checks.oracle import worker
from gradcli.checks.oracle.oracle_client import Exact
from gradcli.checks.report import Report, summarised
from gradcli.checks.subjects import subjects
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering.lowered import Lowered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradcli.checks.oracle.worker import Oracle
    from gradcli.graph.program import Program


@worker.exclusive
def check_program(
    program: Program,
    at: Mapping[str, Any] | None = None,
    *,
    text: str = "a recorded function",
    samples: int = 3,
    seed: int = 0,
    timeout: float = 60.0,
    require: str | None = None,
    allow_kink: bool = False,
    lenient: bool = False,
    dtype: str = "float64",
    oracle: Oracle | None = None,
) -> Report:
    """Judge the gradient of every output of a program by every leaf that is not constant, and its hand-written rules.

    `at` gives values to leaves, the others have their defaults; the options are those of `check_script`. A point at
    which a recorded branch changes is a KINK, as it is in a script.
    """
    oracle = oracle or worker.shared()
    oracle.warm()
    given = {name: leaf.default for name, leaf in program.leaves.items() if leaf.default is not None} | dict(at or {})
    values = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    source = Source("0")  # a script that says nothing stands for the one that there is not
    wrt = tuple(program.wrt())
    rules = tuple(getattr(program, "rules", ()))  # of a recorded one: the backwards of its Functions
    lowered = Lowered(parse(source), source, program, values, (), rules, wrt, (), text, False, {}, {}, None, {})
    found = subjects(lowered, values, seed)
    outcomes = []
    if found:
        exact = Exact(oracle, [node for subject in found for node in subject.nodes()], timeout)
        for subject in found:
            try:
                outcome = judge(exact, subject, seed, samples, dtype)
            except worker.NoAnswer as reason:
                outcome = unanswered(reason)
            point = {name: plain(values[name]) for name in wrt}
            evidence = {"at": point, "seed": seed, **outcome.evidence}
            outcomes.append((subject, outcome._replace(evidence=evidence)))
    checks = settled(outcomes, lowered, source, require=require, allow_kink=allow_kink, lenient=lenient)
    return summarised(text, checks, (), None)
