"""On a GPU, where there is one: all operations and programs by the device's plans, and by the evaluator on CuPy.

Without CuPy or without a GPU everything here is skipped, and says so.
"""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import Unavailable
from gradcli.primitives import catalogue
from tests.benchmarks import devices
from tests.execution.test_cupy_plans import BOUNDS, EDGES, PROGRAMS, Program, near, planned, plans_of
from tests.support.cases import cases
from tests.support.study import study

reason = "CuPy is not installed" if find_spec("cupy") is None else "there is no GPU" if devices.gpu() is None else ""
if reason:
    pytest.skip(f"no device: {reason}", allow_module_level=True)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs(program: Program, dtype: str) -> None:
    """Value and gradient near NumPy's, and the same bits each time."""
    tape, values, plan = planned(program, dtype)
    found, again = plan.answer(values), plan.answer(values)
    assert found is not None and again is not None
    expected = tape.run(values, backend="numpy", dtype=dtype)
    for one, other, reference in zip(found, again, expected, strict=True):
        near(one, reference, 4 * BOUNDS[dtype], program.name)
        np.testing.assert_array_equal(one, other)


# vectors are known up to their signs, which a library chooses: `eigh` and `svd` give them signs of their own
COMPARABLE = sorted(set(catalogue()) - {"eigvecs", "svd_u", "svd_v"})


@pytest.mark.parametrize("name", COMPARABLE)
def test_operations(name: str) -> None:
    """Value and gradient of an operation by the plan."""
    for case, values, tape, plan in plans_of(name, "float64"):
        try:
            found = plan.answer(values)
        except Unavailable as missing:
            pytest.skip(f"CuPy has not all of it: {missing}")
        plain = tape.run(values, backend="numpy")
        least = max(float(np.nanmax(np.abs(one), initial=0, where=np.isfinite(one))) for one in plain)
        for one, expected in zip(found or (), plain, strict=True):
            near(one, expected, 1e-10, f"{name}: {case}", 1e-3 * least + 1e-300)


@pytest.mark.parametrize("name", COMPARABLE)
def test_operations_by_the_evaluator(name: str) -> None:
    """The same one operation at a time, at several points."""
    for case in cases(name)[:3]:
        it = study(case)
        nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
        given = {**it.points, **getattr(it, "tangents", {})}
        try:
            found = Tape(nodes).run(given, backend="cupy")
        except gradcli.GradcliError as problem:
            if problem.diagnostics[0].code == "GC714":
                pytest.skip(problem.diagnostics[0].message)
            raise
        for one, expected in zip(found, Tape(nodes).run(given, backend="numpy"), strict=True):
            near(one, expected, 1e-10, f"{name}: {case}", 1e-3)


def test_edges() -> None:
    """Zeros, subnormal and huge numbers, infinities and NaN come out as NumPy has them."""
    x = np.array(EDGES)
    for name in ("exp", "log", "sqrt", "tanh", "abs", "sign", "floor", "relu", "log1p", "expm1"):
        found = gradcli.compile(f"{name}(x)", backend="cupy")(x=x)
        np.testing.assert_allclose(found, gradcli.evaluate(f"{name}(x)", at={"x": x}).value, rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("work", devices.SMALL)
def test_rows(work: str) -> None:
    """The workloads of the benchmarks, small: ours on the device against ours on the processor."""
    cupy: Any = import_module("cupy")
    given = devices.data(work, devices.SMALL[work])
    turn, told = devices.ours(work, devices.SMALL[work])
    found = turn()
    assert all(isinstance(slope, cupy.ndarray) for slope in found[1].values())
    text = devices.text_of(work)
    f = gradcli.compile(text, wrt=devices.WRT[work])
    plain = f.at_points(**given) if work == "points" else f.value_and_grad(**given)
    for one, other in zip(told, devices.shown(work, np.asarray(plain[0]), plain[1]), strict=True):
        assert math.isclose(one, other, rel_tol=1e-9)
