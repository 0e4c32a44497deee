"""Operations for gradcli, one for each way to declare them."""

import scipy.special

import gradcli

# A formula: value, derivatives of every order, exact enclosures and proofs follow from it.
gated = gradcli.operation(
    "gated(x, b=1)",
    "x*sigmoid(b*x)",
    summary="x where b*x is large, 0 where -b*x is: swish with a slope (Ramachandran et al. 2017).",
    sample=[(-2, 2), (0.5, 2)],
    examples={"gated(0)": 0, "gated(1, 2)": 0.8807970779778823},
)

# A formula of arrays, with their shapes for the tests.
quadratic_form = gradcli.operation(
    "quadratic_form(A, x)",
    "x @ A @ x/2",
    summary="Half of x'Ax.",
    sample=[(-2, 2, (3, 3)), (-2, 2, (3,))],
    examples={"quadratic_form([[2, 0], [0, 4]], [1, 3])": 19},
)

# A formula for exact readings, and floats that do not overflow where exp does.
softmax2 = gradcli.operation(
    "softmax2(x, y)",
    "log(exp(x) + exp(y))",
    summary="A smooth maximum of two numbers.",
    value=lambda xp, x, y: xp.maximum(x, y) + xp.log1p(xp.exp(-abs(x - y))),
    partials={"x": "sigmoid(x - y)", "y": "sigmoid(y - x)"},
    sample=[(-2, 2), (-2, 2)],
    examples={"softmax2(0, 0)": 0.6931471805599453, "softmax2(1000, 0)": 1000},
)

# No formula: a value from a library, its partial derivative, and two exact readings written independently of both.
dawson = gradcli.operation(
    "dawson(x)",
    summary="Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.",
    value=scipy.special.dawsn,
    partials={"x": "1 - 2*x*out"},
    symbolic=lambda sp, x: sp.sqrt(sp.pi) / 2 * sp.exp(-x * x) * sp.erfi(x),
    ball=lambda fl, x: (-x * x).exp() * x.erfi() * fl.pi().sqrt() / 2,
    domain=["(-inf, inf)"],
    sample=[(-2, 2)],
    examples={"dawson(0)": 0, "dawson(1)": 0.5380795069127684},
)
