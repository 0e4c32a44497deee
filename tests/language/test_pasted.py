"""Lines that people paste from NumPy, SciPy, PyTorch and JAX mean what they mean there, or one line names the way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator import evaluate, grad
from tests.support.rows import all_rows

X = np.array([[1.0, 2.0], [3.0, 5.0]])
LIST = "x = [[1, 2], [3, 5]]\n"

VALUES: list[tuple[str, Any]] = [
    ("np.array([1.0, 2.0]) + 1", [2, 3]),
    ("x = np.array([1.0, 2.0], dtype=np.float64)\nnp.sum(x**2)", 5),
    ("x = torch.tensor([1.0, 2.0], requires_grad=True, dtype=torch.float32, device='cpu')\nx.sum(dim=0)", 3),
    ("np.zeros(2, dtype=float) + 1", [1, 1]),
    ("torch.cat([[1, 2], [3]], dim=0)", [1, 2, 3]),
    (LIST + "[a**2 for a in x]", X**2),
    (LIST + "sum(row[0]*row[1] for row in x)", 17),
    ("path = []\nfor i in range(3):\n    path.append(i**2)\nnp.array(path)", [0, 1, 4]),
    ("rows = []\nfor i in range(2):\n    rows.append([i, 1])\nnp.vstack(rows)", [[0, 1], [1, 1]]),
    ("np.stack([np.array([i, 1]) for i in range(2)], axis=1)", [[0, 1], [1, 1]]),
    (LIST + "x.mean(-1, keepdim=True)", [[1.5], [4]]),
    (LIST + "torch.nn.functional.softmax(x, dim=0)", scipy.special.softmax(X, 0)),
    (LIST + "F.softmax(x, dim=-1)", scipy.special.softmax(X, -1)),
    (LIST + "scipy.special.softmax(x)", scipy.special.softmax(X)),
    (LIST + "special.log_softmax(x, 1)", scipy.special.log_softmax(X, 1)),
    (LIST + "torch.std(x)", X.std(ddof=1)),
    (LIST + "torch.var(x, dim=0)", X.var(axis=0, ddof=1)),
    (LIST + "torch.var(x, correction=0)", X.var()),
    (LIST + "np.std(x)", X.std()),
    (LIST + "x.std(ddof=1)", X.std(ddof=1)),
    (LIST + "x.permute(1, 0).clone().view(4)", [1, 3, 2, 5]),
    (LIST + "torch.mm(x, x)", X @ X),
    ("F = [[1, 2], [3, 5]]\nF.sum()", 11),  # a name that is used elsewhere is no module
    ("sp = 4\nsp.sqrt()", 2),
    ("F.leaky_relu(-2, 0.5)", -1),
    ("F.binary_cross_entropy_with_logits([0, 0], [1, 0])", np.log(2)),
    ("sp.sqrt(4)", 2),
    ("scipy.special.expit(0)", 0.5),
    ("sp.special.expit(0)", 0.5),
    ("special.gammaln(5)", np.log(24)),
    ("jax.numpy.square(3)", 9),
    ("jax.nn.relu(-1)", 0),
    ("jax.scipy.special.logsumexp([0, 0])", np.log(2)),
    ("jnp.linalg.norm([3, 4])", 5),
    ("torch.linalg.det([[1, 2], [3, 5]])", -1),
    ("torch.special.erf(1)", scipy.special.erf(1)),
    ("scipy.stats.norm.logpdf(1, 0, 2)", scipy.stats.norm.logpdf(1, 0, 2)),
    ("stats.norm.cdf(0.3)", scipy.stats.norm.cdf(0.3)),
    ("norm.ppf(0.3)", scipy.stats.norm.ppf(0.3)),
    ("jax.scipy.stats.gamma.logpdf(1.5, 2)", scipy.stats.gamma.logpdf(1.5, 2)),
    ("x = 3\nt.logpdf(x, 4)", scipy.stats.t.logpdf(3, 4)),
    ("y = [1, 2, 4]\nnp.trapz(y, dx=2)", 9),
    ("math.factorial(5)", 120),
    (LIST + "abs(np.fft.fft(x))", abs(np.fft.fft(X))),
    (LIST + "np.fft.rfft(x, axis=0).imag", np.fft.rfft(X, axis=0).imag),
    (LIST + "S = np.fft.fft(x, 3)/2\nabs(S[:, 1:])**2", abs(np.fft.fft(X, 3)[:, 1:] / 2) ** 2),
    (LIST + "np.real(np.fft.ifft(np.fft.fft(x)*np.fft.fft([1, -1])))", X - X[:, ::-1]),
    ("np.fft.fftshift(np.fft.fftfreq(5, 0.2))", np.fft.fftshift(np.fft.fftfreq(5, 0.2))),
    ("x = [0, 90]\nnp.deg2rad(x)", [0, np.pi / 2]),
]


@all_rows(("script", "value"), VALUES)
def test_means_what_it_means_there(script: str, value: Any) -> None:
    found = evaluate(script).value
    assert np.shape(found) == np.shape(value)
    np.testing.assert_allclose(found, value, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("script", ["F.sum()", "F.sum(0)", "F.mean(axis=0)*2", "sum(F.softmax(axis=0)) + 2"])
def test_a_leaf_with_the_name_of_a_module_has_methods(script: str) -> None:
    assert evaluate(script, at={"F": [1.0, 2.0]}).value == pytest.approx(3)


def test_a_leaf_that_is_made_of_an_array_has_a_gradient() -> None:
    found = grad("x = torch.tensor([1.0, 2.0], requires_grad=True)\ny = (x**2).sum()\ny").gradient["x"]
    assert np.array_equal(found, [2, 4])


# A script, the code of its first error, and a word of the help: what to write in its place.
REFUSALS: list[tuple[str, str, str]] = [
    ("x = [1, 2]\nnp.fft.fft(x)", "GC309", "abs(z)"),
    ("x = [1, 2]\nnp.exp(np.fft.fft(x))", "GC309", "abs(z)"),
    ("x = [1, 2]\nnp.fft.fft(x)**2", "GC309", "abs(z)"),
    ("x = [1, 2]\nx.real", "GC309", "leave out real"),
    ("stats.norm(0, 1).logpdf(2)", "GC201", "norm.logpdf(x"),
    ("norm.logpdf", "GC117", "norm.logpdf(x)"),
    ("x = np.float64", "GC117", "--dtype"),
    ("import numpy as np\n1", "GC118", "remove the line"),
    ("from scipy.special import erf\nerf(1)", "GC118", "remove the line"),
    ("x = 2\nprint(x)", "GC201", "last line"),
    ('x = 2\nprint("x is", x)', "GC110", "last line"),
    ('x = 2\nprint(f"x is {x}")', "GC110", "last line"),
    ("x = 2\nplt.plot(x, x)", "GC201", "gradcli graph"),
    ("np.random.seed(0)", "GC201", "seed=1"),
    ("torch.manual_seed(0)", "GC201", "seed=1"),
    ("rng = np.random.default_rng(0)", "GC201", "seed=1"),
    ("x = np.random.normal(0, 1, 3)", "GC201", "randn"),
    ("x = 2\ny = x**2\ny.backward()", "GC201", "grad(y, x)"),
    ("x = 2\nx.requires_grad_()", "GC201", "const"),
    ("x = 2\nx.astype(int)", "GC201", "float"),
    ("x = 2\nx.to('cuda')", "GC110", "strings"),
    ("f = lambda x: x**2\nf(2)", "GC118", "def f(x)"),
    ("x = [1, 2]\n[a*b for a, b in zip(x, x)]", "GC120", "x[i]"),
    ("x = [1, 2]\nsorted(a**2 for a in x)", "GC201", "gradcli ops"),
    ("x = [1, 2]\nnorm(a**2 for a in x)", "GC120", "norm([...])"),
    ("x = [1, 2]\n{a: a**2 for a in x}", "GC105", "list"),
    ("x = [1, 2]\n(a**2 for a in x)", "GC120", "[x**2 for x in xs]"),
    ("x = [0, 0]\nfor i in range(2):\n    x[i] = i", "GC119", "append"),
    ("x = [1, 2]\nx.extend([3])", "GC201", "gradcli ops"),
    ("path = []\npath.append(1).T", "GC137", "path.append(x)"),
    ("path = []\nfor i in range(3):\n    path += [i]\npath.append(1)", "GC215", "path.append(...)"),
    ("path = []\nfor i in range(3):\n    path = path + [i]\nsum(path)", "GC215", "path.append(x)"),
    ("x = [1, 2]\nx[0] = 1", "GC119", "where("),
    ("x = [1, 2]\nx[0] += 1", "GC119", "where("),
    ("class A:\n    pass", "GC118", "def f(a)"),
    ("x = 2\nwhile x > 0:\n    x = x - 1", "GC118", "for i in range"),
    ("with torch.no_grad():\n    x = 2", "GC118", "remove it"),
    ('if __name__ == "__main__":\n    x = 2', "GC110", "first line to its last"),
    ("x = [1, 2]\nfor i, v in enumerate(x):\n    y = v", "GC126", "range(n)"),
    ("x = [1, 2]\nfor v in x:\n    y = v", "GC126", "x[i]"),
    ("x = 2\nx if x > 0 else 0", "GC121", "where("),
    ("range(3)", "GC201", "arange"),
    ("list([1, 2])", "GC201", "[a, b]"),
    ("zip([1], [2])", "GC201", "for i in range"),
    ("int(2.5)", "GC201", "trunc"),
    ("isinstance(2, float)", "GC201", "shape(x)"),
    ('open("a.csv")', "GC110", "load"),
    ("x = 2\nscipy.optimize.minimize(x, x)", "GC201", "gradcli.compile"),
    ("torch.distributions.Normal(0, 1)", "GC201", "norm_logpdf"),
    ("nn.Linear(3, 2)", "GC201", "W @ x + b"),
    ("tf.reduce_sum([1, 2])", "GC201", "sum(x)"),
    ("5 // 2", "GC116", "floor"),
    ("5 % 2", "GC116", "mod"),
    ("a = b = 2", "GC115", "statement of its own"),
    ('{"a": 1}', "GC105", "list"),
    ('"""text"""\n2', "GC109", "comment"),
    ("x = 2\nassert x > 0, 'message'", "GC131", "comment"),
    ("x = 2\nreturn x", "GC125", "last expression"),
    ("def f(x: float) -> float:\n    return x\nf(2)", "GC124", "no types"),
    ("x = [1, 2]\nx.shape", "GC117", "shape(x)"),
    ("x = np.array([1, 2], dtype=int)", "GC205", "array(x)"),
]


@all_rows(("script", "code", "words"), REFUSALS)
def test_what_cannot_be_names_the_way_out(script: str, code: str, words: str) -> None:
    with pytest.raises(GradcliError) as caught:
        evaluate(script)
    first = caught.value.diagnostics[0]
    assert first.code == code
    assert first.help is not None
    assert "\n" not in first.help
    assert words in first.help
