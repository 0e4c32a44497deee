"""The operations, one declaration each. `catalogue()` collects them; nothing registers itself.

Modules are imported until a name is found, the common ones first, and those of other packages last (`plugins.py`).

- Shifts and scales that cancel (`peak`, `magnitude`) are operations: no rule follows them, and exact readings take 0
  and 1 in their place.
- An `impl` may be any routine. SymPy and balls read `symbolic` and `ball`, or `entries` for arrays, else the
  definition; so operations of LAPACK carry a definition for one or two rows (`closed_forms.py`).
- An internal operation has its form in public ones as `closed`: formulas for people are made of it.
"""

from __future__ import annotations

import importlib
from _thread import RLock

from gradcli.base.diagnostics import error
from gradcli.graph.primitive import Primitive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

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
    "gamma_functions",
    "reductions",
    "ordering",
    "extremes",
    "joining",
    "shaping",
    "samples",
    "creation",
    "recurrence",
    "nan_reductions",
    "loop_readers",
    "einsum",
    "closed_forms",
    "matrix_functions",
    "determinant",
    "spectral",
    "composites",
    "loss_functions",
    "densities",
    "bessel",
    "integrals",
    "hypergeometric",
    "incomplete",
    "fourier",
)
PLUGINS = "plugins"  # the module that loads what other packages declare: the last one


class Catalogue(dict[str, Primitive]):
    """Declarations by name. A module is loaded when a name is not in those before it: start-up time is a feature.

    `public` keeps what a script may call, under its aliases too. It is looked up for every node that is made, hence a
    dictionary; iterating over it loads all modules first. Names that are there are found without the
    lock; a name counts as missing only once every module is in, whichever thread loads it.
    """

    def __init__(self, public: bool) -> None:
        super().__init__()
        self.public = public
        self._waiting = [*MODULES, PLUGINS]  # a module leaves the list when its declarations are in

    def __missing__(self, name: str) -> Primitive:
        with _loading:
            while not super().__contains__(name):
                if not self._waiting or self._waiting[0] == _outside.loading:
                    raise KeyError(name)
                self._load()
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def get(self, name: Any, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def keys(self) -> Any:
        self._load_all()
        return super().keys()

    def values(self) -> Any:
        self._load_all()
        return super().values()

    def items(self) -> Any:
        self._load_all()
        return super().items()

    def _load_all(self) -> None:
        if self._waiting:
            with _loading:
                while self._waiting and self._waiting[0] != _outside.loading:
                    self._load()

    def _load(self) -> None:
        name = self._waiting[0]
        module = importlib.import_module(f"{__name__}.{name}")
        for primitive in vars(module).values() if name != PLUGINS else _outside.declared(module):
            if not isinstance(primitive, Primitive) or primitive.kind == "input":
                continue  # inputs are declared by the graph
            if not (self.public and primitive.internal):
                for name in (primitive.name, *primitive.aliases) if self.public else (primitive.name,):
                    self[name] = primitive
            if primitive.derivative is not None and not self.public:
                self[primitive.derivative.name] = primitive.derivative
        self._waiting.pop(0)


class Outside:
    """The operations that other packages declare; loaded once, for both catalogues.

    While they are loaded, `loading` is the name of their module: formulas in them then see gradcli's operations only.
    """

    def __init__(self) -> None:
        self.loading: str | None = None
        self._found: list[Primitive] | None = None

    def declared(self, module: Any) -> list[Primitive]:
        """What `module`, which is `plugins`, finds."""
        if self._found is None:
            self.loading = PLUGINS
            try:
                self._found = module.load(_functions)
            finally:
                self.loading = None
        return self._found


declared: dict[str, Primitive] = {}  # in this process, by name
_addresses: dict[str, Primitive] = {}  # by addresses in other libraries, and by the last word of them
_elsewhere: dict[str, Primitive] = {}
_loading = RLock()
_catalogue = Catalogue(public=False)
_functions = Catalogue(public=True)
_outside = Outside()


def declare(primitive: Primitive) -> None:
    """Make an operation known to this process, in place of one that was declared here under its name.

    What is declared while packages are loaded is theirs. Raises GradcliError GC216 for a name that is taken.
    """
    with _loading:
        if _outside.loading is not None:
            return
        name = primitive.name
        known = _functions.get(name) or _catalogue.get(name)
        if known is not None and name not in declared:
            owner = f"of {known.package}" if known.package else "of gradcli"
            raise error("GC216", f"operation {name}: `{name}` is an operation {owner}", help="give it another name")
        declared[name] = _functions[name] = _catalogue[name] = primitive
        _addresses.clear()


def forget(name: str) -> None:
    """Take back what `declare` did."""
    for table in (declared, _functions, _catalogue):
        table.pop(name, None)
    _addresses.clear()


def catalogue() -> Mapping[str, Primitive]:
    """Every declared operation by its name, internal ones included."""
    return _catalogue


def addresses() -> Mapping[str, Primitive]:
    """The operations that work entry by entry, by their addresses in other libraries: `torch.special.expit`."""
    if not _addresses:
        pointwise = [primitive for primitive in _catalogue.values() if primitive.pointwise]
        _elsewhere.clear()
        _addresses.update({address: each for each in pointwise for address in each.addresses})
        _elsewhere.update({address.rpartition(".")[2]: each for address, each in _addresses.items()})
    return _addresses


def called_elsewhere(name: str) -> Primitive | None:
    """The operation that another library has under a name, such as `expit`."""
    addresses()
    return _elsewhere.get(name) or _catalogue.get(name) or _functions.get(name)


def functions() -> Mapping[str, Primitive]:
    """What a script may call, by name and by alias."""
    return _functions
