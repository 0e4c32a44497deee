"""An autograd calculator and gradient checker.

    grad, evaluate, hessian, jacobian    numbers of a script at a point
    derive                               the gradient as a formula, without a point
    trace, graph, plot                   both passes step by step; the graph; the function with its gradient
    compile                              a script as a Python function
    check, testing.assert_gradient       judge a gradient that was written by hand, of a script or a function
    watch, draw, record                  why gradients of PyTorch are as they are; functions as scripts
    operation, gradient_of               operations of your own; gradients for `gradcli audit`
    eager                                define-by-run tensors

>>> import gradcli
>>> gradcli.grad("(x*y + x)**2", at={"x": 2, "y": 3}).gradient
{'x': 64.0, 'y': 32.0}
>>> assert gradcli.check("x**2", at={"x": 2}, claims={"x": "2*x"})  # fails unless it was judged and is right

Importing it is light; the rest loads when it is used.

Threads may call every function here, and a function that `compile` returns, at the same time and for the first time:
each gets, byte for byte, what one thread alone would get.

>>> from concurrent.futures import ThreadPoolExecutor
>>> square = gradcli.compile("x**2")
>>> with ThreadPoolExecutor(8) as pool:
...     list(pool.map(lambda x: square(x=x), [1.0, 2.0, 3.0]))
[1.0, 4.0, 9.0]

`check` and `check_callable` serve one thread after the other: exact arithmetic runs in one process of its own, and a
callable is watched by redirecting the standard streams. To check many scripts at once, use processes (`gradcli check
FOLDER --jobs N`). Arrays that threads share, such as `out` of `at_points`, are for the caller to keep apart.
"""

from __future__ import annotations

from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.audit.watching.paired_gradients import gradient_of
    from gradcli.base.diagnostics import Diagnostic, GradcliError
    from gradcli.calculator import evaluate, grad, hessian, jacobian, trace
    from gradcli.calculator.plotting import plot
    from gradcli.derivation.deriving import derive
    from gradcli.interfaces.attach import draw, watch
    from gradcli.interfaces.checking import check, check_callable
    from gradcli.interfaces.compiled_function import compile  # noqa: A004  # as numba and PyTorch name it
    from gradcli.interfaces.extension import operation
    from gradcli.language.parser import parse
    from gradcli.language.unparse import unparse
    from gradcli.recording.graphs.function_program import record

__version__ = "0.1.0"

# public name: the module that holds it
_ROOMS = {
    "Diagnostic": "gradcli.base.diagnostics",
    "GradcliError": "gradcli.base.diagnostics",
    "check": "gradcli.interfaces.checking",
    "check_callable": "gradcli.interfaces.checking",
    "compile": "gradcli.interfaces.compiled_function",
    "derive": "gradcli.derivation.deriving",
    "draw": "gradcli.interfaces.attach",
    "evaluate": "gradcli.calculator",
    "grad": "gradcli.calculator",
    "gradient_of": "gradcli.audit.watching.paired_gradients",
    "hessian": "gradcli.calculator",
    "jacobian": "gradcli.calculator",
    "operation": "gradcli.interfaces.extension",
    "parse": "gradcli.language.parser",
    "plot": "gradcli.calculator.plotting",
    "record": "gradcli.recording.graphs.function_program",
    "trace": "gradcli.calculator",
    "unparse": "gradcli.language.unparse",
    "watch": "gradcli.interfaces.attach",
}
_PACKAGES = ("eager", "graph", "testing")  # for `from gradcli import eager`, and `gradcli.graph(loss)`

__all__ = [
    "Diagnostic",
    "GradcliError",
    "__version__",
    "check",
    "check_callable",
    "compile",
    "derive",
    "draw",
    "evaluate",
    "grad",
    "gradient_of",
    "hessian",
    "jacobian",
    "operation",
    "parse",
    "plot",
    "record",
    "trace",
    "unparse",
    "watch",
]
_loading = RLock()


def __getattr__(name: str) -> Any:
    """Load what is first used, for one thread at a time and packages before their modules.

    Python's import system calls it a deadlock where one thread imports a package that imports its modules, and another
    thread one of these modules.
    """
    if name not in _ROOMS and name not in _PACKAGES:
        raise AttributeError(f"module 'gradcli' has no attribute {name!r}")
    with _loading:
        path = _ROOMS.get(name, f"gradcli.{name}").split(".")
        for end in range(2, len(path) + 1):
            value = _module(".".join(path[:end]))
        if name in _ROOMS:
            value = getattr(value, name)
            results = _module("gradcli.base.results.calculations")
            results.DisplayedResult._displayed = _displayed
        globals()[name] = value
    return value


def _module(name: str) -> Any:
    """A module by its name. (`importlib` is loaded here, because the command handles signals first.)"""
    from importlib import import_module

    return import_module(name)


def _displayed() -> Any:
    """What writes results for people."""
    return _module("gradcli.rendering.displayed")


def load_ipython_extension(shell: Any) -> None:
    """Make the magics `%grad` and `%%grad` known to a notebook: `%load_ext gradcli`."""
    _module("gradcli.interfaces.notebook").register(shell)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
