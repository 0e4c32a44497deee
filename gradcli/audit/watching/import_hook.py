"""Watches libraries from the moment they are imported, and imports none of them.

A module is changed right after it has run and before any other module copies names out of it. That is why
`from scipy.optimize import minimize` gives the watched function.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

from gradcli.audit.watching import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = __name__.rpartition(".")[0]

# the module of a library that is changed: the watcher that does it, by its function `watch`
WATCHERS = {
    "torch.autograd.function": f"{_HERE}.torch_functions",
    "torch._library.custom_ops": f"{_HERE}.torch_functions",
    "jax._src.custom_derivatives": f"{_HERE}.jax_rules",
    "autograd.core": f"{_HERE}.autograd_primitives",
    **{
        f"scipy.{name}": f"{_HERE}.scipy_solvers"
        for name in (
            "optimize._minimize", "optimize._lsq.least_squares", "optimize._root", "optimize._minpack_py",
            "optimize._optimize", "optimize._lbfgsb_py", "optimize._tnc", "optimize._slsqp_py", "optimize._zeros_py",
            "optimize._root_scalar", "integrate._ivp.ivp", "integrate._odepack_py", "integrate._bvp",
        )
    },
}  # fmt: skip


def install() -> None:
    """Change the modules of WATCHERS and of pairs as they are imported, and those that are imported already."""
    for name in [*WATCHERS, *recorder.state.pairs]:
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, WatchedFinder())


def change(module: ModuleType) -> None:
    """Let the watchers of a module change it."""
    of_pairs = [f"{_HERE}.paired_gradients"] if module.__name__ in recorder.state.pairs else []
    for name in filter(None, [WATCHERS.get(module.__name__), *of_pairs]):
        with recorder.guarded():
            import_module(name).watch(module)


class WatchedFinder:
    """Takes the spec that other finders give for a module that is watched, and changes the module once it has run."""

    def __init__(self) -> None:
        self.asking: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if (name not in WATCHERS and name not in recorder.state.pairs) or name in self.asking:
            return None
        self.asking.add(name)
        try:
            spec = find_spec(name)
        finally:
            self.asking.discard(name)
        run = getattr(spec and spec.loader, "exec_module", None)
        if spec is not None and run is not None:
            spec.loader.exec_module = changing(run)  # type: ignore[union-attr, method-assign]
        return spec


def changing(run: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """`exec_module` of a loader, with the change behind it."""

    def exec_module(module: ModuleType) -> None:
        run(module)
        change(module)

    return exec_module
