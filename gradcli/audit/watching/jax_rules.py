"""Watches functions with a rule of their own: `jax.custom_vjp` and `jax.custom_jvp`.

While a function is traced there are no numbers: a callback in the computation delivers them when it runs. XLA's threads
are in no copy of the process, so at its end the function and its pullback are exported as StableHLO, in float64, and
judged in a process of their own.
"""

from __future__ import annotations

import atexit
import os
import sys
from time import monotonic

from gradcli.audit.watching import recorder
from gradcli.audit.watching.recorder import described, module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from gradcli.audit.watching.recorder import HandWrittenGradient

SECONDS = 20.0  # for exporting at the end of a process

# what is to be exported: a gradient, the number of the call, and the function with its arguments, flat
_kept: list[tuple[HandWrittenGradient, int, RuleArguments, list[Any]]] = []
_traced: list[
    tuple[HandWrittenGradient, RuleArguments, list[Any]]
] = []  # calls while tracing, whose numbers may never arrive


class RuleArguments:
    """A function with a rule, and its arguments without the arrays: which are there, their tree, and what is fixed."""

    def __init__(
        self, rule: Any, call: Callable[..., Any], leaves: Sequence[Any], tree: Any, moving: list[int]
    ) -> None:
        self.rule = rule
        self.call = call
        self.fixed = [None if i in moving else leaf for i, leaf in enumerate(leaves)]
        self.tree = tree
        self.moving = moving

    def value(self, *moved: Any) -> Any:
        """The floats that the function returns, as one vector."""
        import jax
        import jax.numpy as jnp

        leaves = [*self.fixed]
        for i, value in zip(self.moving, moved, strict=True):
            leaves[i] = value
        args, options = jax.tree_util.tree_unflatten(self.tree, leaves)
        outputs = jax.tree_util.tree_leaves(self.call(self.rule, *args, **options))
        floats = [output for output in outputs if jnp.issubdtype(jnp.result_type(output), jnp.floating)]
        return jnp.concatenate([jnp.ravel(output).astype(jnp.float64) for output in floats])

    def pullback(self, weights: Any, *moved: Any) -> Any:
        """What the rule sends to the arguments that move."""
        import jax

        return jax.vjp(self.value, *moved)[1](weights)


def watch(module: ModuleType) -> None:
    """Replace the calls of both kinds of functions."""
    for name in ("custom_vjp", "custom_jvp"):
        kind = getattr(module, name)
        kind.__call__ = watched(name, kind.__call__)


def watched(kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """`__call__` of a kind of functions that counts its calls."""
    from functools import wraps

    @wraps(call)
    def apply(self: Any, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if recorder.watching() and recorder.wanted(module_of(self.fun)):
            with recorder.guarded():
                count(kind, call, self, args, options)
        return call(self, *args, **options)

    return apply


def count(kind: str, call: Callable[..., Any], rule: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Count a call of a function with a rule; while it is traced, count it when its numbers arrive."""
    import jax

    gradient = recorder.state.rules.get(rule)
    if gradient is None:
        own = filter(None, [getattr(rule, name, None) for name in ("bwd", "jvp")])
        # that of defjvps is JAX's, around the user's
        backward = next((function for function in own if not module_of(function).startswith("jax.")), rule.fun)
        place = described("JAX", kind, backward)
        gradient = described("JAX", kind, rule.fun)
        gradient.name = f"{module_of(rule.fun)}.{gradient.name}"
        gradient.file, gradient.line = place.file or gradient.file, place.line or gradient.line
        gradient.files = list(dict.fromkeys([*gradient.files, *place.files]))
        gradient.caller = recorder.caller_of("jax", "jaxlib")
        gradient = recorder.state.rules[rule] = recorder.known(gradient)
    static = {i % max(len(args), 1) for i in getattr(rule, "nondiff_argnums", ())}
    numbers = [jax.tree_util.tree_structure(arg).num_leaves for arg in args]
    leaves, tree = jax.tree_util.tree_flatten((args, options))
    owner = [i for i, number in enumerate(numbers) for _ in range(number)] + [-1] * len(leaves)
    arrays = [i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]
    moving = [i for i in arrays if leaves[i].dtype.kind == "f" or "float" in str(leaves[i].dtype)]
    moving = [i for i in moving if owner[i] not in static]
    if not moving:
        return
    tracers = [i for i in arrays if isinstance(leaves[i], jax.core.Tracer)]
    if not tracers:
        arrived(gradient, RuleArguments(rule, call, leaves, tree, moving), leaves)
        return
    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if i in tracers else leaf for i, leaf in enumerate(leaves)]
    _traced.append((gradient, RuleArguments(rule, call, shapes, tree, moving), shapes))
    _register()
    known = [None if i in tracers else leaf for i, leaf in enumerate(leaves)]

    def deliver(*values: Any) -> None:
        if not recorder.watching():
            return
        with recorder.guarded():
            filled = [*known]
            for i, value in zip(tracers, values, strict=True):
                filled[i] = value
            arrived(gradient, RuleArguments(rule, call, filled, tree, moving), filled)

    if recorder.state.callbacks:
        jax.debug.callback(deliver, *(leaves[i] for i in tracers))


def arrived(gradient: HandWrittenGradient, traced: RuleArguments, leaves: list[Any]) -> None:
    """Count a call with numbers; keep it where it is due."""
    import numpy as np

    moved = [np.array(leaves[i], dtype=np.float64) for i in traced.moving]

    def export_later(call: int) -> None:
        _kept.append((gradient, call, traced, moved))
        _register()

    if recorder.due(gradient):
        recorder.keep(gradient, moved, export_later)


def _register() -> None:
    """Export at the end of the process, before JAX ends: what is registered last runs first."""
    if not recorder.state.exporting:
        recorder.state.exporting = True
        atexit.register(export)


def export() -> None:
    """Write down what is to be judged."""
    import jax
    import numpy as np

    if os.getpid() != recorder.state.pid:
        return
    with recorder.guarded():
        jax.effects_barrier()
    ends = monotonic() + SECONDS
    seen = {gradient.key for gradient, *_ in _kept}
    for gradient, traced, shapes in _traced:
        if gradient.key not in seen:  # its numbers never arrived
            seen.add(gradient.key)
            draw = np.random.default_rng(0)
            _kept.append((gradient, 0, traced, [draw.standard_normal(shapes[i].shape) for i in traced.moving]))
    with recorder.alone():
        for number, (gradient, call, traced, moved) in enumerate(_kept):
            if monotonic() > ends:
                reason = f"the {SECONDS:g} s for tracing at the end of the process ran out"
                recorder.write({"job": gradient.key, "call": call, "unjudged": reason})
                continue
            try:
                write(f"{recorder.state.pid}-{number}", gradient, call, traced, moved)
            except Exception as problem:
                reason = f"it cannot be traced outside the program: {type(problem).__name__}: {problem}"
                recorder.write({"job": gradient.key, "call": call, "unjudged": reason.splitlines()[0][:300]})


def write(name: str, gradient: HandWrittenGradient, call: int, traced: RuleArguments, moved: Sequence[Any]) -> None:
    """Export a function and its pullback, and write them down with the point."""
    import jax
    import numpy as np
    from jax import export as exporting

    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable(True):
        shapes = [jax.ShapeDtypeStruct(array.shape, np.float64) for array in moved]
        weights = jax.eval_shape(traced.value, *shapes)
        parts = {
            "value": exporting.export(jax.jit(traced.value), platforms=["cpu"])(*shapes),
            "pullback": exporting.export(jax.jit(traced.pullback), platforms=["cpu"])(weights, *shapes),
        }
    path = os.path.join(recorder.state.folder, name)
    for part, exported in parts.items():
        with open(f"{path}.{part}", "wb") as file:
            file.write(exported.mlir_module_serialized)
    np.savez(f"{path}.npz", *moved)
    where = {"job": gradient.key, "call": call, "exported": path, "python": sys.executable, "path": sys.path}
    kept = {part: list(exported.module_kept_var_idx) for part, exported in parts.items()}
    recorder.write({**where, "size": weights.size, "kept": kept})
