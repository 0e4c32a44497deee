"""Whether the gradients of a function agree with finite differences at a point: `gradcheck`, `gradgradcheck`.

The function is recorded once. Its graph says which entries may move together, so few evaluations give all differences.
They are compared with a difference of the function itself along a random direction. Where they do not agree (a function
with a state, one that reads entries, narrow formats inside), or where the function cannot be recorded, it is called
twice for every entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.eager._core.modes import warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._ops.complex_tensors import view_as_real
from gradcli.eager._trace import record
from gradcli.eager.autograd import forward_ad
from gradcli.eager.autograd.functional import grad, units
from gradcli.execution.namespaces import REFUSED
from gradcli.execution.sparsity import program_differences

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


FEWEST = 16  # entries below which calls cost less than a recording
ALONG = 1e-7  # relative: what the differences of the graph and of the function along a direction may differ by
NOISE = 1e-8  # the same in parts of the largest value, with a step of 1e-6
RECORDED_RUNS = 4


def central_differences(f: Callable[[Tensor], Tensor], x: Tensor, eps: float) -> Floats | None:
    """The transposed Jacobian of f at x by central differences of its graph, [entries of x, entries of f].

    None where calls cost less, or the graph is not the function.
    """
    point = np.array(x._array)
    if point.size < FEWEST or point.dtype != np.float64 or not np.isfinite(point).all():
        return None
    try:
        program = record(lambda t: f(t), x, runs=RECORDED_RUNS, values_only=True)
    except Exception:
        return None  # the function is then called with tensors, and may raise the same
    try:
        with np.errstate(all="ignore"):
            jacobian = program_differences.central_differences(program, point, eps)
            return jacobian if _is_right(f, point, eps, jacobian) else None
    except (GradcliError, *REFUSED):
        return None


def _is_right(f: Callable[[Tensor], Tensor], point: Floats, eps: float, jacobian: Floats) -> bool:
    """Whether a difference of the function itself along a random direction is what its Jacobian gives."""
    random = np.random.default_rng(point.size)  # the same for each call with this size
    way = random.uniform(0.5, 1.0, point.shape) * random.choice([-1.0, 1.0], point.shape)
    above, below = _value(f, point + eps * way), _value(f, point - eps * way)
    size = np.abs([above, below]).max(initial=0.0)
    way = way.reshape(-1)
    slack = ALONG * (np.abs(jacobian).T @ np.abs(way)) + NOISE * 1e-6 / eps * size + 1e-300
    return bool((np.abs(jacobian.T @ way - (above - below) / (2 * eps)) <= slack).all())


def _value(f: Callable[[Tensor], Tensor], point: Floats) -> Floats:
    value: Floats = f(Tensor(point, True))._array.astype(np.float64)
    return value.reshape(-1)


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where gradients are wrong."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of a function with central differences, entry by entry.

    `check_forward_ad` compares forward mode too. The other options have PyTorch's names and change nothing: every entry
    is compared, and a gradient always has the dtype of its input. Raises ValueError where no input requires grad,
    RuntimeError where the function changes its inputs, and GradcheckError, with the likely reason, where they
    disagree; with `raise_exception=False` the result is False instead.
    """
    assert check_backward_ad or check_forward_ad, "expected check_forward_ad or check_backward_ad to be True"
    try:
        _check(func, _outputs(inputs), (eps, rtol, atol), nondet_tol, check_backward_ad, check_forward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable[..., Any], xs: Any, limits: Any, nondet: float, reverse: bool, forward: bool) -> None:
    moving = [(i, x) for i, x in enumerate(xs) if isinstance(x, Tensor) and x.requires_grad]
    if not moving:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    for i, x in moving:
        if x._raw.dtype not in (np.float64, np.complex128):
            warn(f"input {i} is {x.dtype}, and finite differences need double precision: the check will likely fail")
    before = [x._version for _, x in moving]
    outputs = _real_outputs(func, xs)
    changed = [i for (i, x), version in zip(moving, before, strict=True) if x._version != version]
    if changed:
        raise RuntimeError(  # also without `raise_exception`: there is nothing to compare
            f"the function changes input {changed[0]} in place, so its values at the point are gone: clone() "
            "it inside the function"
        )
    for k, output in enumerate(outputs):
        if not output.dtype.is_floating_point:
            continue
        parts = [_Part(func, xs, i, k, x) for i, x in moving]
        if reverse:
            first, again = (_analytic(value, moving) for value in (output, _real_outputs(func, xs)[k]))
            for part, exact, second in zip(parts, first, again, strict=True):
                if not _close(exact, second, 0.0, nondet):
                    raise GradcheckError(
                        f"backward is not reentrant: input {part.i} has two gradients (nondeterminism)"
                    )
                part.compare(exact, limits, "")
        for part in parts if forward else ():
            part.compare(part.tangents(), limits, " in forward mode")


@dataclass(frozen=True)
class _Part:
    """Output `k` of a function as a function of its input `i`, at a point."""

    func: Callable[..., Any]
    xs: tuple[Any, ...]
    i: int
    k: int
    x: Tensor

    def __call__(self, t: Tensor) -> Tensor:
        return _real_outputs(self.func, [t if j == self.i else y for j, y in enumerate(self.xs)])[self.k]

    def compare(self, exact: Any, limits: tuple[float, float, float], how: str) -> None:
        """GradcheckError where a Jacobian is not that of differences."""
        eps, *close = limits
        numeric = self.numeric(eps)
        if not _close(exact, numeric, *close):
            raise GradcheckError(
                f"Jacobian mismatch{how} for output {self.k} with respect to input {self.i},\n"
                f"numerical:{numeric}\nanalytical:{exact}\nlikely reason: {self.reason(numeric, eps)}"
            )

    def numeric(self, eps: float) -> Any:
        """The transposed Jacobian by central differences."""
        differences = central_differences(self, self.x, eps)
        return _by_calls(self, self.x, eps, -eps) if differences is None else differences

    def tangents(self) -> Any:
        """The transposed Jacobian by forward mode."""
        rows, x = [], self.x
        for direction in units(x):
            row: Any = 0
            for unit in _parts(x):
                with forward_ad.dual_level():
                    out = self(forward_ad.make_dual(x, direction * unit))
                    tangent = forward_ad.unpack_dual(out).tangent
                    row = row + (np.zeros(out._raw.size) if tangent is None else unit * tangent._array.reshape(-1))
            rows.append(row)
        return np.array(rows).reshape(x._raw.size, -1)

    def reason(self, numeric: Any, eps: float) -> str:
        """What differences at other distances and a second run say about a mismatch."""
        if self.x._raw.dtype not in (np.float64, np.complex128):
            return f"input {self.i} is {self.x.dtype}, too coarse for finite differences; use float64"
        if not np.allclose(numeric, self.numeric(eps), rtol=1e-9, atol=1e-9, equal_nan=True):
            return "the function is nondeterministic, two runs at one point give different values"
        fine, coarse = self.numeric(eps / 10), self.numeric(eps * 10)
        grown = np.abs(fine) > 5 * np.abs(numeric) + 1
        if bool((grown & (np.abs(numeric) > 5 * np.abs(coarse))).any()):
            return "the function jumps at this point (discontinuity): its differences grow without bound"
        after, before = _by_calls(self, self.x, eps, 0.0), _by_calls(self, self.x, 0.0, -eps)
        if not np.allclose(after, before, rtol=1e-2, atol=1e-3, equal_nan=True):
            return "a kink: the one-sided differences are not equal"
        return "a backward rule is wrong: the finite differences agree with each other"


def _close(left: Any, right: Any, rtol: float, atol: float) -> bool:
    """NumPy's `allclose`, in which NaN equals NaN."""
    return bool(np.allclose(left, right, rtol=rtol, atol=atol, equal_nan=True))


def _outputs(value: Any) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _real_outputs(func: Callable[..., Any], xs: Any) -> list[Tensor]:
    """What a function returns, with real and imaginary parts in place of complex numbers."""
    return [view_as_real(x) if x.dtype.is_complex else x for x in _outputs(func(*xs))]


def _analytic(output: Tensor, moving: list[Any]) -> list[Any]:
    """The transposed Jacobian of an output by each input, by its rules."""
    xs, size = [x for _, x in moving], output._array.size
    if not output.requires_grad:
        return [np.zeros((x._array.size, size)) for x in xs]
    rows = [grad(output, xs, seed, True, allow_unused=True, materialize_grads=True) for seed in units(output)]
    return [np.array([row[i]._array for row in rows]).reshape(size, x._array.size).T for i, x in enumerate(xs)]


def _by_calls(f: Callable[[Tensor], Tensor], x: Tensor, above: float, below: float) -> Any:
    """The transposed Jacobian by the values of the function at two distances along every entry."""

    def slope(entry: int, unit: complex) -> Any:
        ends = []
        for step in (above, below):
            moved = x._array.copy()
            moved.reshape(-1)[entry] += unit * step
            ends.append(_value(f, moved))
        return unit * (ends[0] - ends[1]) / (above - below)

    rows = [sum(slope(entry, unit) for unit in _parts(x)) for entry in range(x._array.size)]
    return np.array(rows).reshape(x._array.size, -1)


def _parts(x: Tensor) -> tuple[Any, ...]:
    """The directions of an entry: real, and imaginary for complex numbers."""
    return (1, 1j) if x.dtype.is_complex else (1,)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    **options: Any,
) -> bool:
    """`gradcheck` of the gradient of the function: its second derivatives; `options` are those of `gradcheck`."""
    xs = _outputs(inputs)
    count = len(xs)
    if grad_outputs is None:
        draw = np.random.default_rng(0).standard_normal
        outputs = _outputs(func(*xs))
        grad_outputs = [Tensor(draw(out._array.shape).astype(out._array.dtype), True) for out in outputs]
    seeds = _outputs(grad_outputs)

    def gradient(*everything: Any) -> tuple[Any, ...]:
        point, directions = everything[:count], everything[count:]
        wanted = [x for x in point if isinstance(x, Tensor) and x.requires_grad]
        gradients = grad(_outputs(func(*point)), wanted, directions, None, True, allow_unused=True)
        return tuple([gradient for gradient in gradients if gradient is not None])

    modes = {"check_backward_ad": check_rev_over_rev, "check_forward_ad": check_fwd_over_rev}
    return gradcheck(gradient, (*xs, *seeds), **modes, **options)
