"""The table of witnesses: what each says, what is chosen, how it is shown; no verdict depends on it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import eager
from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script, parse_witnesses, witnesses
from gradcli.checks.witnesses import WITNESSES
from gradcli.interfaces import cli

NAMES = ["reverse mode", "exact enclosure", "SymPy", "finite difference"]


def tables(text: str, at: dict[str, Any], witnesses: str = "all", **options: Any) -> dict[str, dict[str, Any]]:
    """The table of each check, with its rows by their witness."""
    checks = check_script(text, at=at, witnesses=witnesses, **options).checks
    found: dict[str, dict[str, Any]] = {}
    for check in checks:
        table: Any = check.evidence.get("witnesses")
        found[check.id] = table and {**table, "rows": {row["witness"]: row for row in table["rows"]}}
    return found


def test_all_witnesses_of_a_right_gradient_agree() -> None:
    rows = tables("x**2*sin(y)", {"x": 2.0, "y": 3.0})["gradient:x"]["rows"]
    assert list(rows) == NAMES
    assert rows["reverse mode"] == {"witness": "reverse mode", "value": "0.5644800322394689"}
    assert all(row["agrees"] for row in list(rows.values())[1:])
    assert rows["exact enclosure"]["digits"] == rows["SymPy"]["digits"] == 16
    assert rows["exact enclosure"]["value"] == rows["SymPy"]["value"] == "0.5644800322394688884029792"
    assert rows["SymPy"]["formula"] == "2*x*sin(y)"
    assert 0 < rows["finite difference"]["bound"] < 1e-12
    assert rows["finite difference"]["digits"] >= 12


def test_a_wrong_claim_stands_alone() -> None:
    table = tables("sum(x**3)", {"x": [1.1, 2.2, 3.3]}, claims={"x": "[3*x[0]**2, 3*x[1]**2 + 1e-3, 3*x[2]**2]"})
    found = table["claim:x"]
    assert found["entry"] == "[1]"  # the worst one
    assert list(found["rows"]) == ["claim", *NAMES]
    assert [row["agrees"] for row in list(found["rows"].values())[1:]] == [False] * 4
    assert {row["digits"] for row in list(found["rows"].values())[1:]} == {4}
    assert float(found["rows"]["reverse mode"]["value"]) == pytest.approx(14.52)


def test_a_rule_that_is_written_by_hand_is_a_row() -> None:
    script = "def f(u):\n    return sin(u)\ndef f.vjp(u, g):\n    return g*cos(u)\nf(x)**2"
    found = tables(script, {"x": 0.7})
    kinds = [next(iter(table["rows"])) for table in found.values()]
    assert kinds == ["reverse mode", "hand-written rule"]
    assert all(row["agrees"] for table in found.values() for row in list(table["rows"].values())[1:])


def test_lost_digits_are_seen() -> None:
    rows = tables("(1 - cos(x))/x**2", {"x": 1e-4})["gradient:x"]["rows"]
    assert not rows["exact enclosure"]["agrees"]
    assert not rows["SymPy"]["agrees"]
    assert rows["finite difference"] == {
        "witness": "finite difference",
        "reason": "the finite differences of f are too noisy here",
    }


def test_at_a_kink_each_says_why_it_has_no_value() -> None:
    rows = tables("relu(x)", {"x": 0.0})["gradient:x"]["rows"]
    assert [row.get("reason", "")[:30] for row in rows.values()] == [
        "",
        "branches of relu meet at the p",
        "branches meet at the point",
        "the slopes on the two sides of",
    ]


def test_a_number_below_every_double_has_no_digits_in_common_with_0() -> None:
    rows = tables("exp(-1000*x)", {"x": 1.0})["gradient:x"]["rows"]
    assert rows["exact enclosure"]["agrees"] and rows["exact enclosure"]["digits"] == 0
    assert "bound" not in rows["exact enclosure"]


def test_a_number_beyond_every_double_agrees_with_none() -> None:
    rows = tables("exp(x)", {"x": 800.0})["gradient:x"]["rows"]
    assert rows["exact enclosure"] == {
        "witness": "exact enclosure",
        "value": "2.726374572112566567364780e+347",
        "agrees": False,
        "digits": 0,
    }


def test_there_is_nothing_to_compare_where_there_is_no_value_or_no_derivative() -> None:
    assert tables("log(x)", {"x": -1.0}) == {"gradient:x": None}
    assert tables("assert x + x == 2*x\nx", {"x": 1.0})["claim:1"] is None


@pytest.mark.parametrize("words", ["none", "sympy", "differences", "sympy,differences", "enclosure"])
def test_what_is_chosen_is_shown_and_verdicts_stay(words: str) -> None:
    at = {"x": 0.3}
    whole, chosen, plain = (check_script("tanh(x)**2", at=at, witnesses=one) for one in ("all", words, "none"))
    (check,) = chosen.checks
    for report in (whole, chosen):
        (one,) = report.checks
        bare = {key: value for key, value in one.evidence.items() if key != "witnesses"}
        assert replace(one, evidence=bare) == plain.checks[0]
    rows: Any = check.evidence.get("witnesses", {"rows": []})
    wanted = [name for name, word in zip(NAMES, WITNESSES, strict=True) if word in words]
    assert [row["witness"] for row in rows["rows"]] == (["reverse mode", *wanted] if wanted else [])


def test_words_are_checked() -> None:
    assert parse_witnesses("all") == WITNESSES
    with pytest.raises(GradcliError, match="unknown witness `simpy`") as caught:
        parse_witnesses("differences,simpy")
    assert caught.value.diagnostics[0].code == "GC721"
    assert "did you mean `sympy`" in str(caught.value.diagnostics[0].help)


# --- the command line and Python ----------------------------------------------------------------------------------


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["check", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


ARGUMENTS = ("x**2*sin(y)", "--at", "x=2,y=3", "--wrt", "x")


def test_plain_text_has_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, *ARGUMENTS, "--witnesses", "all")
    assert code == 0
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("witness"))
    assert [line.split("  ")[0] for line in lines[start + 1 : start + 5]] == NAMES
    assert "exact enclosure    0.5644800322394688884029792  3e-39  16 digits" in lines
    assert lines[start].endswith("bound  agrees with reverse mode")
    assert "SymPy's formula:  2*x*sin(y)" in lines
    assert max(map(len, lines)) < 80


def test_a_claim_shows_the_witnesses_of_its_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ran(capsys, "x*y", "--at", "x=2,y=3", "--claim", "x = y", "--format", "table")[1]
    assert "PROVED claim x, line 1" in shown and "PROVED gradient y, line 1" in shown
    assert "PROVED gradient x, line 1" not in shown  # its table would be the claim's without a row
    wrong = ran(capsys, "x*y", "--at", "x=2,y=3", "--claim", "x = 2*y", "--format", "table")[1]
    assert "DISAGREES claim x, line 1" in wrong and "PROVED gradient x, line 1" not in wrong


def test_off_a_terminal_there_is_none_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "finite difference" not in ran(capsys, *ARGUMENTS)[1]
    assert "finite difference" in ran(capsys, *ARGUMENTS, "--format", "table")[1]
    assert "finite difference" not in ran(capsys, *ARGUMENTS, "--format", "table", "--witnesses", "none")[1]
    assert "| finite difference |" in ran(capsys, *ARGUMENTS, "--format", "markdown", "--witnesses", "all")[1]
    answer = json.loads(ran(capsys, *ARGUMENTS, "--format", "json", "--witnesses", "sympy")[1])
    assert [row["witness"] for row in answer["checks"][0]["evidence"]["witnesses"]["rows"]] == NAMES[::2]


def test_folders_have_none(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    (tmp_path / "a.grad").write_text("x in real = 1\nx**2\n", encoding="utf-8")
    for arguments in ((str(tmp_path), "--witnesses", "all"), (str(tmp_path), "--witnesses", "simpy")):
        code, _, err = ran(capsys, *arguments)
        assert code == 2
        assert "GC721" in err
    code, out, _ = ran(capsys, str(tmp_path / "a.grad"), "--witnesses", "differences")
    assert code == 0
    assert "finite difference" in out


@pytest.mark.usefixtures("values_only")
def test_a_black_box_has_differences_only(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    report = gradcli.check(lambda x: np.sum(x**3), lambda x: 3 * x**2, at=np.array([1.0, 2.0]))
    table: Any = report.checks[0].evidence["witnesses"]
    assert table["entry"] in ("x[0]", "x[1]")
    assert [row["witness"] for row in table["rows"]] == ["df", *NAMES[1:]]
    assert table["rows"][-1]["agrees"]
    assert "exact enclosure, SymPy:  a black box" in str(report)
    wrong = gradcli.check(lambda x: x**3, lambda x: 2 * x**2, at=2.0, witnesses="differences")
    rows: Any = wrong.checks[0].evidence["witnesses"]
    assert [row.get("agrees") for row in rows["rows"]] == [None, False]
    assert (
        "witnesses"
        not in gradcli.check(lambda x: x**3, lambda x: 3 * x**2, at=2.0, witnesses="none").checks[0].evidence
    )
    (tmp_path / "cube.py").write_text("def f(x):\n    return x**3\ndef df(x):\n    return 3*x**2\n", encoding="utf-8")
    place = str(tmp_path / "cube.py")
    code, out, _ = ran(capsys, "--python", f"{place}:f", "--grad", f"{place}:df", "--at", "x=2", "--witnesses", "all")
    assert code == 0
    assert "finite difference" in out


def test_the_graph_of_our_own_tensors_has_all_of_them() -> None:
    x = eager.tensor([0.5, -1.0], dtype=eager.float64, requires_grad=True)
    report = gradcli.check(lambda x: (x.sin() * x**2).sum(), at=x)
    rows: Any = report.shown().checks[0].evidence["witnesses"]
    assert [row["witness"] for row in rows["rows"]] == NAMES
    assert rows["rows"][2]["formula"] == "x[1]**2*cos(x[1]) + 2*x[1]*sin(x[1])"


def test_python_gives_the_same_table() -> None:
    report = gradcli.check("x**2*sin(y)", at={"x": 2, "y": 3}, wrt=["x"])
    assert "SymPy's formula:  2*x*sin(y)" in str(report)
    assert "| exact enclosure |" in report._repr_mimebundle_()["text/markdown"]


def test_a_report_computes_witnesses_when_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    about: dict[str, Any] = {"at": {"x": 2, "y": 3}, "claims": {"x": "2*x*sin(y)"}}
    report = gradcli.check("x**2*sin(y)", **about)
    at_once = gradcli.check("x**2*sin(y)", **about, witnesses="all")
    assert all("witnesses" not in check.evidence for check in report.checks)
    gradcli.check("exp(z)", at={"z": 1})  # the oracle holds another script by now
    assert report.shown() == at_once and str(report) == str(at_once)
    assert "ladder" in gradcli.check("x**2*sin(y)", **about, steps=True).checks[0].evidence  # asked for
    with pytest.raises(GradcliError, match="GC721"):
        gradcli.check("x**2*sin(y)", **about, witnesses="later")
    monkeypatch.setattr(witnesses, "witness_table", None)
    assert str(report) == str(at_once)  # once


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("ste(2*x, x**2)*x", {"x": 3.0}),
        ("detach(x**2)*x + detach(3*x)*x**2", {"x": 1.5}),
        ("symmetric S; logdet(S)", {"S": [[2.0, 0.5], [0.5, 1.0]]}),
    ],
)
def test_what_is_held_is_held_apart(text: str, at: dict[str, Any]) -> None:
    """SymPy has a symbol for each value that a script detaches, and for the value and the surrogate of ste."""
    table: Any = check_script(text, at=at, witnesses="sympy").checks[0].evidence["witnesses"]
    assert table["rows"][-1]["agrees"] and table["rows"][-1]["digits"] >= 15
