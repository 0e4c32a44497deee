"""Complex and single-precision results: which gradient a complex leaf gets, and what `--dtype float32` rounds.

The convention for complex leaves is PyTorch's, dL/d(conj z) of a real L: the vector along which L grows. For z = x + iy it is
dL/dx + i dL/dy, so differences in x and in y find it without any rule; PyTorch is asked too where it is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from tests.support.rows import all_rows

Z = {"z": 1 + 2j}
V = {"v": [1 + 2j, -0.5 + 1j, 2 - 1j]}
M = {"m": [[1 + 1j, 0.5], [0.25j, 2 - 1j]]}

HOLOMORPHIC = [
    ("z**2", Z), ("z**3 - 2*z", Z), ("exp(z)", Z), ("log(z)", Z), ("sqrt(z)", Z), ("1/z", Z), ("sin(z)*z", Z), ("cos(z)", Z),
    ("tan(z)", Z), ("sinh(z)", Z), ("tanh(z)", Z), ("asin(z)", Z), ("atan(z)", Z), ("asinh(z)", Z), ("acosh(z)", Z),
    ("expm1(z)", Z), ("log1p(z)", Z), ("log2(z)", Z), ("exp2(z)", Z), ("z**2.5", Z), ("z**z", Z), ("rsqrt(z)", Z),
    ("square(z)", Z), ("sigmoid(z)", Z), ("silu(z)", Z), ("sinc(z)", Z), ("sum(v*v)", V), ("prod(v)", V), ("mean(v**3)", V),
    ("sum(cumprod(v))", V), ("sum(v[::-1]*[1, 2, 3])", V), ("sum(cumsum(v)*v)", V), ("v @ [1, 2, 3]", V),
    ("det(m)", M), ("trace(m @ m)", M), ("sum(inv(m))", M), ("sum(solve(m, [1, 2]))", M), ("sum(expm(m))", M),
    ("sum(matrix_power(m, 3))", M), ("logdet(m)", M), ("sum(tanh(m.T))", M), ("sum(where([[1, 0], [0, 1]] > 0, m, m**2))", M),
]  # fmt: skip
REAL_VALUED = [
    ("abs(z)", Z), ("abs(z)**2", Z), ("abs(z**2 + 1)", Z), ("log(abs(z))", Z), ("sum(abs(v)**2)", V), ("mean(abs(v))", V),
    ("abs(sum(v))", V), ("abs(prod(v))", V), ("abs(det(m))", M), ("sum(abs(inv(m)))", M), ("abs(v @ [1, 2, 3])", V),
    ("l1_loss(v, [1, 2, 3])", V), ("abs(z)*z", Z), ("abs(z)**2*z", Z), ("norm(v)", V), ("std(v)", V), ("var(v)*v[0]", V),
    ("norm(v)*v[1]", V), ("std(v)**2*prod(v)", V),
]  # fmt: skip
PROGRAMS = [*HOLOMORPHIC, *REAL_VALUED]
IDS = [text for text, _ in PROGRAMS]


def gradient(text: str, at: dict[str, Any]) -> tuple[float, np.ndarray, list[str]]:
    found = calculator.grad(text, at=at, dtype="complex128")
    (value,) = found.gradient.values()
    return found.value, np.asarray(value), [one.code for one in found.diagnostics]


def real_part(text: str, at: dict[str, Any]) -> float:
    return float(np.real(calculator.evaluate(text, at=at, dtype="complex128").value))


@all_rows(("text", "at"), PROGRAMS, ids=IDS)
def test_gradient_is_the_direction_of_growth(text: str, at: dict[str, Any]) -> None:
    """dL/dx + i dL/dy by differences in the real and in the imaginary part of every entry."""
    value, found, _ = gradient(text, at)
    assert isinstance(value, float)
    ((name, z),) = at.items()
    z = np.asarray(z, complex)
    step = 2.0**-12
    for place in np.ndindex(*z.shape):
        parts = []
        for unit in (1, 1j):
            sides = []
            for k in (-2, -1, 1, 2):
                moved = z.copy()
                moved[place] += k * step * unit
                sides.append(real_part(text, {name: moved.tolist()}))
            parts.append((sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * step))
        expected = complex(*parts)
        assert abs(found[place] - expected) <= 1e-7 * max(1.0, abs(expected)), f"{found[place]}, not {expected}"


@pytest.mark.peers
@all_rows(("text", "at"), PROGRAMS, ids=IDS)
def test_gradient_as_pytorch_gives_it(text: str, at: dict[str, Any]) -> None:
    """The same number as `backward` on a complex128 tensor."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install gradcli[peers]")
    from tests.support import numpy_reading, peer_tables

    table, arrays = peer_tables.torch_tables()
    arrays = type("Complex", (arrays,), {"asarray": staticmethod(lambda x: torch.as_tensor(x).to(torch.complex128))})
    table["cumsum"] = lambda x: torch.cumsum(x, 0)
    table["solve"] = lambda a, b: torch.linalg.solve(a, b.to(a.dtype))
    table["logdet"] = lambda x: torch.log(torch.linalg.det(x))
    table["var"] = lambda x: torch.var(x, unbiased=False)
    table["std"] = lambda x: torch.std(x, unbiased=False)
    table["l1_loss"] = lambda x, y: torch.mean(torch.abs(x - y))
    table["expm1"] = lambda x: torch.exp(x) - 1
    table["where"] = lambda c, x, y: torch.where(c, x, y)
    table["silu"] = lambda x: x / (1 + torch.exp(-x))
    table["sinc"] = lambda x: torch.sin(torch.pi * x) / (torch.pi * x)
    if "[::-1]" in text:
        text = text.replace("v[::-1]", "flip(v)")
    ((name, z),) = at.items()
    leaf = torch.tensor(z, dtype=torch.complex128, requires_grad=True)
    if "> 0" in text:
        pytest.skip("PyTorch has no order of complex literals; differences judge it")
    value = numpy_reading.read(text, {name: leaf}, table, lambda x: torch.tensor(float(x), dtype=torch.float64), arrays)
    (value.real if value.is_complex() else value).backward()
    _, found, _ = gradient(text, at)
    assert np.allclose(found, leaf.grad.resolve_conj().numpy(), rtol=1e-10, atol=1e-12)


def test_real_part_is_said() -> None:
    """A complex output is read as its real part, with a note; a real one without."""
    assert "GC407" in gradient("z**2", Z)[2]
    assert gradient("abs(z)", Z)[2] == []
    assert gradient("z**2", {"z": 3 + 0j})[:2] == (9.0, np.asarray(6 + 0j))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("maximum(z, 1)", Z), ("max(v)", V), ("min(v)", V), ("sum(sort(v))", V), ("median(v)", V), ("z > 1", Z),
        ("where(z > 1, z, 0)", Z), ("relu(z)", Z), ("clamp(z, 0, 1)", Z), ("floor(z)", Z),
        ("z*(z <= 2)", Z), ("sum(take(v, argmax(v, keepdims=True)))", V), ("leaky_relu(z)", Z), ("hardtanh(z)", Z),
    ],
)  # fmt: skip
def test_complex_numbers_have_no_order(text: str, at: dict[str, Any]) -> None:
    """What compares complex values is an error with a span."""
    with pytest.raises(GradcliError) as problem:
        calculator.grad(text, at=at, dtype="complex128")
    assert problem.value.diagnostics[0].span is not None


def test_a_complex_point_needs_no_option() -> None:
    """A complex value makes every leaf complex; it is refused where float32 is requested."""
    with_option = calculator.grad("z**2", at=Z, dtype="complex128")
    assert calculator.grad("z**2", at=Z).gradient == with_option.gradient
    with pytest.raises(GradcliError):
        calculator.grad("z**2", at=Z, dtype="float32")


def test_complex_array_without_axes() -> None:
    """NumPy's 0-d arrays are numbers, complex ones too."""
    assert calculator.evaluate("z**2", at={"z": np.asarray(1 + 2j)}, dtype="complex128").value == -3 + 4j


# --- single precision -----------------------------------------------------------------------------------------------

SINGLE = [
    ("x/3", {"x": 1.0}),
    ("sin(x)*exp(x)", {"x": 0.7}),
    ("0.1 + x", {"x": 0.2}),
    ("log(1 + x)", {"x": 1e-9}),
    ("sum(v**2)", {"v": [0.1, 0.2, 0.3]}),
    ("logsumexp(v)", {"v": [0.1, 0.2, 0.3]}),
    ("mean(tanh(v))", {"v": [0.1, 0.2, 0.3]}),
    ("det(m)", {"m": [[1.1, 0.3], [0.2, 0.9]]}),
]


@pytest.mark.parametrize(("text", "at"), SINGLE, ids=[text for text, _ in SINGLE])
def test_single_precision(text: str, at: dict[str, Any]) -> None:
    """Every value is a float32, near the one in double precision, and as a rule not equal to it."""
    single = calculator.grad(text, at=at, dtype="float32")
    double = calculator.grad(text, at=at)
    assert single.value == float(np.float32(single.value))
    assert single.value == pytest.approx(double.value, rel=1e-5, abs=1e-7)
    for name, value in single.gradient.items():
        assert np.array_equal(value, np.asarray(value, np.float32))
        assert np.allclose(value, double.gradient[name], rtol=1e-5, atol=1e-6)
        if np.ndim(value):
            assert np.asarray(value).dtype == np.float32


def test_single_precision_is_single() -> None:
    """Each step is rounded, as NumPy rounds it; what is too large for it is infinite."""
    third = calculator.evaluate("x/3", at={"x": 1.0}, dtype="float32").value
    assert third == float(np.float32(1) / np.float32(3))
    assert calculator.evaluate("(1 + x) - 1", at={"x": 1e-8}, dtype="float32").value == 0.0
    assert calculator.evaluate("(1 + x) - 1", at={"x": 1e-8}).value != 0.0
    assert calculator.evaluate("x*x", at={"x": 1e30}, dtype="float32").value == float("inf")
    assert calculator.evaluate("exp(x)", at={"x": 100.0}, dtype="float32").value == float("inf")
    assert calculator.grad("x**2", at={"x": 0.1}, dtype="float32").gradient["x"] == float(2 * np.float32(0.1))
