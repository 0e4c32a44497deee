"""What operations exist: one declaration each. `catalogue()` collects them; nothing registers itself."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gradcli.graph.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Mapping

# The modules that hold declarations, from the plainest to the most derived.
MODULES = (
    "arithmetic",
    "comparison",
    "movement",
    "indexing",
    "joining",
    "shaping",
    "creation",
    "recurrence",
    "contraction",
    "einsum",
    "steps",
    "rounding",
    "exponential",
    "powers",
    "trigonometric",
    "hyperbolic",
    "special",
    "activations",
    "ordering",
    "reductions",
    "linalg",
    "determinant",
    "spectral",
    "composites",
    "losses",
)

_collected: dict[str, Primitive] = {}
_public: dict[str, Primitive] = {}


def catalogue() -> Mapping[str, Primitive]:
    """Every declared operation by its name, internal ones included; collected once."""
    if not _collected:
        for module in MODULES:
            found = vars(importlib.import_module(f"{__name__}.{module}"))
            for primitive in found.values():
                if isinstance(primitive, Primitive):
                    _collected[primitive.name] = primitive
    return _collected


def functions() -> Mapping[str, Primitive]:
    """What a script may call, by name and by alias; collected once."""
    if not _public:
        for primitive in catalogue().values():
            if not primitive.internal:
                for name in (primitive.name, *primitive.aliases):
                    _public[name] = primitive
    return _public
