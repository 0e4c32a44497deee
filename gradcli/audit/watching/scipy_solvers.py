"""Watches derivatives that SciPy's solvers are given (`jac=`, `hess=`, `fprime=`, ...), and constraints of `minimize`.

The function that a solver is given is replaced by one that counts its calls. What a solver returns, and which points it
visits, does not change.
"""

from __future__ import annotations

import inspect
from copy import copy
from functools import wraps

from gradcli.audit.watching import recorder
from gradcli.audit.watching.recorder import MARK, described, module_of, standing_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Arguments = dict[str, Any]
    Subject = tuple[Callable[..., Any], dict[str, Any], Any]

GRADIENT, PAIR, PRODUCT, ENTRYWISE, TRANSPOSED = "gradient", "pair", "product", "entrywise", "transposed"
SEVERAL = "several"  # a Jacobian for each argument from the point on
# how the point stands among the arguments of a call: it is the first one, the second one, all behind the first one
FIRST, SECOND, BEHIND = "first", "second", "behind"

# solver: each derivative that it takes, as (its parameter, the parameter of the function, how it is called)
SOLVERS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "minimize": (("hess", "jac", FIRST), ("hessp", "jac", FIRST), ("jac", "fun", FIRST)),
    "least_squares": (("jac", "fun", FIRST),),
    "curve_fit": (("jac", "f", BEHIND),),
    "root": (("jac", "fun", FIRST),),
    "fsolve": (("fprime", "func", FIRST),),
    "leastsq": (("Dfun", "func", FIRST),),
    "fmin_bfgs": (("fprime", "f", FIRST),),
    "fmin_cg": (("fprime", "f", FIRST),),
    "fmin_ncg": (("fhess", "fprime", FIRST), ("fhess_p", "fprime", FIRST), ("fprime", "f", FIRST)),
    "fmin_l_bfgs_b": (("fprime", "func", FIRST),),
    "fmin_tnc": (("fprime", "func", FIRST),),
    "fmin_slsqp": (
        ("fprime", "func", FIRST),
        ("fprime_eqcons", "f_eqcons", FIRST),
        ("fprime_ieqcons", "f_ieqcons", FIRST),
    ),
    "newton": (("fprime2", "fprime", FIRST), ("fprime", "func", FIRST)),
    "root_scalar": (("fprime2", "fprime", FIRST), ("fprime", "f", FIRST)),
    "solve_ivp": (("jac", "fun", SECOND),),
    "odeint": (("Dfun", "func", FIRST),),
    "solve_bvp": (("fun_jac", "fun", SECOND), ("bc_jac", "bc", FIRST)),
}
MOST_NODES = 4  # of the mesh of `solve_bvp` at which `fun_jac` is judged
RETURNS_PAIR = {"fmin_l_bfgs_b", "fmin_tnc"}  # without `fprime` their function returns (value, gradient)


def watch(module: ModuleType) -> None:
    """Replace the solvers that a module defines."""
    for name in SOLVERS:
        solver = vars(module).get(name)
        if callable(solver) and module_of(solver) == module.__name__:
            setattr(module, name, watched(name, solver))


def watched(name: str, solver: Callable[..., Any]) -> Callable[..., Any]:
    """A solver that counts the calls of the derivatives it is given."""
    order = list(inspect.signature(solver).parameters)

    @wraps(solver)
    def solve(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if recorder.watching():
            with recorder.guarded():
                args, options = replaced(name, order, args, options)
        return solver(*args, **options)

    return solve


def replaced(
    name: str, order: list[str], args: tuple[Any, ...], options: Arguments
) -> tuple[tuple[Any, ...], Arguments]:
    """The arguments of a solver with the derivatives replaced."""
    arguments = {**dict(zip(order, args, strict=False)), **options}
    caller = recorder.caller_of("scipy", "numpy")
    changed: Arguments = {}
    for parameter, function, way in SOLVERS[name]:
        derivative, f = arguments.get(parameter), arguments.get(function)
        role = f"{parameter}= of {name}"
        if derivative is True and callable(f):
            changed[function] = counted(role, way, PAIR, f, f, caller)
        elif derivative is None and name in RETURNS_PAIR and not arguments.get("approx_grad") and callable(f):
            changed[function] = counted(f"pair of {name}", way, PAIR, f, f, caller)
        elif callable(derivative):
            if f is True:  # of the pair that the function returns, the gradient
                pair = arguments["fun"]
                f = lambda *x, _pair=pair: _pair(*x)[1]  # noqa: E731
            if name == "odeint" and arguments.get("tfirst"):
                way = SECOND
            kind = PRODUCT if parameter in ("hessp", "fhess_p") else GRADIENT
            kind = ENTRYWISE if name in ("newton", "root_scalar") else SEVERAL if name == "solve_bvp" else kind
            turned = arguments.get("col_deriv") or (arguments.get("options") or {}).get("col_deriv")
            kind = TRANSPOSED if name in ("fsolve", "leastsq", "odeint", "root") and turned else kind
            if callable(f):
                changed[parameter] = counted(role, way, kind, derivative, f, caller)
    if name == "minimize" and arguments.get("constraints"):
        changed["constraints"] = constrained(arguments["constraints"], caller)
    args = tuple(changed.get(key, value) for key, value in zip(order, args, strict=False)) + args[len(order) :]
    return args, {key: changed.get(key, value) for key, value in options.items()}


def constrained(constraints: Any, caller: str) -> Any:
    """Constraints of `minimize` with their `jac`, and of a NonlinearConstraint its `hess`, replaced."""
    if type(constraints).__name__ == "NonlinearConstraint" and callable(constraints.fun):
        f, jac, hess = constraints.fun, constraints.jac, constraints.hess
        constraints = copy(constraints)
        if callable(jac):
            constraints.jac = counted("jac= of a NonlinearConstraint", FIRST, GRADIENT, jac, f, caller)
            if callable(hess):

                def weighted(x: Any, v: Any) -> Any:
                    jacobian = jac(x)
                    return jacobian.T @ v if getattr(jacobian, "ndim", 1) > 1 else jacobian * v

                constraints.hess = counted("hess= of a NonlinearConstraint", FIRST, GRADIENT, hess, weighted, caller)
        return constraints
    if isinstance(constraints, dict):
        if callable(constraints.get("jac")) and callable(constraints.get("fun")):
            role = "jac= of a constraint"
            jac = counted(role, FIRST, GRADIENT, constraints["jac"], constraints["fun"], caller)
            return {**constraints, "jac": jac}
        return constraints
    if isinstance(constraints, (list, tuple)):
        return type(constraints)(constrained(part, caller) for part in constraints)
    return constraints


def counted(role: str, way: str, kind: str, derivative: Any, f: Any, caller: str) -> Any:
    """A derivative that is counted at each call; the derivative itself where it is not to be watched."""
    if hasattr(derivative, MARK) or not recorder.wanted(module_of(derivative)):
        return derivative
    gradient = described("SciPy", role, derivative, f)
    gradient.caller = caller
    gradient = recorder.known(gradient)

    def note(args: tuple[Any, ...], options: Arguments) -> None:
        if recorder.watching() and recorder.due(gradient):
            recorder.keep_copy(gradient, args, lambda: subject(way, kind, derivative, f, args, options))

    return standing_in(derivative, note)


def subject(way: str, kind: str, derivative: Any, f: Any, args: tuple[Any, ...], options: Arguments) -> Subject:
    """A function, its derivative as an option of `check_callable`, and the point, of one call of the derivative."""
    import numpy as np  # in a copy, where SciPy has imported it

    f, derivative = getattr(f, MARK, f), getattr(derivative, MARK, derivative)
    where = {FIRST: 0, SECOND: 1, BEHIND: 1}[way]
    before, behind = args[:where], args[where + 1 :]
    if kind == SEVERAL:
        return by_arguments(f, derivative, *before, arguments=args[where:])
    if kind == PRODUCT:
        behind = behind[1:]

    def call(function: Any, x: Any, *more: Any) -> Any:
        if way == BEHIND:
            return function(*before, *x, **options)
        return function(*before, x, *more, *behind, **options)

    def array_of(value: Any) -> Any:  # what stands for an array while it is recorded stays so
        return value if hasattr(value, "__array_function__") else np.asarray(value)

    def value(x: Any) -> Any:
        result = call(f, x)
        result = array_of(result[0] if kind == PAIR else result)
        return result.reshape(()) if result.size == 1 and not np.shape(x) else result

    def jacobian(x: Any) -> Any:
        matrix = call(derivative, x)
        matrix = matrix[1] if kind == PAIR else matrix
        if hasattr(matrix, "toarray"):
            matrix = matrix.toarray()
        elif hasattr(matrix, "matmat"):
            matrix = matrix.matmat(np.eye(np.size(x)))
        matrix = array_of(matrix)
        if kind == ENTRYWISE and np.shape(x):
            matrix = np.diag(matrix)
        shape = np.shape(value(x)) + np.shape(x)
        matrix = matrix.T if kind == TRANSPOSED else matrix
        return matrix.reshape(shape) if matrix.size == int(np.prod(shape)) else matrix

    point = np.array(args[1:] if way == BEHIND else args[where], dtype=np.float64)
    if kind == PRODUCT:
        return value, {"vjp": lambda x, weights: array_of(call(derivative, x, weights))}, (point,)
    return value, {"jac": jacobian}, (point,)


def by_arguments(f: Any, derivative: Any, mesh: Any = None, *, arguments: tuple[Any, ...]) -> Subject:
    """A function of `solve_bvp` by its arguments; for each point of a `mesh` the derivative has its own Jacobian."""
    import numpy as np

    point = [np.array(x, dtype=np.float64) for x in arguments]
    if mesh is not None:
        nodes = np.unique(np.linspace(0, len(mesh) - 1, MOST_NODES, dtype=int))
        mesh, point[0] = mesh[nodes], point[0][:, nodes]
    before = () if mesh is None else (mesh,)

    def jacobians(*moved: Any) -> Any:
        parts = derivative(*before, *moved)
        first, *others = map(np.asarray, parts if isinstance(parts, tuple) else (parts,))
        if mesh is None:
            return (first, *others)
        whole = np.einsum("ija,ab->iajb", first, np.eye(len(mesh)))
        return (whole, *(np.moveaxis(part, 2, 1) for part in others))

    names = ["ya", "yb", "p"] if mesh is None else ["y", "p"]
    options = {"jac": jacobians, "names": names[: len(point)]}
    return lambda *moved: np.asarray(f(*before, *moved)), options, tuple(point)
