"""The Python interface as an editor, a terminal and a notebook see it: types, signatures, reports, wrong arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import gradcli
import gradcli.checks
from tests.support.rows import all_rows

PACKAGE = Path(gradcli.__file__).parent
ROOMS = gradcli._ROOMS


def test_type_checkers_see_every_public_name() -> None:
    """The package is marked as typed, and a type checker finds each name where the lazy table has it."""
    assert (PACKAGE / "py.typed").exists()
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert seen == ROOMS
    listed = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    assert set(ast.literal_eval(listed)) == {"__version__", *ROOMS}


def test_check_has_the_options_of_both_kinds() -> None:
    shown = inspect.signature(gradcli.check).parameters
    for judge in (gradcli.checks.check_script, gradcli.checks.check_callable):
        first, *others = inspect.signature(judge).parameters
        assert set(others) <= set(shown)
    assert not [one for one in shown.values() if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


PASSES = gradcli.check("x**2*y", at={"x": 2, "y": 3}, claims={"x": "2*x*y"})
FAILS = gradcli.check("x**2*y", at={"x": 2, "y": 3}, claims={"x": "3*x"})
OF_A_FUNCTION = gradcli.check(lambda x: x**3, lambda x: 3 * x**2, at=2.0)


@pytest.mark.parametrize("report", [PASSES, FAILS, OF_A_FUNCTION], ids=["passes", "fails", "function"])
def test_a_report_prints_as_on_the_command_line(report: gradcli.checks.Report) -> None:
    assert isinstance(report, gradcli.checks.Report)
    text = str(report)
    assert max(map(len, text.splitlines())) < 120
    for one in report.checks:
        assert f"{one.verdict}" in text
        if f"{one.kind} {one.leaf}" not in text:  # a right gradient beside a claim
            (line,) = [line for line in text.splitlines() if "own gradient" in line]
            assert one.kind == "gradient" and f" {one.leaf}" in line.partition(":")[2]
    assert text.splitlines()[-1].startswith(f"{len(report.checks)} check")
    assert len(repr(report)) < 80
    shown = report._repr_mimebundle_()
    assert shown["text/plain"] == text
    assert "| verdict |" in shown["text/markdown"]


def wrong_entry(x: Any) -> Any:
    return np.array([3 * x[0] ** 2, 2 * x[1] ** 2])


OPEN = "x = 0\nwhere(x == 0, 0, x*sin(1/sin(1/x)))"  # it is undefined at points as near as you like
JUDGED: list[tuple[Callable[[], Any], str | None, bool]] = [
    (lambda: gradcli.check("x**2", at={"x": 2}), "PROVED", True),
    (lambda: gradcli.check("x**2", at={"x": 2}, claims={"x": "x"}), "DISAGREES", False),
    (lambda: gradcli.check("abs(x)", at={"x": 0}), "KINK", False),
    (lambda: gradcli.check("abs(x)", at={"x": 0}, allow_kink=True), "KINK", True),
    (lambda: gradcli.check("sqrt(x)", at={"x": 0}), "BOUNDARY", False),
    (lambda: gradcli.check("floor(x)", at={"x": 1}), "DISCONTINUOUS", False),
    (lambda: gradcli.check("log(x)", at={"x": -1}), "UNDEFINED", False),
    (lambda: gradcli.check(OPEN), "INCONCLUSIVE", False),
    (lambda: gradcli.check(OPEN, lenient=True), "INCONCLUSIVE", True),
    (lambda: gradcli.check("x*1.0", at={"x": 2}, require="certified"), "PROVED", True),
    (lambda: gradcli.check("const x = 3; x**2"), None, False),
    (lambda: gradcli.check("3"), None, False),
    (lambda: gradcli.check(lambda x: np.sum(x**3), lambda x: 3 * x**2, at=np.ones(2)), "PROVED", True),
    (lambda: gradcli.check(lambda x: np.sum(x**3), wrong_entry, at=np.ones(2)), "DISAGREES", False),
    (lambda: gradcli.check(lambda x: np.sum(x**3), jac=wrong_entry, at=np.ones(2)), "DISAGREES", False),
    (lambda: gradcli.check_callable(lambda x: float("nan"), lambda x: x, at=1.0), "UNDEFINED", False),
    (lambda: gradcli.check_callable(lambda x: x**2, lambda x: [][1], at=1.0), "ERROR", False),
    (lambda: gradcli.checks.check_script("x**2", at={"x": 2}, claims={"x": "x"}), "DISAGREES", False),
]


@pytest.mark.parametrize(("judge", "verdict", "ok"), JUDGED)
def test_a_report_is_true_only_if_something_was_judged_and_is_right(
    judge: Callable[[], Any], verdict: str | None, ok: bool
) -> None:
    report = judge()
    assert (verdict in [check.verdict for check in report.checks]) is (verdict is not None)
    assert report.ok is ok and bool(report) is ok
    assert all(bool(check) is check.passed for check in report.checks)
    assert all(report.checks) or not report


def test_assert_gradient_fails_where_a_report_is_not_true() -> None:
    for grad in (lambda x: 2 * x**2, lambda x: np.array([3.0, 3.1])):
        with pytest.raises(AssertionError, match="DISAGREES"):
            gradcli.testing.assert_gradient(lambda x: np.sum(x**3), grad, at=np.ones(2))


def test_a_report_that_failed_shows_the_digits() -> None:
    assert "exact      12\nclaimed    6\n" in str(FAILS)


@all_rows("ask", ["grad", "evaluate", "hessian", "jacobian", "trace", "compile", "parse", "check"])
@all_rows(
    ("given", "help"),
    [
        (3, "give the text of a script"),
        (None, "give the text of a script"),
        (b"x**2", "give the text of a script"),
        (Path("a.grad"), "path.read_text()"),
        (sympy.Symbol("x"), "str(expression)"),
        (sympy.Symbol("x") ** 2, "str(expression)"),
        (lambda x: x, "gradcli.check judges functions"),
    ],
    ids=["number", "nothing", "bytes", "path", "symbol", "SymPy expression", "function"],
)
def test_what_is_no_script_is_an_error_with_the_way_out(ask: str, given: Any, help: str) -> None:
    if ask == "check" and inspect.isfunction(given):
        return  # it judges functions
    with pytest.raises(gradcli.GradcliError) as caught:
        getattr(gradcli, ask)(given)
    (one,) = caught.value.diagnostics
    assert one.code == "GC133"
    assert help in (one.help or "")


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda: gradcli.grad("x**2", at=[1]), "GC701"),
        (lambda: gradcli.grad("x**2", at=2), "GC701"),
        (lambda: gradcli.grad("x**2", at=None), "GC202"),
        (lambda: gradcli.grad("sum(x)", at={"x": np.ma.array([1.0, 2.0], mask=[0, 1])}), "GC333"),
        (lambda: gradcli.grad("x**2", at={"x": 2}, dtype=None), "GC712"),
        (lambda: gradcli.check("x**2", claims="x = 2*x"), "GC725"),
        (lambda: gradcli.check("x**2", box={"x": (2, 1)}), "GC735"),
        (lambda: gradcli.check("x**2", box={"x": 3}), "GC735"),
        (lambda: gradcli.check("x**2", box={"x": ("a", "b")}), "GC735"),
        (lambda: gradcli.check("x**2", box=[1, 2]), "GC735"),
        (lambda: gradcli.check("x**2", samples=-1), "GC721"),
        (lambda: gradcli.check("x**2", samples=2.5), "GC721"),
        (lambda: gradcli.check("x**2", seed="a"), "GC721"),
        (lambda: gradcli.check("x**2", timeout=-3), "GC721"),
        (lambda: gradcli.check("x**2", require="perfect"), "GC721"),
        (lambda: gradcli.check(np.sum, np.ones_like, at=np.ones(2), samples=-1), "GC721"),
        (lambda: gradcli.check(np.sum, np.ones_like, at=np.ones(2), rtol=-1), "GC721"),
        (lambda: gradcli.check(np.sum, np.ones_like, at=np.ones(2), rtol=float("nan")), "GC721"),
    ],
)
def test_options_of_a_wrong_kind_are_named(ask: Callable[[], object], code: str) -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        ask()
    assert [one.code for one in caught.value.diagnostics] == [code]


@pytest.mark.parametrize("z", [1 + 1j, np.complex64(1 + 1j), np.array(1 + 1j)], ids=["complex", "complex64", "array"])
def test_a_complex_number_may_be_an_array_without_axes(z: object) -> None:
    answer = gradcli.grad("abs(z)**2", at={"z": z}, dtype="complex128")
    assert answer.value == pytest.approx(2.0)
    assert answer.gradient["z"] == pytest.approx(2 + 2j)


def test_a_path_is_no_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder called grads would be a leaf, whose gradient is right."""
    (tmp_path / "grads").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gradcli.GradcliError, match="grads is a file or folder"):
        gradcli.check("grads")
    assert gradcli.check("grads", at={"grads": 2.0}).ok


@pytest.mark.parametrize("z", [3 + 4j, np.complex64(3 + 4j), [1 + 1j, 2], np.array([1j, 2.5 - 1j])], ids=repr)
def test_a_complex_point_needs_no_dtype(z: object) -> None:
    for ask in (gradcli.evaluate, gradcli.grad, gradcli.check):
        silent, said = (ask("sum(abs(z)**2)", at={"z": z}, **dtype) for dtype in ({}, {"dtype": "complex128"}))
        if ask is gradcli.check:
            assert [one.verdict for one in silent.checks] == [one.verdict for one in said.checks]
            assert silent.checks[0].verdict in ("PROVED", "CERTIFIED")
        else:
            assert repr(silent) == repr(said)
    with pytest.raises(gradcli.GradcliError, match="complex128"):
        gradcli.check("sum(abs(z)**2)", at={"z": z}, dtype="float32")


@pytest.mark.parametrize("z", [1 + 2j, [1 + 2j, 3]], ids=repr)
def test_the_gradient_of_a_complex_leaf_says_its_convention(z: object) -> None:
    assert "dL/d(conj z), as PyTorch" in str(gradcli.grad("sum(abs(z)**2)", at={"z": z}))
    assert "conj" not in str(gradcli.grad("sum(x**2)", at={"x": [1.0, 2.0]}))
