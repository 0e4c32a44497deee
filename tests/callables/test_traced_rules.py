"""Rules of PyTorch and JAX go in, proofs and refutations come out: right ones are never refused, wrong ones never passed.

Each case has a right rule and one with a typical mistake. What cannot be traced is named, and judged by its values.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import GradcliError, check_callable
from gradcli.checks import scripts
from gradcli.checks.callables import recorded
from gradcli.checks.callables.process import check_target
from gradcli.checks.oracle import oracle_client
from gradcli.execution.evaluate import evaluate
from gradcli.testing import assert_gradient
from tests.support.recorded_checks import check_program

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

from tests.support import traced_jax_rules, traced_torch_rules  # noqa: E402

RIGHT = ("PROVED", "CERTIFIED")
# the rules of the prototype, and those that the others do not resemble; the rest is deep
PROTOTYPE = set(
    "gelu_tanh layer_norm_library matmul written_slices two_results non_differentiable both_extremes pieces".split()
)
JAX_FIRST = {"log1pexp", "unit_vector", "index", "symbolic_zeros", "pytrees", "option", "sort"}
BY_VALUES = {"max", "pytrees", "nondiff_argnums"}  # mistakes that leave the exact verdict to the values


def cases() -> list[Any]:
    found = []
    for case in traced_torch_rules.CASES:
        marks = () if case.name in PROTOTYPE else (pytest.mark.deep,)
        found.append(pytest.param("torch", case, id=f"torch-{case.name}", marks=marks))
    for case in traced_jax_rules.CASES:
        marks = () if case.name in JAX_FIRST else (pytest.mark.deep,)
        found.append(pytest.param("jax", case, id=f"jax-{case.name}", marks=marks))
    return found


def report_of(library: str, case: Any, which: str) -> Any:
    if library == "jax":
        return check_callable(getattr(case, which), at=tuple(map(np.asarray, case.at)))
    return check_callable(traced_torch_rules.made(case, getattr(case, which)), at=case.at)


@pytest.mark.parametrize(("library", "case"), cases())
def test_a_right_rule_is_proved_and_its_mistake_refuted(library: str, case: Any) -> None:
    right = report_of(library, case, "right")
    assert all(one.verdict in RIGHT for one in right.checks), right
    wrong = report_of(library, case, "mistake")
    refuted = [one for one in wrong.checks if one.verdict == "DISAGREES"]
    assert refuted, wrong
    assert {one.verdict for one in wrong.checks} <= {"DISAGREES", *RIGHT, "AGREES"}
    if case.name not in BY_VALUES:
        assert all(one.message.startswith("the exact derivative") for one in refuted), wrong


# --- what cannot be traced ----------------------------------------------------------------------------------------

X = torch.tensor([0.5, -1.25, 2.0], dtype=torch.float64)


def function(forward: Any, backward: Any, **more: Any) -> Any:
    methods = {"forward": forward, "backward": backward, **more}
    return type("Rule", (torch.autograd.Function,), {name: staticmethod(one) for name, one in methods.items()})


def keeping(value: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return value(x)

    return forward


def saved(formula: Any) -> Any:
    return lambda ctx, g: formula(g, *ctx.saved_tensors)


def through_numpy(x: Any) -> Any:
    return torch.from_numpy(np.sin(x.detach().numpy()))


OPAQUE = {
    "branch": (lambda x: x**2 if x.sum() > 0 else -x, lambda g, x: 2 * g * x, "branches on values"),
    "item": (lambda x: x**2 * 2 if x[0].item() > 0 else x, lambda g, x: 4 * g * x, "item()"),
    "numpy": (through_numpy, lambda g, x: g * x.cos(), "NumPy"),
    "a branch that no point takes": (
        lambda x: x if x.detach().numpy().max() > 20 else torch.log1p(torch.exp(x)),
        lambda g, x: g * torch.sigmoid(x),
        "NumPy or Python, which may branch",
    ),
    "tolist": (lambda x: x * x if max(x.tolist()) > 3 else 2 * x, lambda g, x: 2 * g, "NumPy or Python"),
    "mask": (lambda x: x * torch.from_numpy((x.detach().numpy() > 0) + 0.0), lambda g, x: g * (x > 0), "NumPy"),
    "backward in numpy": (torch.sin, lambda g, x: g * torch.from_numpy(np.cos(x.detach().numpy())), "NumPy"),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_what_cannot_be_traced_is_named_and_judged_by_values(name: str) -> None:
    value, formula, reason = OPAQUE[name]
    report = check_callable(function(keeping(value), saved(formula)), at=(X,))
    assert [one.verdict for one in report.checks] == ["AGREES"], report
    assert any(reason in one.message for one in report.diagnostics), report.diagnostics
    wrong = check_callable(function(keeping(value), saved(lambda g, x: 1.5 * formula(g, x))), at=(X,))
    assert [one.verdict for one in wrong.checks] == ["DISAGREES"], wrong


def test_a_custom_operation_is_named() -> None:
    @torch.library.custom_op("gradclitests::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    report = check_callable(function(keeping(cube), saved(lambda g, x: 3 * g * x**2)), at=(X,))
    assert [one.verdict for one in report.checks] == ["AGREES"]
    assert any("gradclitests::cube" in one.message for one in report.diagnostics)


JAX_OPAQUE = {
    "while_loop whose number of iterations": jax.jit(lambda x: jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: 2 * c, x)),
    "pure_callback": jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 8, jax.ShapeDtypeStruct((1,), np.float64), x)),
}  # fmt: skip


@pytest.mark.parametrize("name", JAX_OPAQUE)
def test_what_jax_hides_is_named(name: str) -> None:
    for factor, verdict in ((8.0, "AGREES"), (4.0, "DISAGREES")):
        rule = traced_jax_rules.with_vjp(JAX_OPAQUE[name], lambda g, x, factor=factor: (factor * g,))
        report = check_callable(rule, at=(np.array([1.25]),), timeout=600)
        assert [one.verdict for one in report.checks] == [verdict]
        assert any(name in one.message for one in report.diagnostics), report.diagnostics


# --- formats, contexts, plain functions ---------------------------------------------------------------------------


def test_float32_is_judged_as_a_formula_and_said() -> None:
    rule = function(keeping(torch.exp), saved(lambda g, x: g * x.exp()))
    report = check_callable(rule, at=(X.float(),))
    assert [one.verdict for one in report.checks] == ["PROVED"]
    assert any("float32" in one.message for one in report.diagnostics)
    kernel = torch.tensor([[1.0, 2.0, 3.0]])
    layer = function(lambda ctx, x: x @ kernel.t(), lambda ctx, g: g @ kernel)
    assert [one.verdict for one in check_callable(layer, at=(X.float()[None],)).checks] == ["PROVED"]


def test_a_rounded_constant_of_float32_refutes_nothing() -> None:
    rounded = torch.tensor(2 / np.pi).sqrt()
    rule = function(keeping(lambda x: x * x * rounded), saved(lambda g, x: 2 * g * x * (2 / np.pi) ** 0.5))
    assert "DISAGREES" not in [one.verdict for one in check_callable(rule, at=(X,)).checks]


def test_constants_that_were_rounded_are_named_and_smaller_errors_are_not_called_wrong() -> None:
    k, c = (2 / np.pi) ** 0.5, 0.044715

    def gelu(slope: float) -> Any:
        def formula(g: Any, x: Any) -> Any:
            th = torch.tanh(k * (x + c * x**3))
            return g * (0.5 * (1 + th) + 0.5 * x * (1 - th * th) * (k + slope * x * x))

        return function(keeping(lambda x: 0.5 * x * (1 + torch.tanh(k * (x + c * x**3)))), saved(formula))

    (check,) = check_callable(gelu(3 * c * k), at=(X,)).checks  # a constant that was rounded twice
    assert check.verdict == "CERTIFIED" and "within the digits of the constants" in check.message
    (check,) = check_callable(gelu(3 * c * k * (1 + 1e-12)), at=(X,)).checks
    assert check.verdict == "DISAGREES" and "rounded constant" in check.message


def test_a_boundary_that_is_a_rounded_constant_leaves_a_point_open() -> None:
    """At x = -1 the branch of erfc depends on the digits of sqrt(1/2); the other entries are equal to those of theirs."""
    case = next(case for case in traced_jax_rules.CASES if case.name == "gelu")
    assert [one.verdict for one in report_of("jax", case, "right").checks] == ["CERTIFIED"]


def test_the_compiler_of_pytorch_is_not_imported() -> None:
    code = (
        "import sys, torch, gradcli\n"
        "class Rule(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x.exp()\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return g * ctx.saved_tensors[0].exp()\n"
        "report = gradcli.check(Rule, at=(torch.tensor([0.5, 2.0], dtype=torch.float64),))\n"
        "print(report.checks[0].verdict, {'torch._dynamo', 'torch._inductor', 'sympy'} & {*sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "PROVED set()"


def test_memory_that_tensors_share_is_followed() -> None:
    """Parts that are written show in the whole and in views that were taken before; bits are not read."""

    def written(x: Any) -> Any:
        whole = torch.empty(2, 3, dtype=x.dtype)
        row, column = whole[0], whole.t()[1]
        row.copy_(x)
        whole[1] = x * x
        column.mul_(2)
        return torch.add(row, whole[1], out=torch.empty_like(x))

    def slope(g: Any, x: Any) -> Any:
        return g * (1 + 2 * x) * torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype)

    assert [one.verdict for one in check_callable(function(keeping(written), saved(slope)), at=(X,)).checks] == [
        "PROVED"
    ]
    wrong = function(keeping(written), saved(lambda g, x: g * (1 + 2 * x)))
    assert [one.verdict for one in check_callable(wrong, at=(X,)).checks] == ["DISAGREES"]
    bits = function(keeping(lambda x: x * (x.view(torch.int64) != 0)), saved(lambda g, x: g))
    report = check_callable(bits, at=(X,))
    assert [one.verdict for one in report.checks] == ["AGREES"]
    assert any("bits of its numbers" in one.message for one in report.diagnostics)


def test_an_operation_that_chooses_by_order_is_not_taken_for_one_that_moves() -> None:
    """At ascending values `cummax` is the identity, and at values in the order 1, 2, 3 the median is the second."""
    at = torch.tensor([0.5, 1.25, 2.0], dtype=torch.float64)
    for value, slope in ((lambda x: x.cummax(0)[0], 1.0), (lambda x: x.median(), [0.0, 1.0, 0.0])):
        right = torch.tensor(slope, dtype=torch.float64)
        report = check_callable(function(keeping(value), saved(lambda g, x, right=right: g * right)), at=(at,))
        assert [one.verdict for one in report.checks] == ["AGREES"], report
        assert any("is not supported" in one.message for one in report.diagnostics), report.diagnostics


def test_running_statistics_and_labels() -> None:
    running = torch.zeros(2, dtype=torch.float64)

    def centred(x: Any) -> Any:
        running.mul_(0.9).add_(0.1 * x.mean(0))
        return (x - x.mean(0)) ** 2

    at = torch.tensor([[0.5, -1.25], [2.0, 0.75], [1.0, 3.0]], dtype=torch.float64)
    rule = function(keeping(centred), saved(lambda g, x: (lambda u: u - u.mean(0))(2 * g * (x - x.mean(0)))))
    assert [one.verdict for one in check_callable(rule, at=(at,)).checks] == ["PROVED"]
    kept = function(keeping(lambda x: centred(x) + running), saved(lambda g, x: 2 * g * (x - x.mean(0))))
    assert [one.verdict for one in check_callable(kept, at=(at,)).checks] != ["PROVED"]

    def marked(x: Any) -> Any:
        return x * torch.nn.functional.one_hot(x.argmax(1), 2)

    rule = function(keeping(marked), saved(lambda g, x: marked(x) / x * g))
    assert [one.verdict for one in check_callable(rule, at=(at,)).checks] == ["PROVED"]


def test_a_small_error_says_how_large_it_is() -> None:
    rule = function(keeping(lambda x: x * x), saved(lambda g, x: g * x * 2.000000003))
    (check,) = check_callable(rule, at=(X,)).checks
    assert check.verdict == "DISAGREES" and "a relative 1e-09: if f is computed approximately" in check.message


def test_contexts_that_are_set_up_apart_and_vmap() -> None:
    def set_up(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    good = function(
        lambda x, w: x * w, lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]), setup_context=set_up
    )
    assert [one.verdict for one in check_callable(good, at=(X, X + 1)).checks] == ["PROVED", "PROVED"]
    mapped = function(lambda x: x**2, saved(lambda g, x: 2 * g * x), setup_context=set_up)
    mapped.generate_vmap_rule = True
    assert [one.verdict for one in check_callable(torch.vmap(mapped.apply), at=(X,)).checks] == ["PROVED"]


def test_a_plain_function_is_refuted_by_its_values_only() -> None:
    """Its graph does not show what is computed under no_grad."""

    def held(x: Any) -> Any:
        with torch.no_grad():
            factor = x * 2
        return factor * x

    (check,) = check_callable(held, at=(X,)).checks
    assert check.verdict == "DISAGREES" and check.evidence["basis"] == "numerical"
    (check,) = check_callable(lambda x: torch.softmax(x, 0) * x, at=(X,)).checks
    assert check.verdict == "PROVED"


def test_a_tensor_that_backward_sends_nothing_to() -> None:
    """Nothing is asked for a constant where other arguments require a gradient; else it is a mistake, or data."""

    def forward(ctx: Any, x: Any, c: Any) -> Any:
        ctx.save_for_backward(x, c)
        return x * x * c

    rule = function(forward, lambda ctx, g: (2 * g * ctx.saved_tensors[0] * ctx.saved_tensors[1], None))
    report = check_callable(rule, at=(X, X + 1))
    assert {one.leaf: one.verdict for one in report.checks} == {"x": "PROVED", "c": "DISAGREES"}
    assert any("add --wrt x" in one.message for one in report.diagnostics)
    for at, options in (((X.clone().requires_grad_(), X + 1), {}), ((X, X + 1), {"wrt": ["x"]})):
        assert [(one.leaf, one.verdict) for one in check_callable(rule, at=at, **options).checks] == [("x", "PROVED")]


def test_what_no_oracle_decides_is_said() -> None:
    def masked(x: Any) -> Any:
        return jax.nn.softmax(jax.numpy.where(jax.numpy.array([True, False, True]), x, -1e30), axis=-1)

    def back(g: Any, x: Any) -> Any:
        p = masked(x)
        return (p * (g - (g * p).sum()),)

    report = check_callable(traced_jax_rules.with_vjp(masked, back), at=(np.array([0.5, -1.25, 2.0]),))
    assert [one.verdict for one in report.checks] == ["AGREES"]
    assert any("exact oracles cannot decide" in one.message for one in report.diagnostics)


def test_large_arrays_and_slow_oracles_leave_the_verdict_to_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "MOST_ENTRIES", 50)
    for factor, verdict in ((1.0, "AGREES"), (1.5, "DISAGREES")):
        rule = function(keeping(torch.exp), saved(lambda g, x, factor=factor: factor * g * x.exp()))
        report = check_callable(rule, at=(torch.linspace(-1, 1, 60, dtype=torch.float64),), timeout=600)
        assert [one.verdict for one in report.checks] == [verdict]
        assert any("more than 50 entries" in one.message for one in report.diagnostics)

    def late(*_: Any) -> Any:
        raise oracle_client.TimeOver(1.0)

    monkeypatch.setattr(scripts, "judge", late)
    report = check_callable(rule, at=(X,))
    assert [one.verdict for one in report.checks] == ["DISAGREES"]
    assert any("exact oracles cannot decide" in one.message for one in report.diagnostics)


def test_bfloat16_is_judged_as_a_formula() -> None:
    rule = function(keeping(torch.exp), saved(lambda g, x: g * x.exp()))
    assert [one.verdict for one in check_callable(rule, at=(X.bfloat16(),)).checks] == ["PROVED"]
    at = jax.numpy.array([1.0, 2.0], "bfloat16")
    assert [one.verdict for one in check_callable(lambda x: (x**2).sum(), lambda x: 2 * x, at=at).checks] == ["PROVED"]


def keeping_its_value(ctx: Any, x: Any) -> Any:
    y = x.exp()
    ctx.save_for_backward(y)
    return y.clone()


WRITES = {
    "its cotangent": (keeping(torch.exp), saved(lambda g, x: g.mul_(x.exp()))),
    "its argument x": (keeping(lambda x: x * x), saved(lambda g, x: g * x.mul_(2))),
    "its argument x, past its version": (keeping(torch.exp), saved(lambda g, x: g * (x.exp(), x.data.mul_(2))[0])),
    "its argument x, and restores it": (keeping(torch.exp), saved(lambda g, x: g * x.add_(1).sub_(1).exp())),
    "what it saved": (keeping_its_value, saved(lambda g, y: y.mul_(g))),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_backward_that_writes_into_what_is_not_its_own_is_told(name: str) -> None:
    report = check_callable(function(*WRITES[name]), at=(X,), names=["x"])
    assert [one.verdict for one in report.checks] == ["PROVED"]
    told = f"the backward pass changes {name.partition(',')[0]} in place"
    assert report.diagnostics[0].message == told


def test_a_backward_that_writes_is_refuted_where_the_gradient_of_a_run_is_wrong_by_it() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = x
        return x * x

    twice = function(forward, lambda ctx, g: g * ctx.x.data.mul_(2))
    report = check_callable(lambda x: twice.apply(x) + twice.apply(x), at=(X,))
    assert [one.verdict for one in report.checks] == ["DISAGREES"]
    shown = function(lambda ctx, x: (y := x.exp(), ctx.save_for_backward(y))[0], saved(lambda g, y: y.mul_(g)))
    (check,) = check_callable(shown, at=(X,)).checks
    assert check.verdict == "DISAGREES" and "its value changes when a gradient is taken" in check.message


@pytest.mark.parametrize("at", [X, jax.numpy.array([1.0, 2.0])], ids=["torch", "jax"])
def test_a_pullback_of_tensors_says_why_it_is_not_recorded(at: Any) -> None:
    report = check_callable(lambda x: x**2, vjp=lambda x, ct: 2 * x * ct, at=at)
    assert [one.verdict for one in report.checks] == ["AGREES"]
    assert "only functions of NumPy are recorded" in report.diagnostics[0].message


def test_assert_gradient_takes_a_function() -> None:
    rule = function(keeping(torch.exp), saved(lambda g, x: g * x.exp()))
    assert_gradient(rule, at=(X,), require="certified")
    with pytest.raises(AssertionError, match="the exact derivative"):
        assert_gradient(function(keeping(torch.exp), saved(lambda g, x: g * x)), at=(X,))


def test_a_rule_is_recorded_as_an_operation() -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y.exp()

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y + h, g * x + 1.5 * h * y.exp()

    rule = function(forward, backward)
    for f in (rule, rule.apply):
        program = gradcli.record(f, X, X / 2)
        values = evaluate(program, {"x": [1.0, 2.0, 3.0], "y": [0.0, 0.0, 1.0]})
        assert values[0].tolist() == [0.0, 0.0, 3.0] and values[1].tolist() == [2.0, 3.0, 3 + np.e]
        report = check_program(program)
        own = {(one.kind, one.leaf): one.verdict for one in report.checks if one.kind == "vjp"}
        verdicts = {"Rule.x": "PROVED", "Rule.y": "PROVED", "Rule#2.x": "PROVED", "Rule#2.y": "DISAGREES"}
        assert own == {("vjp", leaf): verdict for leaf, verdict in verdicts.items()}
        assert [one.verdict for one in report.checks if one.kind == "gradient"] == [*["PROVED"] * 3, "DISAGREES"]
        (wrong,) = [one for one in report.checks if one.kind == "vjp" and one.verdict == "DISAGREES"]
        assert wrong.file == __file__ and wrong.line == backward.__code__.co_firstlineno
    sine = traced_jax_rules.with_vjp(jax.numpy.sin, lambda g, x: (g * jax.numpy.cos(x),))
    report = check_program(gradcli.record(sine, jax.numpy.array([1.0, 2.0])))
    assert {one.verdict for one in report.checks} == {"PROVED"} and {one.kind for one in report.checks} > {"vjp"}
    plain = gradcli.record(lambda x: torch.tanh(x).sum(), X)
    assert plain.rules == () and evaluate(plain, {"x": [0.0, 0.0, 0.0]}) == [0.0]
    with pytest.raises(GradcliError, match="branches on values"):
        gradcli.record(function(lambda ctx, x: x if x.sum() > 0 else -x, lambda ctx, g: g), X)


# --- other uses than that of the recording ------------------------------------------------------------------------


def product(ctx: Any, a: Any, b: Any) -> Any:
    ctx.save_for_backward(a, b)
    return a @ b


def wanted(ctx: Any, g: Any) -> Any:
    a, b = ctx.saved_tensors
    return g @ b.t() if ctx.needs_input_grad[0] else None, a.t() @ g if ctx.needs_input_grad[1] else None


def forgets(ctx: Any, g: Any) -> Any:
    a, b = ctx.saved_tensors
    return (g @ b.t(), a.t() @ g) if all(ctx.needs_input_grad) else (2 * g @ b.t(), a.t() @ g)


def fails(ctx: Any, g: Any) -> Any:
    a, b = ctx.saved_tensors
    if ctx.needs_input_grad[0]:
        left = g @ b.t()
    return left, a.t() @ g


def sine_and_cosine(ctx: Any, x: Any) -> Any:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x)
    return x.sin(), x.cos()


def each(ctx: Any, g: Any, h: Any) -> Any:
    (x,) = ctx.saved_tensors
    return (0 if g is None else g * x.cos()) - (0 if h is None else h * x.sin())


def both_or_none(ctx: Any, g: Any, h: Any) -> Any:
    return None if g is None or h is None else each(ctx, g, h)


def both_or_error(ctx: Any, g: Any, h: Any) -> Any:
    return g * ctx.saved_tensors[0].cos() - h * ctx.saved_tensors[0].sin()


@pytest.mark.parametrize(
    ("forward", "backward", "at", "verdicts", "message"),
    [
        (product, wanted, (X[None], X[:, None]), ["PROVED", "PROVED"], ""),
        (product, forgets, (X[None], X[:, None]), ["DISAGREES", "PROVED"], "different gradients where only a requires"),
        (
            product,
            fails,
            (X[None], X[:, None]),
            ["PROVED", "DISAGREES"],
            "raises where only b requires a gradient: Unb",
        ),
        (sine_and_cosine, each, (X,), ["PROVED"], ""),
        (sine_and_cosine, both_or_none, (X,), ["DISAGREES"], "single results"),
        (sine_and_cosine, both_or_error, (X,), ["DISAGREES"], "raises where only result 0 is used: TypeError"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_gradients_that_depend_on_what_is_used(
    forward: Any, backward: Any, at: Any, verdicts: list[str], message: str
) -> None:
    report = check_callable(function(forward, backward), at=at)
    assert [one.verdict for one in report.checks] == verdicts
    assert not message or any(message in one.message for one in report.checks), report


def test_a_forward_of_jax_that_returns_something_else() -> None:
    for factor, verdict in ((1.0, "PROVED"), (2.0, "DISAGREES")):
        rule = jax.custom_vjp(jax.numpy.sin)
        rule.defvjp(lambda x, factor=factor: (factor * jax.numpy.sin(x), x), lambda x, g: (g * jax.numpy.cos(x),))
        (check,) = check_callable(rule, at=(np.array([0.5, 1.0]),)).checks
        assert check.verdict == verdict, check
    assert check.message.startswith("its value changes when a gradient is taken")


@pytest.mark.parametrize(
    "clip", [lambda g: g.clamp(-9, 9), lambda g: g.clamp(min=0), lambda g: -(-g).clamp(min=0), lambda g: g.sign()]
)
def test_a_clipped_cotangent_is_refuted_where_it_is_clipped(clip: Any) -> None:
    rule = function(keeping(lambda x: (x**2).sum()), saved(lambda g, x: 2 * clip(g) * x))
    report = check_callable(rule, at=(X,))
    assert [one.verdict for one in report.checks] == ["DISAGREES"], report
    if clip(X.new_tensor(3.0)) == 3 == -clip(X.new_tensor(-3.0)):  # right where nothing is clipped
        assert any("not linear in its cotangent" in one.message for one in report.diagnostics)


def test_a_matrix_of_which_one_triangle_is_read_is_judged_as_symmetric() -> None:
    a = torch.tensor([[2.0, 0.5, 0.25], [0.5, 1.5, -0.5], [0.25, -0.5, 3.0]], dtype=torch.float64)

    def forward(ctx: Any, a: Any) -> Any:
        factor = torch.linalg.cholesky(a)
        ctx.save_for_backward(factor)
        return 2 * factor.diagonal().log().sum()

    def solve(factor: Any) -> Any:
        return torch.cholesky_solve(torch.eye(3, dtype=factor.dtype), factor)

    for backward, verdicts in (
        (torch.cholesky_inverse, RIGHT),
        (solve, RIGHT),
        (torch.linalg.inv, ("DISAGREES",)),
    ):
        report = check_callable(function(forward, saved(lambda g, f, b=backward: g * b(f))), at=(a,))
        assert [one.verdict in verdicts for one in report.checks] == [True], report
        assert any("one triangle of a" in one.message for one in report.diagnostics)


def test_a_number_that_is_written_under_a_mask() -> None:
    """As the backward of ReLU in PyTorch's own tutorial does it."""

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        sent = g.clone()
        sent[x < 0] = 0
        return sent

    rule = function(keeping(lambda x: x.clamp(min=0)), backward)
    assert [one.verdict for one in check_callable(rule, at=(X,)).checks] == ["PROVED"]
    wrong = function(keeping(lambda x: x.clamp(max=0)), backward)
    assert [one.verdict for one in check_callable(wrong, at=(X,)).checks] == ["DISAGREES"]


RULE = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x
"""


def test_the_command_line_names_the_line_of_backward(tmp_path: Any) -> None:
    path = tmp_path / "ops.py"
    path.write_text(RULE)
    report = check_target(f"{path}:Square", at=["x=[1,2]"])
    (check,) = report.checks
    assert check.verdict == "DISAGREES" and check.line == 11, report
    assert check.message.startswith("the exact derivative"), report
    path.write_text(RULE.replace("g * x", "2 * g * x"))
    assert [one.verdict for one in check_target(f"{path}:Square", at=["x=[1,2]"]).checks] == ["PROVED"]


def test_nothing_to_judge_is_said() -> None:
    with pytest.raises(GradcliError):
        check_callable(function(keeping(torch.exp), saved(lambda g, x: g)), at=())


@pytest.mark.parametrize(
    ("version", "noted"), [("2.3.1", True), ("2.4.0", False), ("2.13.0+cpu", False), ("2.14", True)]
)
def test_a_version_that_is_not_known_is_noted_and_tried(
    version: str, noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    rule = function(keeping(torch.exp), saved(lambda g, x: g * x.exp()))
    report = check_callable(rule, at=(X,))
    assert [one.verdict for one in report.checks] == ["PROVED"]
    assert any(f"PyTorch {version} is untested" in one.message for one in report.diagnostics) == noted


def test_a_missing_framework_names_the_extra(tmp_path: Any) -> None:
    (tmp_path / "jax.py").write_text('raise ModuleNotFoundError("No module named jax", name="jax")')
    (tmp_path / "rules.py").write_text("import jax")
    report = check_target(f"{tmp_path / 'rules.py'}:f", at=["x=1"])
    assert report.checks[0].verdict == "ERROR" and "gradcli[peers]" in str(report.checks[0].diagnostics[0].help)


def test_a_gradient_of_nan_where_the_function_stands_still() -> None:
    """The mistake of `where`: the branch that is not taken divides by zero."""

    def root(x: Any) -> Any:
        return torch.where(x > 0, x.clamp(min=0).sqrt(), torch.zeros_like(x))

    for safe, verdicts in ((True, ["PROVED"]), (False, ["DISAGREES"])):

        def back(g: Any, x: Any, safe: bool = safe) -> Any:
            inner = torch.where(x > 0, x, torch.ones_like(x)) if safe else x
            return (g / (2 * inner.sqrt())) * (x > 0)

        report = check_callable(function(keeping(root), saved(back)), at=(X,))
        assert [one.verdict for one in report.checks] == verdicts, report
    assert "gives nan, finite differences give 0.0" in report.checks[0].message
