"""The functions of neural networks, steady from -inf to inf: sigmoids and soft maxima, rectifiers, gates."""

from __future__ import annotations

from fractions import Fraction

from gradcli.graph.domain import REAL, Closed, Open
from gradcli.graph.primitive import Kink, Primitive, composite, elementwise
from gradcli.primitives.axes import require_option
from gradcli.primitives.comparison import and_, or_, where
from gradcli.primitives.exponential import exp, expm1
from gradcli.primitives.gamma_functions import erfc
from gradcli.primitives.hyperbolic import tanh
from gradcli.primitives.powers import sqrt
from gradcli.primitives.steps import step
from gradcli.primitives.trigonometric import PI

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# --- sigmoids and soft maxima: exp is only taken of what is not positive ----------------------------------


def _tail(xp: Any, x: Any) -> tuple[Any, Any]:
    """Where x is not negative, and exp(-|x|); without `abs`, so that complex numbers pass too."""
    right = x >= 0
    return right, xp.exp(xp.where(right, -x, x))


def _sigmoid_value(xp: Any, x: Any) -> Any:
    right, tail = _tail(xp, x)
    return xp.where(right, 1.0, tail) / (1.0 + tail)


def _softplus_value(xp: Any, x: Any) -> Any:
    right, tail = _tail(xp, x)
    return xp.where(right, x, 0.0) + xp.log1p(tail)


def _logsigmoid_value(xp: Any, x: Any) -> Any:
    right, tail = _tail(xp, x)
    return xp.where(right, 0.0, x) - xp.log1p(tail)


sigmoid: Primitive = elementwise(
    "sigmoid",
    "Logistic function.",
    impl=_sigmoid_value,
    symbolic=lambda sp, x: 1 / (1 + sp.exp(-x)),
    ball=lambda fl, x: 1 / (1 + (-x).exp()),
    partials=lambda x, *, out: (out * sigmoid(-x),),
    aliases=("expit",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("sigmoid(0)", 0.5), ("sigmoid(1)", 0.7310585786300049), ("sigmoid(-800)", 0)],
    node="SigmoidBackward0",
    formula="1/(1 + exp(-x))",
    names="scipy.special.expit torch. torch.special.expit jax.nn. jax.lax.logistic",
    elementary="1/(1 + exp(-x))",
    steady="where(x >= 0, 1, exp(-abs(x)))/(1 + exp(-abs(x)))",
    traits="saturates",
)

logit = elementwise(
    "logit",
    "Inverse of the logistic function: the logarithm of the odds.",
    impl=lambda xp, x: xp.logit(x),
    symbolic=lambda sp, x: sp.log(x) - sp.log(1 - x),
    ball=lambda fl, x: (x / (1 - x)).log(),
    partials=lambda x, *, out: (1 / (x * (1 - x)),),
    domain=[Open(0, 1)],
    sample=[Closed(0.1, 0.9)],
    examples=[("logit(0.5)", 0), ("logit(0.25)", -1.0986122886681098)],
    node="LogitBackward0",
    formula="log(x/(1 - x))",
    names="scipy.special. torch. torch.special. jax.scipy.special.",
    elementary="log(x) - log(1 - x)",
)

logsigmoid = elementwise(
    "logsigmoid",
    "Logarithm of the logistic function.",
    impl=_logsigmoid_value,
    symbolic=lambda sp, x: -sp.log(1 + sp.exp(-x)),
    ball=lambda fl, x: -(-x).exp().log1p(),
    partials=lambda x, *, out: (sigmoid(-x),),
    aliases=("log_sigmoid", "log_expit"),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("logsigmoid(1)", -0.31326168751822286), ("logsigmoid(-800)", -800)],
    node="LogSigmoidBackward0",
    formula="log(1/(1 + exp(-x)))",
    names="scipy.special.log_expit torch.nn.functional. jax.nn.log_sigmoid aten.log_sigmoid_forward",
    steady="minimum(x, 0) - log1p(exp(-abs(x)))",
    traits="saturates",
)

softplus = elementwise(
    "softplus",
    "log(1 + exp(x)), a smooth relu.",
    impl=_softplus_value,
    symbolic=lambda sp, x: sp.log(1 + sp.exp(x)),
    ball=lambda fl, x: x.exp().log1p(),
    partials=lambda x, *, out: (sigmoid(x),),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("softplus(0)", 0.6931471805599453), ("softplus(800)", 800)],
    node="SoftplusBackward0",
    formula="log(1 + exp(x))",
    names="scipy.special. torch.nn.functional. jax.nn.",
    elementary="log(1 + exp(x))",
    steady="maximum(x, 0) + log1p(exp(-abs(x)))",
    traits="saturates",
)

logaddexp = elementwise(
    "logaddexp",
    "log(exp(x) + exp(y)), without overflow.",
    impl=lambda xp, x, y: xp.logaddexp(x, y),
    symbolic=lambda sp, x, y: sp.log(sp.exp(x) + sp.exp(y)),
    ball=lambda fl, x, y: (x.exp() + y.exp()).log(),
    partials=lambda x, y, *, out: (sigmoid(x - y), sigmoid(y - x)),
    domain=[REAL, REAL],
    sample=[Closed(-2, 2), Closed(-2, 2)],
    examples=[("logaddexp(0, 0)", 0.6931471805599453), ("logaddexp(800, -800)", 800)],
    node="LogaddexpBackward0",
    formula="log(exp(x) + exp(y))",
    names="numpy. torch.",
    elementary="log(exp(x) + exp(y))",
    steady="maximum(x, y) + log1p(exp(-abs(x - y)))",
)

# --- rectifiers: at a kink the slope that PyTorch returns ----------------------------------------------------

relu = elementwise(
    "relu",
    "x where it is positive, else 0.",
    impl=lambda xp, x: xp.maximum(x, 0.0),
    symbolic=lambda sp, x: x if sp.sign_at_point(x) > 0 else sp.Integer(0),
    ball=lambda fl, x: x if fl.sign(x) > 0 else fl.integer(0),
    partials=lambda x, *, out: (step(out),),
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "0")],
    sample=[Closed(0.2, 2)],
    examples=[("relu([-2, 3])", [0, 3])],
    node="ReluBackward0",
    formula="max(x, 0)",
    names="torch. jax.nn.",
    traits="chooses keeps_whole",
    elementary="x*(x > 0)",
    steady="maximum(x, 0)",
)


def leaky_relu_call(x: Any, slope: Any = 0.01) -> Any:
    """PyTorch's `leaky_relu`; the slope may be an operand."""
    return leaky_relu(x, slope)


leaky_relu: Primitive = elementwise(
    "leaky_relu",
    "x where it is positive, else slope*x.",
    impl=lambda xp, x, slope: xp.where(x > 0, x, slope * x),
    symbolic=lambda sp, x, slope: x if sp.sign_at_point(x) > 0 else slope * x,
    ball=lambda fl, x, slope: x if fl.sign(x) > 0 else slope * x,
    partials=lambda x, slope, *, out: (where(x > 0, 1, slope), where(x > 0, 0, x)),
    call=leaky_relu_call,
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, slope: x, "x = 0", "slope in x")],
    sample=[Closed(-2, -0.2), Closed(0, 1)],
    examples=[("leaky_relu([-2, 3])", [-0.02, 3]), ("leaky_relu(-2, 0.5)", -1)],
    node="LeakyReluBackward0",
    formula="x if x > 0 else slope*x",
    names="torch.nn.functional. jax.nn.",
    elementary="where(x > 0, x, slope*x)",
)


def elu_call(x: Any, alpha: Any = 1) -> Any:
    """PyTorch's `elu`; alpha may be an operand."""
    return elu(x, alpha)


elu: Primitive = elementwise(
    "elu",
    "x where it is positive, else alpha*(exp(x) - 1).",
    impl=lambda xp, x, alpha: xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0.0))),
    symbolic=lambda sp, x, alpha: x if sp.sign_at_point(x) > 0 else alpha * (sp.exp(x) - 1),
    ball=lambda fl, x, alpha: x if fl.sign(x) > 0 else alpha * x.expm1(),
    partials=lambda x, alpha, *, out: (where(x > 0, 1, alpha * exp(x)), where(x > 0, 0, expm1(x))),
    call=elu_call,
    domain=[REAL, REAL],
    kinks=[Kink(lambda x, alpha: x, "x = 0", "alpha in x")],
    sample=[Closed(-2, -0.2), Closed(0.5, 2)],
    examples=[("elu([-1, 3])", [-0.6321205588285577, 3])],
    node="EluBackward0",
    formula="x if x > 0 else alpha*(exp(x) - 1)",
    names="torch.nn.functional. jax.nn.",
    elementary="where(x > 0, x, alpha*expm1(x))",
)

# The fixed point (mean 0, variance 1) of Klambauer et al., "Self-Normalizing Neural Networks", 2017.
SELU_ALPHA = Fraction("1.6732632423543772848170429916717")
SELU_SCALE = Fraction("1.0507009873554804934193349852946")

selu = composite(
    "selu",
    "Scaled elu, which keeps the mean near 0 and the variance near 1.",
    definition=lambda x: SELU_SCALE * elu(x, SELU_ALPHA),
    pointwise=True,
    arity=1,
    domain=[REAL],
    kinks=[Kink(lambda x: x, "x = 0", "1.7580993408473766")],
    sample=[Closed(-2, -0.2)],
    examples=[("selu([-1, 2])", [-1.1113307378125625, 2.101401974710961])],
    node="EluBackward0",
    formula="1.0507*elu(x, 1.6733)",
    names="torch. jax.nn.",
)

hardtanh = elementwise(
    "hardtanh",
    "x limited to the interval from -1 to 1.",
    impl=lambda xp, x: xp.minimum(xp.maximum(x, -1.0), 1.0),
    symbolic=lambda sp, x: _between(sp.sign_at_point, x, sp.Integer(-1), sp.Integer(1)),
    ball=lambda fl, x: _between(fl.sign, x, fl.integer(-1), fl.integer(1)),
    partials=lambda x, *, out: (where(or_(x <= -1, x >= 1), 0, 1),),
    aliases=("hard_tanh",),
    domain=[REAL],
    kinks=[Kink(lambda x: x + 1, "x = -1", "0"), Kink(lambda x: x - 1, "x = 1", "0")],
    sample=[Closed(-0.8, 0.8)],
    examples=[("hardtanh([-3, 0.5])", [-1, 0.5])],
    node="HardtanhBackward0",
    formula="min(max(x, -1), 1)",
    names="torch.nn.functional. jax.nn.hard_tanh",
    elementary="minimum(maximum(x, -1), 1)",
)


def _between(sign: Any, x: Any, low: Any, high: Any) -> Any:
    return low if sign(x - low) < 0 else high if sign(x - high) > 0 else x


hardsigmoid = elementwise(
    "hardsigmoid",
    "A sigmoid made of three straight lines.",
    impl=lambda xp, x: xp.minimum(xp.maximum(x + 3.0, 0.0), 6.0) / 6.0,
    symbolic=lambda sp, x: _between(sp.sign_at_point, (x + 3) / 6, sp.Integer(0), sp.Integer(1)),
    ball=lambda fl, x: _between(fl.sign, (x + 3) / 6, fl.integer(0), fl.integer(1)),
    partials=lambda x, *, out: (where(and_(x > -3, x < 3), Fraction(1, 6), 0),),
    aliases=("hard_sigmoid",),
    domain=[REAL],
    kinks=[Kink(lambda x: x + 3, "x = -3", "0"), Kink(lambda x: x - 3, "x = 3", "0")],
    sample=[Closed(-2, 2)],
    examples=[("hardsigmoid([-4, 0, 1.5])", [0, 0.5, 0.75])],
    node="HardsigmoidBackward0",
    formula="min(max(x + 3, 0), 6)/6",
    names="torch.nn.functional. jax.nn.hard_sigmoid",
    elementary="minimum(maximum(x + 3, 0), 6)/6",
)

# --- gates: x times a smooth step ------------------------------------------------------------------------------

silu = composite(
    "silu",
    "x*sigmoid(x).",
    definition=lambda x: x * sigmoid(x),
    pointwise=True,
    arity=1,
    aliases=("swish",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("silu(1)", 0.7310585786300049)],
    node="SiluBackward0",
    formula="x*sigmoid(x)",
    names="torch.nn.functional. jax.nn.",
)

mish = composite(
    "mish",
    "x*tanh(softplus(x)).",
    definition=lambda x: x * tanh(softplus(x)),
    pointwise=True,
    arity=1,
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("mish(1)", 0.8650983882673103)],
    node="MishBackward0",
    formula="x*tanh(softplus(x))",
    names="torch.nn.functional. jax.nn.",
)


def _gelu(x: Any, approximate: str = "none") -> Any:
    """x times the normal distribution function, by erfc (steady in the tail) or by the usual fit with tanh."""
    require_option(approximate, ("none", "tanh"), "approximate", "gelu")
    if approximate == "tanh":
        # (1 + tanh(u))/2 is sigmoid(2*u), which does not cancel
        return x * sigmoid(2 * sqrt(2 / PI) * (x + 0.044715 * x**3))
    return x * erfc(-x / sqrt(2)) / 2


gelu = composite(
    "gelu",
    "x times the normal distribution function, or its approximation by a tanh.",
    definition=_gelu,
    pointwise=True,
    arity=1,
    static=("approximate",),
    domain=[REAL],
    sample=[Closed(-2, 2)],
    examples=[("gelu(1)", 0.8413447460685429), ('gelu(1, approximate="tanh")', 0.8411919906082768)],
    node="GeluBackward0",
    formula="x*Φ(x)",
    names="torch.nn.functional.",
    traits="saturates",
)
