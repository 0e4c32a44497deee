"""The table of operations; the row of an operation is the decorator of its function.

`@op(...)` above a function is its row. `@formula(...)` is the row of a function that is a formula: it is called with
nodes of a graph, and what it returns is one node of PyTorch's. `install.py` makes the names of `torch`, the methods and
the `_` forms from the rows; the checks of arguments and the names of what nodes save read them too. No function names
a node: `cat.node` is that of the row of `cat`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import fastpath
from gradcli.eager._engine.arguments import need_kind
from gradcli.eager._engine.plan import limited
from gradcli.eager._engine.record import cast, record

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

FUNCTION, METHOD, LINALG, LAYER = "function", "method", "linalg", "layer"  # `only`


@dataclass(frozen=True, slots=True)
class OperationEntry:
    """One operation: its names, where they are found, and what it takes.

    `only`: FUNCTION or METHOD where it is not both; LINALG where `torch.linalg` alone has the name, and `torch` the
    aliases; LAYER for what `torch.nn.functional` has. `inplace`: whether it has a `_` form, which writes the entries
    into the tensor. `fast`: the method checks its arguments by itself. `nodes`: PyTorch's names of the nodes that it
    leaves, where it has its own; which one, its arguments decide. `saves`: what PyTorch calls the operands of the node,
    separated by spaces, where they are not the tensors among the arguments in their order. `least`: the kind of numbers
    that its first tensor must have at least, as in `need_kind`.
    """

    name: str
    aliases: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    only: str = ""
    inplace: bool = False
    fast: bool = False
    saves: str = ""
    least: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)


class Operation(Protocol[P, R]):
    """A function with its row; `node` is the first of the row's nodes."""

    __name__: str
    row: OperationEntry
    node: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def op(aliases: str = "", *, node: str = "", **columns: Any) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """The row of the function below, whose name it has; `aliases` and nodes are separated by spaces."""

    def with_row(function: Any) -> Any:
        name = columns.pop("name", function.__name__)
        function.row = OperationEntry(name, tuple(aliases.split()), tuple(node.split()), **columns)
        function.node = node.partition(" ")[0]
        return function

    return with_row


def formula(
    aliases: str = "", *, variant: str = "", whole: bool = False, pointwise: bool = True, least: int = 0, **columns: Any
) -> Callable[[Callable[..., Any]], Callable[..., Tensor]]:
    """The row of an operation that is a formula of declared operations: its tensors are operands, all else parameters.

    Its node has its name.

    `variant`: the argument that gives the node the number 1, as in `FmodBackward1`: an operand that is a tensor, or a
    parameter that is not None. `whole`: whole numbers stay whole. `pointwise`: it works entry by entry. `least`: the
    kind of numbers that one operand must have at least, as in `need_kind`. An argument `dtype` is the format to compute
    in.
    """

    def with_row(rule: Callable[..., Any]) -> Callable[..., Tensor]:
        arguments = inspect.signature(rule)
        names = tuple(arguments.parameters)
        operands = tuple([name for name in names if rule.__annotations__.get(name) in ("Tensor", "Operand")])
        parameters = names[len(operands) :]
        defaults = {name: arguments.parameters[name].default for name in parameters}
        places = len(names) - len(rule.__kwdefaults__ or ())
        count, known = len(operands), frozenset(parameters)
        name = rule.__name__
        kind = name.title().replace("_", "")
        nodes = columns.pop("node", f"{kind}Backward0 {kind}Backward1" if variant else f"{kind}Backward0").split()

        signatures: dict[Any, Any] = {}  # of what was recorded, by the parameters as they were given

        def function(*args: Any, **options: Any) -> Tensor:
            key: Any = (args[count:], *options.items())
            try:
                done = fastpath.again(signatures[key], *args[:count]) if key in signatures else None
            except TypeError:  # a list is no key
                key = done = None
            if done is not None:
                return done
            if not count <= len(args) <= places or not options.keys() <= known:
                bound = arguments.bind(*args, **options)
                args = tuple([bound.arguments.pop(name) for name in operands])
                options = bound.arguments
            options = {**defaults, **dict(zip(parameters, args[count:], strict=False)), **options}
            options = {name: tuple(x) if isinstance(x, list) else x for name, x in options.items()}
            dtype = options.pop("dtype", None)
            xs = tuple([x if isinstance(x, Tensor) else as_tensor_or_number(x) for x in args[:count]])
            if dtype is not None:
                xs = (cast(xs[0], dtype), *xs[1:])
            need_kind(name, xs, least)
            several = isinstance(xs[operands.index(variant)], Tensor) if variant in operands else options.get(variant)
            node = nodes[several is not None and several is not False]
            edges = tuple([i for i, x in enumerate(xs) if isinstance(x, Tensor)])
            result = record(rule, xs, options, node, pointwise=pointwise, keep_integer=whole, edges=edges)
            if key is not None and dtype is None and len(edges) == count:
                limited(signatures, key, (rule, node, edges, False, *options.values()))
            return result if dtype is None or result.dtype is dtype else cast(result, dtype)

        result: Any = function
        if pointwise and names == operands and count == 1:
            result = fastpath.unary(name, rule, nodes[0], function)
        elif pointwise and names == operands and count == 2 and variant:
            of_number = nodes[operands.index(variant) ^ 1]
            result = fastpath.binary(name, rule, nodes[1], function, of_number=of_number)
        result = described(result, name, rule.__doc__ or "", **rule.__annotations__)
        result.rule = result.__wrapped__ = rule
        return op(aliases, node=" ".join(nodes), **columns)(result)

    return with_row


# what an argument of a row is, by its name
KINDS = {
    **dict.fromkeys(("input", "end", "tensor1", "tensor2", "index", "src", "values", "vec", "mat2"), "Tensor"),
    **dict.fromkeys(("other", "weight"), "Operand"),
    **dict.fromkeys(("dim", "diagonal"), "int"),
    **dict.fromkeys(("keepdim", "descending", "stable", "equal_nan"), "bool"),
    **dict.fromkeys(("value", "rtol", "atol"), "float"),
    "eps": "float | None",
    "dtype": "dtypes.dtype | None",
    "tensors": "Sequence[Tensor]",
    "size": "Sizes",
}


def rows(make: Any, functions: dict[str, tuple[str, Any]], kinds: dict[str, str] | None = None, **columns: Any) -> Any:
    """Rows by their names, made by `op` or `formula`: of each what it does, and an expression.

    The kinds of its arguments follow from their names, except where `kinds` says otherwise. The columns are those of
    all rows.
    """
    known, table = {**KINDS, **(kinds or {})}, {}
    for name, (summary, function) in functions.items():
        names = function.__code__.co_varnames
        argument_kinds = {argument: known[argument] for argument in names if argument in known}
        table[name] = make(**columns)(described(function, name, summary, **argument_kinds))
    return table


def as_tensor_or_number(x: Any) -> Any:
    """An operand: a tensor as it is, an array's scalar as a number; TypeError for anything else."""
    if isinstance(x, (Tensor, int, float, complex)):
        return x
    if isinstance(x, np.generic):
        return x.item()
    raise TypeError(f"operands are tensors and numbers, not {type(x).__name__}")


def described(function: Any, name: str, summary: str, **annotations: str) -> Any:
    """A function that was made of a row, with its name, its documentation and the kinds of its arguments."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    function.__annotations__.update(annotations)
    return function


def saved_by(function: Any) -> tuple[tuple[str, ...], bool]:
    """What PyTorch calls the operands that the node of an operation saves, and whether `dim` may be several axes."""
    rule = getattr(function, "rule", function)
    code, kinds = rule.__code__, rule.__annotations__
    names = code.co_varnames[: code.co_argcount]
    tensors = [name for name in names[1:] if kinds.get(name, "Tensor").startswith(("Tensor", "Operand"))]
    operands = function.row.saves.split() or [*names[:1], *tensors]
    several = kinds.get("dim") in ("Dims", "Sizes", "Spread")
    return tuple(["self" if name == "input" else name for name in operands]), several


def functions_of(*modules: Any) -> dict[str, Any]:
    """The functions of modules that have a row, by all their names."""
    functions = [
        function
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_")
        for function in (value.values() if isinstance(value, dict) else (value,))
        if isinstance(getattr(function, "row", None), OperationEntry)
    ]
    return {name: function for function in functions for name in function.row.names}
