"""A recording stands for a function only where it is the function: at the point, beside it and far away.

Whatever a recorder cannot see ends the recording, or is recorded; no wrong derivative passes by it, and what is right
keeps its proof. What is sent in fewer digits than the arguments have is IMPRECISE by the distance that was measured.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
from typing import Any

import numpy as np
import pytest

from gradcli import check_callable
from gradcli.checks.callables import recorded
from gradcli.recording.graphs import operations
from tests.support import recorded_functions as bodies

AT = np.array([1.0, 2.0, 3.0])
MATRIX = np.array([[1.0, 2.0], [3.0, 4.0]])
EXACT = np.array([0.5, 2.0, -1.5])  # twice these are numbers of every format
PLAIN = np.array([0.6234567, 2.1234567, -1.3765433])
WRONG = {"DISAGREES", "INCONCLUSIVE"}


def written(body: str, arguments: str = "", **names: Any) -> Any:
    """A derivative with this body, in a module of its own."""
    scope: dict[str, Any] = {"np": np, "copy": copy, "contextlib": contextlib, "STORE": {}, "LIST": [], "KEPT": None}
    scope["cached"] = functools.cache(lambda key: 2 * scope["STORE"][key])
    scope |= names
    name = arguments or ("A" if of_matrix(body) else "x, kept={}")
    exec(f"def derivative({name}):\n" + "\n".join(f"    {line}" for line in body.split("\n")), scope)
    return scope["derivative"]


def of_matrix(body: str) -> bool:
    return re.search(r"\bA\b", body) is not None


def squares(x: Any) -> Any:
    return (x * x).sum()


def of_numpy(body: str, at: Any = AT) -> Any:
    name, point = ("A", MATRIX) if of_matrix(body) else ("x", at)
    return check_callable(squares, written(body), at=(point,), names=[name])


def of_torch(body: str, at: Any = AT) -> Any:
    torch = pytest.importorskip("torch")
    back = written(body, "g, x", torch=torch)

    class Squares(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return squares(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return back(g, *ctx.saved_tensors)

    return check_callable(Squares, at=(torch.tensor(at),))


def of_jax(body: str, at: Any = AT) -> Any:
    jax = pytest.importorskip("jax")
    back = written(body, "g, x", jax=jax, jnp=jax.numpy)
    rule = jax.custom_vjp(squares)
    rule.defvjp(lambda x: (squares(x), x), lambda x, g: (back(g, x),))
    return check_callable(rule, at={"x": at}, names=["x"])


def rows(name: str) -> list[Any]:
    """The bodies of all three libraries under a name, each with what judges it."""
    judges = {"NUMPY": of_numpy, "TORCH": of_torch, "JAX": of_jax}
    tables = {library: getattr(bodies, f"{library}_{name}") for library in judges}
    marks = {"NUMPY": (), "TORCH": pytest.mark.peers, "JAX": pytest.mark.peers}
    return [
        pytest.param(judges[key], body, marks=marks[key])
        for key, table in tables.items()
        for listed in ([table] if isinstance(table, list) else table.values())
        for body in listed
    ]


@pytest.mark.parametrize(("judge", "body"), rows("WRONG"))
def test_nothing_that_a_recorder_could_miss_makes_a_wrong_derivative_pass(judge: Any, body: str) -> None:
    assert judge(body).checks[0].verdict in WRONG, judge(body)


@pytest.mark.parametrize(("judge", "body"), rows("RIGHT"))
def test_what_is_right_is_proved(judge: Any, body: str) -> None:
    assert judge(body).checks[0].verdict == "PROVED", judge(body)


@pytest.mark.parametrize(("judge", "body"), rows("FEWER"))
def test_fewer_digits_than_those_of_the_arguments_are_measured(judge: Any, body: str) -> None:
    """Also where the numbers at the point have no more digits than that."""
    for at in (EXACT, PLAIN):
        (check,) = judge(body, at).checks
        assert check.verdict in {"IMPRECISE", *WRONG}, check
        if check.verdict == "IMPRECISE" and "sent_off" in check.evidence:
            assert 1e-9 < check.evidence["sent_off"] < 1e-2
            assert "off by a relative" in check.message


def test_scalars_of_python_are_never_written_into() -> None:
    """`y = x; y *= x` leaves a number x alone, and changes an array."""

    def slope(x: Any) -> Any:
        y = x
        y *= x
        return 3 * x * y * y  # 3*x**5

    for f, verdict in ((lambda x: x**3, "DISAGREES"), (lambda x: x**6 / 2, "PROVED")):
        assert check_callable(f, slope, at=(1.0,)).checks[0].verdict == verdict


@pytest.mark.parametrize("scale", [1e-13, 1e-10, 0.0])
def test_each_entry_is_compared_relative_to_itself(scale: float) -> None:
    at = np.array([1e3, scale, 1.0])
    assert of_numpy("g = 2*x\nv = g[1:2]\nv *= 3\nreturn g", at).checks[0].verdict == "DISAGREES"
    assert of_numpy("g = 2*x\nv = g[1:2]\nv *= 1\nreturn g", at).checks[0].verdict == "PROVED"


def test_what_is_refused_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the flag is not looked at, a swallowed exception is recorded as if nothing had happened: by what is sent
    it shows all the same, and without that comparison nothing would show it."""
    body = "try: s = float(x[0])\nexcept: s = 1.0\nreturn 2*x*s"
    assert any("plain Python numbers" in note.message for note in of_numpy(body).diagnostics)
    monkeypatch.setattr(
        "gradcli.recording.graphs.numpy_graph.refuse", lambda reason: (_ for _ in ()).throw(TypeError(reason))
    )
    assert any("does not reproduce its gradient" in note.message for note in of_numpy(body).diagnostics)
    monkeypatch.setattr(recorded, "distance", lambda *_: 0.0)
    assert of_numpy(body).checks[0].verdict == "PROVED"


def test_rounding_is_no_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    for change in (np.around, np.sort, np.unique, lambda x: np.round(x, 5), lambda x: x.astype("f4"), np.trim_zeros):
        with pytest.raises(operations.Opaque):
            moved_by(change)
    assert moved_by(lambda x: x[::-1])


def moved_by(change: Any) -> Any:
    from gradcli.graph.node import Builder
    from gradcli.graph.types import Type
    from gradcli.primitives import catalogue

    leaf = Builder(catalogue()).fresh_leaf(Type("float", (4,)))
    return operations.moved(leaf.builder, [leaf], lambda arrays: change(arrays[0]), "it")


def test_an_option_that_is_not_read_is_named() -> None:
    report = check_callable(
        lambda A: np.linalg.norm(A, -2),
        lambda A: np.outer(np.linalg.svd(A)[0][:, -1], np.linalg.svd(A)[2][-1]),
        at=(np.array([[2.0, 1.0], [0.0, 1.0]]),),
    )
    assert report.checks[0].verdict == "AGREES"
    assert any("norm(..., -2) is not supported" in note.message for note in report.diagnostics)


def test_digits_of_a_model_in_single_precision_are_said() -> None:
    torch = pytest.importorskip("torch")
    report = check_callable(torch.nn.Linear(3, 2), at=AT)
    assert report.checks[0].verdict == "PROVED"
    assert any("right to" in note.message and "digits" in note.message for note in report.diagnostics)
