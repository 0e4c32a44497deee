"""What operations exist: one declaration each. `catalogue()` collects them; nothing registers itself."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from gradcli.graph.primitive import Primitive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The modules that hold declarations; those that one-liners need stand first.
MODULES = (
    "arithmetic",
    "comparison",
    "movement",
    "exponential",
    "powers",
    "trigonometric",
    "steps",
    "contraction",
    "positions",
    "indexing",
    "triangles",
    "hyperbolic",
    "activations",
    "rounding",
    "special",
    "reductions",
    "ordering",
    "extremes",
    "joining",
    "shaping",
    "creation",
    "recurrence",
    "einsum",
    "closed_forms",
    "linalg",
    "determinant",
    "spectral",
    "composites",
    "losses",
)


class Catalogue(Mapping[str, Primitive]):
    """Declarations by name. A module is loaded when a name is not in those before it: start-up time is a feature.

    `public` keeps what a script may call, under its aliases too.
    """

    def __init__(self, public: bool) -> None:
        self.public = public
        self._found: dict[str, Primitive] = {}
        self._waiting = list(MODULES)

    def __getitem__(self, name: str) -> Primitive:
        known = self._found.get(name)
        if known is not None:
            return known
        while name not in self._found and self._waiting:
            self._load()
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        while self._waiting:
            self._load()
        return iter(self._found)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load(self) -> None:
        module = importlib.import_module(f"{__name__}.{self._waiting.pop(0)}")
        for primitive in vars(module).values():
            if not isinstance(primitive, Primitive) or primitive.kind == "input":
                continue  # inputs are declared by the graph
            if not (self.public and primitive.internal):
                for name in (primitive.name, *primitive.aliases) if self.public else (primitive.name,):
                    self._found[name] = primitive


_catalogue = Catalogue(public=False)
_functions = Catalogue(public=True)


def catalogue() -> Mapping[str, Primitive]:
    """Every declared operation by its name, internal ones included."""
    return _catalogue


def functions() -> Mapping[str, Primitive]:
    """What a script may call, by name and by alias."""
    return _functions
