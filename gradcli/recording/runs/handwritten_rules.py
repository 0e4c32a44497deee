"""For `why`: compares the derivatives that a file wrote by hand with those of their own forward.

The forward of a `torch.autograd.Function` is run once more at the end, and differentiated by the library itself;
differences of its values have to confirm that. What differs on purpose is left alone: a function that returns its
operand (a gradient is reversed, scaled or clipped), one without a slope of its own (a straight-through estimator, a
surrogate), entries that are left out, and rules that clip or say that they approximate.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.recording.runs.tensors import WrongRule, flat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.recording.runs.tensors import TensorReader

CLOSE = 1e-2  # how far a rule may be from the derivative of its own forward
CALLS = 3  # of each Function that are kept
LARGEST = 1 << 20  # entries of their arguments
DENSE = 64  # entries for which differences stand for the derivative of a forward that has none
PURPOSE = re.compile(
    r"surrogate|straight|revers|approx|fake|smooth|clip|clamp|neumann|implicit|spik|nan_to_num|scale_?grad"
)


class Deviation(NamedTuple):
    """A derivative is not the right one; `factor` of it, if it is that everywhere."""

    factor: float | None


def deviation(theirs: Any, ours: Any) -> Deviation | None:
    """How a derivative differs from the right one, at most entries where neither is zero; None where it does not.

    >>> deviation(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    Deviation(factor=0.5)
    >>> deviation(np.array([1.0, 0.0]), np.array([1.0, 4.0]))
    """
    if theirs.shape != ours.shape or not np.isfinite(ours).all() or not np.isfinite(theirs).all() or not ours.any():
        return None
    size = np.maximum(np.abs(theirs), np.abs(ours))
    large = (theirs != 0) & (ours != 0) & (size > CLOSE * np.abs(ours).max())  # what is small beside may be rounding
    if 2 * (large & (np.abs(theirs - ours) > CLOSE * size)).sum() <= large.sum():
        return None
    ratio = float((theirs * ours).sum() / (ours * ours).sum())
    off = bool(np.allclose(theirs, ratio * ours, rtol=CLOSE, atol=CLOSE * np.abs(ours).max()))
    return Deviation(ratio if off else None)


class FunctionCall:
    """A call of a Function with copies of its arguments, and what its backward got and sent."""

    def __init__(self, function: Any, args: Sequence[Any], moved: list[int], results: list[Any]) -> None:
        self.function, self.args, self.moved, self.results = function, args, moved, results
        self.came: list[Any] = []  # for each result; None where nothing came
        self.sent: list[Any] = []  # for each argument that requires grad

    def values(self, args: Sequence[Any]) -> list[Any]:
        """What forward returns."""
        function = self.function
        own = [kind for kind in function.__mro__ if not kind.__module__.startswith(("torch.", "gradcli."))]
        apart = any("setup_context" in vars(kind) for kind in own)
        return flat([function.forward(*([] if apart else [ForwardContext(self.moved, len(args))]), *args)])

    @property
    def meant(self) -> bool:
        """Whether names in the class say that its backward differs from its forward."""
        codes = [getattr(getattr(self.function, name, None), "__code__", None) for name in ("backward", "vjp")]
        names = [name for code in codes if code is not None for name in code.co_names]
        return bool(PURPOSE.search(" ".join([self.function.__name__, self.function.__doc__ or "", *names]).lower()))


class ForwardContext:
    """Stands for the context of a Function: what is kept for a backward is not needed."""

    def __init__(self, moved: Sequence[int], count: int) -> None:
        self.needs_input_grad = tuple([at in moved for at in range(count)])

    def save_for_backward(self, *_: Any) -> None:
        """Keep nothing."""

    save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = save_for_backward


class FunctionCalls:
    """The first calls of each Function of a run."""

    def __init__(self, tensors: TensorReader) -> None:
        self.tensors = tensors
        self.calls: dict[int, FunctionCall] = {}  # by the number of a node
        self.counts: dict[Any, int] = {}

    def keep(self, function: Any, args: Sequence[Any], results: Sequence[Any], number: int) -> None:
        """Keep a call, if it is among the first."""
        tensors = [x for x in args if self.tensors.is_tensor(x)]
        if number in self.calls or self.counts.get(function, 0) >= CALLS or len(flat(args)) != len(args):
            return
        if sum(x.numel() for x in [*tensors, *results]) > LARGEST:
            return
        moved = [at for at, x in enumerate(args) if self.tensors.is_tensor(x) and self.tensors.requires(x)]
        copies = [x.detach().clone() if self.tensors.is_tensor(x) else x for x in args]
        self.calls[number] = FunctionCall(function, copies, moved, list(map(self.copied, results)))
        self.counts[function] = self.counts.get(function, 0) + 1

    def copied(self, value: Any) -> Any:
        """The entries of a tensor now."""
        return self.tensors.array(value).copy()

    def ran(self, number: int, came: Sequence[Any], sent: Sequence[Any]) -> None:
        """Keep what came to the node of a call, and what that sent."""
        call = self.calls.get(number)
        if call is not None and len(came) == len(call.results) and len(sent) == len(call.moved):
            call.came, call.sent = ([None if x is None else self.copied(x) for x in xs] for xs in (came, sent))

    def wrong(self, library: Any) -> Iterator[WrongRule]:
        """The backwards that are not the derivative of their forward."""
        for call in self.calls.values():
            if call.came and not call.meant:
                with suppress(Exception), redirect_stdout(io.StringIO()):  # the forward of a file may do anything
                    yield from self.judged(call, library)

    def judged(self, call: FunctionCall, library: Any) -> Iterator[WrongRule]:
        """The arguments of a call for which its backward gives a wrong derivative."""
        inputs = [self.tensors.array(call.args[at]) for at in call.moved]
        slopes = self.slopes(call, library)
        if slopes is None:
            return
        if any(not ours.any() and sent is not None for ours, sent in zip(slopes, call.sent, strict=True)):
            return
        for at, x, sent, ours in zip(call.moved, inputs, call.sent, slopes, strict=True):
            same = any(np.array_equal(x, result) for result in call.results)
            wrong = None if sent is None or same else deviation(sent, ours)
            if wrong is not None and self.confirmed(call, library, at, sent, ours):
                yield WrongRule(call.function.__name__, None, at, wrong.factor)

    def slopes(self, call: FunctionCall, library: Any) -> list[Any] | None:
        """The derivatives of forward times what came: by the library, else by differences; None if it is not known."""
        leaves = {at: call.args[at].clone().requires_grad_() for at in call.moved}
        with library.enable_grad():
            values = call.values([leaves[at].clone() if at in leaves else x for at, x in enumerate(call.args)])
            pairs = zip(map(self.copied, values), call.results, strict=True)
            if not all(np.allclose(value, result, rtol=1e-4, atol=1e-6) for value, result in pairs):
                return None  # random, or of something that has changed since
            came = zip(values, call.came, strict=True)
            terms = [(x * library.as_tensor(ct, dtype=x.dtype)).sum() for x, ct in came if ct is not None]
            if any(term.requires_grad for term in terms):
                total = sum(terms[1:], terms[0])
                grads = library.autograd.grad(total, list(leaves.values()), allow_unused=True)
                pairs = zip(grads, leaves.values(), strict=True)
                return [self.copied(x if grad is None else grad) * (grad is not None) for grad, x in pairs]
        if sum(leaf.numel() for leaf in leaves.values()) > DENSE:
            return None
        return [self.dense(call, library, at) for at in call.moved]

    def dense(self, call: FunctionCall, library: Any, at: int) -> Any:
        """The derivative for one argument by differences."""
        shape = self.tensors.array(call.args[at]).shape
        units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
        return np.array([self.central(call, library, at, unit, library.float64, 1e-6) for unit in units]).reshape(shape)

    def confirmed(self, call: FunctionCall, library: Any, at: int, theirs: Any, ours: Any) -> bool:
        """Whether differences along two directions agree with a derivative, and not with the other."""
        for direction in np.random.default_rng(0).standard_normal((2, *ours.shape)):
            true, wrong = float((ours * direction).sum()), float((theirs * direction).sum())
            seen = self.difference(call, library, at, direction)
            if not abs(seen - true) <= 0.1 * abs(seen - wrong):
                return False
        return True

    def difference(self, call: FunctionCall, library: Any, at: int, direction: Any) -> float:
        """The slope of forward times what came along a direction, in double precision where forward takes that."""
        with suppress(Exception):
            return self.central(call, library, at, direction, library.float64, 1e-6)
        return self.central(call, library, at, direction, None, 1e-2)

    def central(self, call: FunctionCall, library: Any, at: int, direction: Any, kind: Any, step: float) -> float:
        """The central difference with a step, of arguments in a format."""
        is_tensor = self.tensors.is_tensor
        args = [x.to(kind) if kind and is_tensor(x) and x.is_floating_point() else x for x in call.args]
        along, values = library.as_tensor(direction, dtype=args[at].dtype), []
        with library.no_grad():
            for sign in (1, -1):
                moved = [x.clone() if is_tensor(x) else x for x in args]
                moved[at] = moved[at] + sign * step * along
                pairs = zip(map(self.tensors.array, call.values(moved)), call.came, strict=True)
                values.append(sum([float((x.astype(np.float64) * ct).sum()) for x, ct in pairs if ct is not None]))
        return (values[0] - values[1]) / (2 * step)
