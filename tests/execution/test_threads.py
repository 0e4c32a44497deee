"""Threads: what eight of them compute at once is, byte for byte, what one computes, the first use in a process included."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import flint
import numpy as np
import pytest

import gradcli
from gradcli import eager as torch
from gradcli.eager._core import grad_fn
from gradcli.eager._engine import fastpath, plan, record
from gradcli.graph.node import reachable
from gradcli.graph.node_text import formulas
from gradcli.interfaces.compiled_function import Compiled
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower
from gradcli.transforms import derivatives

THREADS = 8
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def bytes_of(found: Any) -> Any:
    """An answer as plain data that is equal only where every bit is."""
    if isinstance(found, (tuple, list)):
        return [bytes_of(one) for one in found]
    if isinstance(found, dict):
        return [(key, bytes_of(one)) for key, one in found.items()]
    if isinstance(found, (np.ndarray, np.generic)):
        return (found.shape, found.dtype.str, found.tobytes())
    if isinstance(found, torch.Tensor):
        return bytes_of(found.detach().numpy())
    return repr(found)


def together(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What `work` gives to each of some threads that start at the same moment."""
    barrier = Barrier(count)
    found: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            found[number] = bytes_of(work(number))
        except BaseException as problem:  # shown by the comparison
            found[number] = repr(problem)

    threads = [Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def agree(make: Callable[[], Callable[[int], Any]], rounds: int) -> None:
    """Each thread gives what one alone gives, on a subject that is new in each round."""
    alone = make()
    wanted = [bytes_of(alone(number)) for number in range(THREADS)]
    for _ in range(rounds):
        assert together(make()) == wanted


def point(number: int, n: int = 6) -> np.ndarray[Any, Any]:
    return np.random.default_rng(number).uniform(0.2, 1.5, n)


# --- compiled functions -------------------------------------------------------------------------------------------


def compiled(script: str, call: Callable[[Compiled, int], Any], **options: Any) -> Callable[[], Callable[[int], Any]]:
    """A new compiled function, called some times by each thread."""

    def make() -> Callable[[int], Any]:
        function = gradcli.compile(script, **options)
        return lambda number: [call(function, number + k % 2) for k in range(4)]

    return make


def scalars(number: int) -> dict[str, float]:
    return {"x": 0.5 + number, "y": 1.25 - number / 16}


COMPILED: dict[str, Callable[[], Callable[[int], Any]]] = {
    "value": compiled("sin(x)*y + x**3", lambda f, n: f(**scalars(n))),
    "value and gradient": compiled("sin(x)*y + x**3/y", lambda f, n: f.value_and_grad(**scalars(n))),
    "array": compiled("sum(tanh(x)*x) + logsumexp(x)", lambda f, n: f.value_and_grad(x=point(n))),
    "shapes": compiled("sum(exp(-x**2))", lambda f, n: f.value_and_grad(x=point(n, 3 + n % 3))),
    "points": compiled("sin(x)*y + x**3", lambda f, n: f.at_points(x=point(n, 500), y=point(n + 9, 500))),
    "many points": compiled("exp(-x*y)*x", lambda f, n: f.at_points(x=point(n, 40_000), y=point(n + 9, 40_000))),
    "array points": compiled("sum(softmax(x)**2)", lambda f, n: f.at_points(x=point(n, 600).reshape(100, 6))),
    "hessian": compiled("sum(x**3)*x[0] + prod(x)", lambda f, n: f.hessian(x=point(n)).hessian),
    "jacobian": compiled("[x*y, x**2*y]", lambda f, n: f.jacobian(**scalars(n)).jacobian),
    "float32": compiled("sum(tanh(x)*x)", lambda f, n: f.value_and_grad(x=point(n)), dtype="float32"),
    "many shapes": compiled("sum(exp(-x**2))", lambda f, n: [f(x=point(n, 1 + k)) for k in range(0, 90, 9 - n % 4)]),
    "plan": compiled(
        "s = 0\nfor i in range(12):\n    s = tanh(s + x*W[i, :])\nsum(s)",
        lambda f, n: f.value_and_grad(x=point(n), W=point(n + 1, 72).reshape(12, 6)),
    ),
    "wide": compiled(
        "sum(tanh(W@x)**2)", lambda f, n: f.value_and_grad(x=point(n, 40), W=point(n, 1600).reshape(40, 40))
    ),
}


@pytest.mark.parametrize("name", COMPILED)
def test_one_compiled_function_serves_eight_threads(name: str) -> None:
    agree(COMPILED[name], 3)


@pytest.mark.deep
@pytest.mark.parametrize("name", COMPILED)
def test_one_compiled_function_serves_eight_threads_a_thousand_times(name: str) -> None:
    agree(COMPILED[name], 1000)


def test_threads_derive_from_one_graph() -> None:
    """Nodes of a derivative are made on the builder of its program, which all threads share."""

    def make() -> Callable[[int], Any]:
        program = lower(parse(Source("sum(tanh(W@x)**2) + logsumexp(x)")), at={"W": np.eye(3), "x": np.ones(3)}).program
        leaves = [leaf.node for leaf in program.leaves.values()]

        def derive(number: int) -> Any:
            found = derivatives.grad(program.outputs[0], leaves)
            return [formulas(reachable([one]))[one] for one in found]

        return derive

    agree(make, 20)


def test_values_from_balls_in_eight_threads() -> None:
    """python-flint has one precision for all threads: entries that need different bits, and what is left behind."""
    from gradcli.execution.namespaces import special_functions

    x = np.concatenate([np.linspace(0.1, 5, 500), np.logspace(-3, 12, 500)])
    before = flint.ctx.prec
    agree(lambda: lambda number: special_functions.betaln(x, np.roll(x, number)), 1)
    assert flint.ctx.prec == before


def test_questions_from_eight_threads() -> None:
    def ask(number: int) -> Any:
        x, y = scalars(number).values()
        return [
            gradcli.grad("(x*y + x)**2", at={"x": x, "y": y}).gradient,
            gradcli.evaluate("softmax([x, y, x*y])", at={"x": x, "y": y}).value,
            gradcli.hessian("x**3*y", at={"x": x, "y": y}).hessian,
            gradcli.jacobian("[x*y, x/y]", at={"x": x, "y": y}).jacobian,
        ]

    agree(lambda: ask, 5)


# --- eager tensors ------------------------------------------------------------------------------------------------


def chain(number: int) -> Any:
    x = torch.tensor(point(number), requires_grad=True)
    y = ((x * 2).exp() + x.sin() / x).tanh().sum() + (x**3).mean()
    y.backward()
    return [y, x.grad]


def layers(number: int) -> Any:
    a = torch.tensor(point(number, 12).reshape(3, 4), requires_grad=True)
    w = torch.tensor(point(number + 1, 20).reshape(5, 4), requires_grad=True)
    b = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    for _ in range(4):
        h = torch.nn.functional.relu(torch.nn.functional.linear(a, w, b))
        loss = torch.nn.functional.cross_entropy(torch.stack([h[0], h[1], h[2]]), torch.tensor([0, 2, 1]))
        loss.backward()
    return [loss, a.grad, w.grad, b.grad]


def training(number: int) -> Any:
    w = torch.tensor(point(number), requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        ((w * w).sum() - w.prod()).backward()
        optimizer.step()
    return w


def modes(number: int) -> Any:
    x = torch.tensor(point(number), requires_grad=True)
    found = []
    for k in range(6):
        if (number + k) % 2:
            with torch.no_grad():
                y = x * k
            found.append((y.requires_grad, torch.is_grad_enabled()))
        else:
            y = x * k
            found.append((y.requires_grad, torch.is_grad_enabled()))
            found.append(torch.autograd.grad(y.sum(), x)[0])
    return found


def higher(number: int) -> Any:
    x = torch.tensor(point(number), requires_grad=True)
    (g,) = torch.autograd.grad((x**4).sum() + x.prod(), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x)
    return [g, h, torch.func.vmap(torch.func.grad(lambda z: (z.sin() * z).sum()))(x.detach().reshape(2, 3))]


EAGER = {"chain": chain, "layers": layers, "training": training, "modes": modes, "higher": higher}


@pytest.mark.parametrize("name", EAGER)
def test_eager_tensors_in_eight_threads(name: str) -> None:
    agree(lambda: EAGER[name], 10)


@pytest.mark.deep
@pytest.mark.parametrize("name", EAGER)
def test_eager_tensors_in_eight_threads_a_thousand_times(name: str) -> None:
    agree(lambda: EAGER[name], 1000)


@pytest.mark.parametrize("name", EAGER)
def test_the_first_use_of_operations_in_eight_threads(name: str) -> None:
    """Plans, recipes and classes are made anew in each round."""

    def fresh() -> Callable[[int], Any]:
        for table in (plan._plans, fastpath.recipes, grad_fn._classes):
            table.clear()
        record.fields.cache_clear()
        return EAGER[name]

    agree(fresh, 5)


def test_leaves_of_one_thread_accumulate_what_all_threads_send() -> None:
    """Hogwild: threads share parameters; whole numbers add up whatever the order."""
    x = torch.zeros(3, requires_grad=True)

    def send(number: int) -> None:
        for _ in range(50):
            (x * (number + 1)).sum().backward()

    together(send)
    assert x.grad is not None
    assert x.grad.tolist() == [50.0 * sum(range(1, THREADS + 1))] * 3


def test_random_numbers_of_threads_are_those_of_one_generator() -> None:
    """The default generator is shared, as in PyTorch: every number is drawn once, by whichever thread."""
    torch.manual_seed(7)
    wanted = sorted(torch.rand(THREADS * 50).tolist())
    torch.manual_seed(7)
    found: list[float] = []
    together(lambda _: found.extend(torch.rand(1).item() for _ in range(50)))
    assert sorted(found) == wanted


# --- checks -------------------------------------------------------------------------------------------------------

CHECKS = (
    ("x**2*sin(y)", {}),
    ("abs(x - 0.5)*y", {}),
    ("x**3 - y", {"claims": {"x": "3*x"}}),
    ("softmax([x, y])[0]", {}),
    ("log(exp(x) + y**2)", {"claims": {"x": "exp(x)/(exp(x) + y**2)", "y": "-2*y/(exp(x) + y**2)"}}),
)


def checked(number: int) -> Any:
    text, options = CHECKS[number % len(CHECKS)]
    return gradcli.check(text, at={"x": 0.5, "y": 1.25 - number / 16}, **options)


def test_checks_in_eight_threads() -> None:
    agree(lambda: checked, 1)


@pytest.mark.deep
def test_a_hundred_checks_in_a_pool_of_eight_threads() -> None:
    wanted = [bytes_of(checked(number)) for number in range(104)]
    for _ in range(3):
        found = together(lambda number: [checked(13 * number + k) for k in range(13)])
        assert [one for part in found for one in part] == wanted


# --- first use ----------------------------------------------------------------------------------------------------

FIRST = """
import sys, threading
sys.setswitchinterval(1e-5)
import gradcli
barrier = threading.Barrier(8)
found = [None]*8
def tensors():
    from gradcli import eager as torch
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (torch.nn.functional.softmax(x, 0)*x).sum().backward()
    return x.grad.tolist()
def compiled():
    f = gradcli.compile("tanh(x)*y")
    return [f(x=0.5, y=2.0) for _ in range(3)], f.value_and_grad(x=0.5, y=2.0), f.at_points(x=[0.5]*3, y=[2.0]*3)
QUESTIONS = (
    lambda: gradcli.grad("sum(softmax(x)**2) + x[0]**2", at={"x": [1.0, 2.0, 3.0]}).gradient,
    compiled,
    tensors,
    lambda: gradcli.hessian("x**3*logsumexp([y, x])", at={"x": 2, "y": 3}).hessian,
    lambda: [(one.verdict, one.message) for one in gradcli.check("x**2", at={"x": 3}).checks],
)
def run(number):
    barrier.wait()
    try:
        found[number] = repr(QUESTIONS[number % CHOSEN]())
    except BaseException as problem:
        found[number] = repr(problem)
threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for number in range(8): assert found[number] == repr(QUESTIONS[number % CHOSEN]()), found[number]
"""


def first_use(chosen: int) -> str:
    """What a fresh process says of the first use by eight threads: nothing, where all is well."""
    code = FIRST.replace("CHOSEN", str(chosen))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False, timeout=120
    )
    return done.stderr


@pytest.mark.parametrize("chosen", [1, 4, 5])
def test_the_first_use_may_come_from_eight_threads(chosen: int) -> None:
    for _ in range(2):
        assert first_use(chosen) == ""


@pytest.mark.deep
@pytest.mark.parametrize("chosen", [1, 2, 3, 4, 5])
def test_the_first_use_may_come_from_eight_threads_a_hundred_times(chosen: int) -> None:
    for _ in range(100):
        assert first_use(chosen) == ""
