"""Scripts go in; what their names, statements and calls mean is checked on values, gradients, notes and errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.language.limits import Limits
from gradcli.language.parser import parse
from gradcli.lowering import lower
from tests.support.graph_invariants import verify
from tests.support.rows import all_rows


def codes(script: str, at: object = None, call: str = "grad", **options: object) -> list[str]:
    with pytest.raises(gradcli.GradcliError) as caught:
        getattr(gradcli, call)(script, at=at or {}, **options)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def lowered(script: str, **options: object):
    found = lower(parse(script), **options)
    verify(found.program)
    return found


# script, point, value, gradient
VALUES = [
    ("(x*y + x)**2", {"x": 2, "y": 3}, 64, {"x": 64, "y": 32}),
    ("x = 2; y = 3; (x*y + x)**2", {}, 64, {"x": 64, "y": 32}),
    ("x = -1/3\n3*x", {}, -1, {"x": 3}),
    ("s = 0\nfor i in range(3): s = s + x**i\ns", {"x": 2}, 7, {"x": 5}),
    ("s = 0\nfor i in range(1, 6, 2): s += i*x\ns", {"x": 2}, 18, {"x": 9}),
    ("def f(a, b): return a*exp(-b**2)\nf(x, 0) + f(b=0, a=x)", {"x": 3}, 6, {"x": 2}),
    ("def f(a):\n    t = a*a\n    return t + 1\nf(f(x))", {"x": 1}, 5, {"x": 8}),
    ("w[2] = 0.5\nsum(w*w)", {}, 0.5, {"w": [1, 1]}),
    ("const k = 3\nk*x", {"x": 2}, 6, {"x": 3}),
    ("n = 2\nif n > 1:\n    y = x**2\nelse:\n    y = x\ny", {"x": 3}, 9, {"x": 6}),
    ("n = 2\nx**n", {"x": -3}, 9, {"x": -6, "n": math.nan}),
    ("const n = 2\nx**n", {"x": -3}, 9, {"x": -6}),
    ("x**2.0", {"x": -3}, 9, {"x": -6}),
    ("const k = 3\nconst m = 1 - 2*k\nm*x", {"x": 2}, -10, {"x": -5}),
    ("sum(concatenate([x, [1, 2]])**2)", {"x": [1, 2, 3]}, 19, {"x": [2, 4, 6]}),
    ("norm(x, inf)", {"x": [1, 5, 3]}, 5, {"x": [0, 1, 0]}),
    ("x[[[0, 1], [1, 0]]].sum()", {"x": [1, 2, 3]}, 6, {"x": [2, 2, 0]}),
    ('mse_loss(x, [1, 2], reduction="sum")', {"x": [3, 3]}, 5, {"x": [4, 2]}),
    ("log_softmax(-x)[0]", {"x": [0, 0]}, -math.log(2), {"x": [-0.5, 0.5]}),
    ("x*(x > 0)", {"x": 2}, 2, {"x": 1}),
    ("1/2x", {"x": 4}, 2, {"x": 0.5}),
    ("2x^2", {"x": 3}, 18, {"x": 12}),
    ("-x**2", {"x": 3}, -9, {"x": -6}),
    ("grad(x**3, x)", {"x": 2}, 12, {"x": 12}),
    ("grad(x**4, x, 3)", {"x": 2}, 48, {"x": 24}),
    ("a = x*x; c = x*x\ngrad(a + 3*c, a) + 0*x", {"x": 2}, 1, {"x": 0}),
    ("y = x**2\ngrad(y**2, y)", {"x": 3}, 18, {"x": 12}),
    ("laplacian(sum(w**3), w)", {"w": [1, 2]}, 18, {"w": [6, 6]}),
    ("sum(hvp(sum(w**3), w, w))", {"w": [1, 2]}, 30, {"w": [12, 24]}),
    ("sum(jvp(w**2, w, [1, 0]))", {"w": [3, 2]}, 6, {"w": [2, 0]}),
    ("sum(vjp(w**2, w, [1, 0]))", {"w": [3, 2]}, 6, {"w": [2, 0]}),
    ("sum(jacobian(w**2, w))", {"w": [3, 2]}, 10, {"w": [2, 2]}),
    ("sum(hessian(sum(w**3), w))", {"w": [3, 2]}, 30, {"w": [6, 6]}),
    ("x*detach(x)", {"x": 3}, 9, {"x": 3}),
    ("ste(round(x), x**2)", {"x": 1.4}, 1, {"x": 2.8}),
    ("where(x > 0, sqrt(x), 0)", {"x": -1}, 0, {"x": 0}),
    ("pi*e*x", {"x": 1}, math.pi * math.e, {"x": math.pi * math.e}),
    ("e*x", {"x": 2, "e": 3}, 6, {"x": 3, "e": 2}),
    ("gamma = 2\ngamma*x", {"x": 3}, 6, {"gamma": 3, "x": 2}),
    ("a, b = 2, 3\na*b", {}, 6, {"a": 3, "b": 2}),
    ("x in (0, 1) = 0.5\nx**2", {}, 0.25, {"x": 1}),
    ("W[2, 2] in real = 1\nsum(W)", {}, 4, {"W": [[1, 1], [1, 1]]}),
    ("np.exp(0*x) + torch.sin(0*x)", {"x": 3}, 1, {"x": 0}),
    ("x.sum(axis=0)", {"x": [1, 2]}, 3, {"x": [1, 1]}),
    ("[x, 2, x*y]@[1, 1, 1]", {"x": 3, "y": 2}, 11, {"x": 3, "y": 3}),
    ("A.T[0, 1]", {"A": [[1, 2], [3, 4]]}, 3, {"A": [[0, 0], [1, 0]]}),
    ("sum(x[::-1]*[1, 2, 3])", {"x": [1, 2, 3]}, 10, {"x": [3, 2, 1]}),
    ("x[[0, 0, 2]].sum()", {"x": [1, 2, 3]}, 5, {"x": [2, 0, 1]}),
    ("len(x)*x[-1]", {"x": [1, 2, 3]}, 9, {"x": [0, 0, 3]}),
    ("0.1 + 0.2 + 0*x", {"x": 1}, 0.1 + 0.2, {"x": 0}),
]


@all_rows(("script", "at", "value", "gradient"), VALUES, ids=[row[0] for row in VALUES])
def test_value_and_gradient(script: str, at: dict, value: float, gradient: dict) -> None:
    found = gradcli.grad(script, at=at)
    assert found.value == pytest.approx(value, rel=1e-14)
    assert set(found.gradient) == set(gradient)
    for name, expected in gradient.items():
        np.testing.assert_allclose(found.gradient[name], expected, rtol=1e-13)
    lowered(script, at={k: np.asarray(v, float) if isinstance(v, list) else float(v) for k, v in at.items()})


FACTORS = [  # script, matrix without entries, what NumPy gives
    ("eigh(x)", np.zeros((0, 0)), np.linalg.eigh),
    ("svd(x)", np.zeros((0, 0)), np.linalg.svd),
    ("svd(x, False)", np.zeros((0, 2)), lambda x: np.linalg.svd(x, False)),
    ("svd(x, False)", np.zeros((2, 0)), lambda x: np.linalg.svd(x, False)),
]


@pytest.mark.parametrize(("script", "x", "reference"), FACTORS)
def test_factors_of_matrices_without_entries(script: str, x: np.ndarray, reference: Callable) -> None:
    parts = gradcli.evaluate(script, at={"x": x}).value
    assert [np.shape(part) for part in parts] == [part.shape for part in reference(x)]


@pytest.mark.parametrize(
    ("script", "part"),
    [
        ("polygamma(1.5, x)", "not 1.5"), ("lambertw(x, 1)", "not 1"), ("huber_loss(x, x, -0.5)", "reduction=-0.5"),
        ("grad(x**2, x, 2.5)", "not 2.5"), ("tensordot([x], [x], [0.5])", "not (0.5)"), ('einsum("i,j", [x])', "1 is given"),
    ],
)  # fmt: skip
def test_numbers_in_messages_are_written_as_in_scripts(script: str, part: str) -> None:
    with pytest.raises(GradcliError) as caught:
        gradcli.evaluate(script, at={"x": 1.5})
    assert part in caught.value.diagnostics[0].message


# script, point, the codes of all its errors
ERRORS = [
    ("sine(x)", {"x": 1}, ["GC201"]),
    ("x + y", {"x": 1}, ["GC202"]),
    ("x = 2\nx(3)", {}, ["GC203"]),
    ("def f(a): return f(a)\nf(x)", {"x": 1}, ["GC204"]),
    ("def f(a): return g(a)\ndef g(a): return f(a)\nf(x)", {"x": 1}, ["GC204"]),
    ("sin(x, x)", {"x": 1}, ["GC205"]),
    ("sin()", {}, ["GC205"]),
    ("sum(x, axes=0)", {"x": [1]}, ["GC205"]),
    ("def f(a, b): return a\nf(x)", {"x": 1}, ["GC205"]),
    ("const k = 2\ngrad(k*x, k)", {"x": 1}, ["GC207"]),
    ("const k = 2*x\nk*x", {"x": 1}, ["GC214"]),
    ("flip((1, 2))*x", {"x": 1}, ["GC309"]),
    ("()", {}, ["GC101"]),
    ("x in [0, 4] = 0.5a\nx", {}, ["GC202"]),
    ("x in [a, 4] = 1\nx", {}, ["GC202"]),
    ("x in [0, a]\nx", {"x": 1}, ["GC202"]),
    ("f(x) = ()\nf(x)", {"x": 1}, ["GC101"]),
    ("grad(x**2, x + 1)", {"x": 1}, ["GC207"]),
    ("y = x\nx = 3\ny", {}, ["GC208"]),
    ("w = [1, 2]\nw[0] = 3\nsum(w)", {}, ["GC119"]),
    ("x = 3\nx = x**2\nx", {}, ["GC209"]),
    ("1 + 1", {}, ["GC209"]),
    ("a + b", {"a": [1, 2, 3], "b": [1, 2, 3, 4]}, ["GC301"]),
    ("A @ B", {"A": [[1, 2]], "B": [[1, 2]]}, ["GC302"]),
    ("sum(x, axis=1)", {"x": [1, 2]}, ["GC303"]),
    ("x[5]", {"x": [1, 2]}, ["GC305"]),
    ("for i in range(x): y = i\ny", {"x": 0.5}, ["GC306"]),
    ("for i in range(n): y = i\ny", {}, ["GC306"]),
    ("x", {"x": [1, 2]}, ["GC307"]),
    ("grad(x, x)", {"x": [1, 2]}, ["GC307"]),
    ("if x > 0: y = x\nelse: y = -x\ny", {"x": 0.5}, ["GC308"]),
    ("(x, y) + 1", {"x": 1, "y": 2}, ["GC309"]),
    ("[[1, 2], [3]]*x", {"x": 1}, ["GC310"]),
    ("n = 3\nfor i in range(n): s = x**i\ngrad(s*n, n)", {"x": 2}, ["GC311"]),
    ("a, b = x", {"x": 2}, ["GC312"]),
    ("w[3] = [1, 2]\nsum(w)", {}, ["GC313"]),
    ("W[2] in real\nsum(W)", {"W": [1, 2, 3]}, ["GC313"]),
    ("assert x > 0\nx", {"x": 1}, ["GC314"]),
    ("y = sine(x)\nz = y + 1\nw = cosine(x)\nz + w", {"x": 1}, ["GC201", "GC201"]),
    ("def f.vjp(a, ct): return ct\nx", {"x": 1}, ["GC212"]),
    ("def f(a): return a*x\ndef f.vjp(a, ct): return ct*x\nf(y)", {"x": 1, "y": 2}, ["GC212"]),
]


@all_rows(("script", "at", "expected"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors_have_codes(script: str, at: dict, expected: list[str]) -> None:
    assert codes(script, at) == expected


def test_errors_have_spans_and_the_source() -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        gradcli.grad("x = 2\ny = a + b", at={"a": [1, 2, 3], "b": [1, 2, 3, 4]})
    (diagnostic,) = caught.value.diagnostics
    assert tuple(diagnostic.span) == (2, 5, 2, 10)
    assert [text for _, text in diagnostic.labels] == ["f64[3]", "f64[4]"]
    assert diagnostic.source.line(2) == "y = a + b"


@pytest.mark.parametrize(
    ("script", "gradient"),
    [
        ("sum(y[c[i]] for i in range(n))", [1, 0, 1]),
        ("sum(y[c[i]]*h[i] for i in range(n))", [7, 0, 5]),
        ("sum(y[c[i - 1]]*h[i - 1] for i in range(1, n + 1))", [7, 0, 5]),
        ("sum(A[i, c[i]]*y[c[i]] for i in range(n))", [6, 0, 3]),
    ],
)
def test_labels_are_read_by_a_range_without_a_size(script: str, gradient: list[float]) -> None:
    point = {"y": [1, 2, 3], "c": [2, 0], "h": [5, 7], "A": [[1, 2, 3], [6, 5, 4]]}
    found = gradcli.grad(script, at=point, wrt=["y"])
    assert np.asarray(found.gradient["y"]).tolist() == gradient


def test_a_static_leaf_becomes_const_with_a_note() -> None:
    found = gradcli.grad("n = 3\ns = 0\nfor i in range(n): s = s + x**i\ns", at={"x": 2})
    assert set(found.gradient) == {"x"}
    assert [d.code for d in found.diagnostics] == ["GC311"]
    again = gradcli.grad("n = 3\ns = 0\nfor i in range(n): s = s + x**i\ns", at={"x": 2, "n": 4})
    assert again.value == 15


def test_an_exponent_leaf_gets_a_note() -> None:
    found = gradcli.grad("n = 3\nx**n", at={"x": 2})
    assert "GC210" in [d.code for d in found.diagnostics]
    assert not gradcli.grad("exp(1)**x + 2**x", at={"x": 2}).diagnostics


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("D(x**2, x)", "a derivative is grad(y, x), or grad(y, x, n)"),
        ("diff(x**2, x)", "a derivative is grad(y, x)"),
        ("x.^2", "write ^ alone: operators work entry by entry"),
        ("x.*x", "write * alone: operators work entry by entry"),
    ],
)
def test_what_other_languages_write_names_the_cure(text: str, cure: str) -> None:
    with pytest.raises(GradcliError) as caught:
        gradcli.grad(text, at={"x": 2})
    assert caught.value.diagnostics[0].help == cure


def test_unknown_names_in_the_point_are_noted() -> None:
    found = gradcli.grad("alpha*2", at={"alpha": 2, "alpah": 3})
    (note,) = found.diagnostics
    assert note.severity == "note"
    assert "alpha" in note.help


def test_wrt_may_name_what_the_output_does_not_use() -> None:
    found = gradcli.grad("x**2", at={"x": 2, "y": [1, 2]}, wrt=["y"])
    np.testing.assert_array_equal(found.gradient["y"], [0, 0])
    assert codes("x**2", {"x": 2}, wrt=["z"]) == ["GC206"]


def test_claims_and_rules_are_collected() -> None:
    script = """
def f(a, b): return a*sin(b)
def f.vjp(a, b, ct): return (ct*sin(b), ct*a*cos(b))
x = 1.5
y = 0.5
loss = f(x, y)**2
assert grad(loss, x) == 2*f(x, y)*sin(y)   # rtol=1e-8
assert 2*loss == loss + loss
loss
"""
    found = lowered(script)
    claim, identity = found.claims
    assert claim.leaf == "x"
    assert claim.rtol == 1e-8
    assert claim.derivative is not None
    assert identity.leaf is None
    assert identity.derivative is None
    (rule,) = found.rules
    assert rule.name == "f"
    assert [leaf.name for leaf in rule.leaves] == ["a", "b"]
    assert len(rule.results) == 2


def test_a_hand_written_rule_is_what_the_engine_uses() -> None:
    script = "def f(a): return a**2\ndef f.vjp(a, ct): return 5*ct\nf(x) + x"
    assert gradcli.grad(script, at={"x": 3}).gradient == {"x": 6.0}
    forward = gradcli.grad(script.replace("f(x) + x", "jvp(f(x), x, 1)"), at={"x": 3})
    assert forward.value == 5.0


def test_claims_given_from_outside_see_names_and_the_point() -> None:
    found = lower(parse("t = x*x\nt*y"), at={"x": 2.0, "y": 3.0, "k": 2.0}, claims={"x": "k*x*y"})
    (claim,) = found.claims
    assert claim.leaf == "x"
    assert found.program.leaves["k"].const
    with pytest.raises(gradcli.GradcliError) as caught:
        lower(parse("t = x*x\nt*y"), at={"x": 2.0, "y": 3.0}, claims={"x": "s"})
    assert caught.value.diagnostics[0].code == "GC202"


def test_limits_are_named() -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        gradcli.grad("s = 0\nfor i in range(1000): s = s + x*i\ns", at={"x": 1}, limits=Limits(nodes=100))
    assert caught.value.diagnostics[0].code == "GC505"
    assert codes("sum(zeros(10**6, 10**6)*x)", {"x": 1})[0].startswith("GC5")


def test_random_arrays_without_seed_differ_by_position() -> None:
    assert gradcli.evaluate("sum(abs(randn(3) - randn(3))) > 0").value == 1.0
    assert gradcli.evaluate("sum(abs(randn(3, seed=1) - randn(3, seed=1)))").value == 0.0
