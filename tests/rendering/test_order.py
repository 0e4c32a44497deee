"""Rows of derivatives have one order in all formats, that of the matrix; a zero derivative has no sign for people."""

from __future__ import annotations

import json
import re

import pytest

from gradcli.interfaces import cli

SCRIPT = ["[x*y, x + y], x*w", "--at", "x=2,y=3,w=[1,2]"]
LEAVES = ["x", "y", "w[0]", "w[1]"]
OUTPUTS = ["output 0[0]", "output 0[1]", "output 1[0]", "output 1[1]"]
ORDER = [(output, leaf) for output in OUTPUTS for leaf in LEAVES]


def shown(capsys: pytest.CaptureFixture[str], *line: str) -> str:
    assert cli.main([*line]) == 0
    return capsys.readouterr().out


def test_a_jacobian_has_the_order_of_the_matrix_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "jacobian", *SCRIPT, "--format", "csv")
    assert re.findall(r"(output \d\[\d\]),(x|y|w\[\d\]),", text) == ORDER


@pytest.mark.parametrize("form", ["table", "plain", "markdown"])
def test_a_jacobian_is_a_matrix(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "jacobian", *SCRIPT, "--format", form).replace("`", "").replace("\\", "")
    lines = [re.split(r"\s*\|\s*|\s{2,}", line.strip().strip("|").strip()) for line in text.splitlines()]
    assert LEAVES in [[word for word in line if word] for line in lines]
    numbers = [["3.0", "2.0", "0.0", "0.0"], ["1.0", "1.0", "0.0", "0.0"]]
    numbers += [["1.0", "0.0", "2.0", "0.0"], ["2.0", "0.0", "0.0", "2.0"]]
    assert [line for line in lines if line[0] in OUTPUTS] == [
        [output, *row] for output, row in zip(OUTPUTS, numbers, strict=True)
    ]


@pytest.mark.parametrize(
    ("script", "at", "columns"),
    [
        ("softmax(x)", "x=[1,2,3]", ["x[0]", "x[1]", "x[2]"]),
        ("A@x", "A=[[1,2],[3,4]],x=[1,2]", ["A[0, 0]", "A[0, 1]", "A[1, 0]", "A[1, 1]", "x[0]", "x[1]"]),
        ("x*y", "x=1,y=2", ["x", "y"]),
        ("x*[1,2]", "x=1", ["x"]),
        ("sum(x)", "x=randn(12)", [f"x[{i}]" for i in range(12)]),
    ],
)
def test_the_columns_of_a_jacobian_are_the_entries_of_the_leaves(
    script: str, at: str, columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [re.split(r"\s{2,}", line.strip()) for line in shown(capsys, "jacobian", script, "--at", at).splitlines()]
    assert columns in lines


def test_a_jacobian_that_is_too_wide_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "jacobian", "x**2", "--at", "x=randn(13)").splitlines()
    assert ["output", "leaf", "partial"] in [line.split() for line in lines]
    assert sum(line.startswith("output[") for line in lines) == 13**2


def test_a_hessian_has_the_order_of_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "hessian", "y*sum(x**2)", "--at", "x=[1,2],y=3", "--format", "csv")
    rows = [tuple(line.split(",")[1:3]) for line in text.splitlines() if line.startswith("hessian")]
    names = ["y", "x[0]", "x[1]"]
    assert rows == [(one, other) for one in names for other in names]


def test_a_large_jacobian_has_its_first_and_last_rows(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "jacobian", "x**2 + y", "--at", "x=linspace(0,1,90),y=2", "--format", "table")
    lines = [line.split() for line in text.splitlines() if line.startswith((" output[", " ..."))]
    assert lines[0][:2] == ["output[0]", "x[0]"]
    assert lines[-1][:2] == ["output[89]", "y"]
    gap = [line for line in lines if line[0] == "..."]
    assert [line[1] for line in gap] == ["x", "y"]


ZEROS = [
    (["grad", "-(x**2)", "--at", "x=0"], "x     0.0       0.0"),
    (["grad", "-(x**2)", "--at", "x=0", "--digits", "3"], "x      0         0"),
    (["grad", "sum(-x**2)", "--at", "x=[0,1]"], "x[0]  0.0       0.0"),
    (["grad", "-(x**3)", "--at", "x=0", "--order", "2"], "x     0.0  0.0"),
    (["jacobian", "-(x**2)", "--at", "x=0"], "output  0.0"),
    (["hessian", "-(x**3)", "--at", "x=0"], "x  0.0"),
    (["grad", "-(x**2)", "--at", "x=0", "--format", "csv"], "gradient,x,,0.0"),
    (["trace", "-(x**2)", "--at", "x=0"], "x     0.0       0.0"),
]


@pytest.mark.parametrize(("line", "row"), ZEROS, ids=[" ".join(line) for line, _ in ZEROS])
def test_a_zero_derivative_has_no_sign(line: list[str], row: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, *line).splitlines()
    assert row in [one.rstrip() for one in lines], lines


def test_machines_read_what_was_computed(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, "grad", "-(x**2)", "--at", "x=0", "--format", "json"))
    assert str(found["gradient"]["x"]) == "-0.0"
