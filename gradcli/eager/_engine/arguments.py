"""Argument checks and conversions, as PyTorch's: types first, sizes in any form; declared constructors.

What a function takes is read from its annotations, by name, so that it is said once. A wrong type is a TypeError before
anything is computed; NumPy's words `axis` and `keepdims` are understood for `dim` and `keepdim`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from operator import index
from types import FunctionType
from typing import Any

import numpy as np

from gradcli.eager._core import dtypes
from gradcli.eager._core.tensor import Tensor

Test = Callable[[Any], bool]


def constructor(options: Iterable[Parameter], fill: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` with these options, which calls `fill(self, **options)` with defaults filled in.

    TypeError for missing and unknown options, as of any function.

    >>> class Point:
    ...     def fill(self, x):
    ...         self.x = x
    ...     __init__ = constructor([Parameter("x", Parameter.POSITIONAL_OR_KEYWORD, default=1)], fill)
    >>> Point().x, Point(2).x
    (1, 2)
    """
    signature = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *options])

    def initialize(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(args[0]).__name__}.__init__() {error}") from None
        bound.apply_defaults()
        fill(*bound.args[:1], **dict(list(bound.arguments.items())[1:]))

    initialize.__name__, initialize.__signature__ = "__init__", signature  # type: ignore[attr-defined]
    return initialize


class ConstructorOptions(tuple[Parameter, ...]):
    """The arguments of a constructor."""

    __slots__ = ()


def options(text: str, **defaults: Any) -> ConstructorOptions:
    """The arguments that a text says, as Python writes them; defaults are plain values, or `...` and given by name.

    >>> options("p, q=..., *, r=(1, 2)", q=len)
    (<Parameter "p">, <Parameter "q=<built-in function len>">, <Parameter "r=(1, 2)">)
    """
    tree: Any = ast.parse(f"lambda {text}: 0", mode="eval")
    arguments = tree.body.args
    required = [None] * (len(arguments.args) - len(arguments.defaults))
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    rows = [(kind, *row) for row in zip(arguments.args, required + arguments.defaults, strict=True)]
    rows += [(Parameter.KEYWORD_ONLY, *row) for row in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    parameters = []
    for kind, argument, default in rows:
        value = Parameter.empty if default is None else defaults.get(argument.arg, ...)
        parameters.append(Parameter(argument.arg, kind, default=ast.literal_eval(default) if value is ... else value))
    return ConstructorOptions(parameters)


Shape = tuple[int, ...]


def sizes(args: tuple[Any, ...], named: Any = None, name: str = "size") -> Shape:
    """Sizes given one by one, as one sequence, or by name. TypeError for none, and for what is not a whole number."""
    if not args:
        if named is None:
            raise TypeError(f"missing 1 required positional argument: {name!r} (tuple of ints)")
        args = (named,)
    elif named is not None:
        raise TypeError(f"got multiple values for argument {name!r}")
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    return tuple([n if n.__class__ is int else _whole(n) for n in args])


def _whole(n: Any) -> int:
    if not hasattr(n, "__index__") or isinstance(n, bool):
        raise TypeError(f"sizes and axes must be whole numbers (tuple of ints), not {type(n).__name__}")
    return index(n)


# names of annotations, for signatures whose arguments have several forms
Number = Any  # a plain number, or a tensor of one entry
Operand = Any  # a number or a tensor
Dims = Any  # a whole number, several of them, or None
Sizes = Any  # whole numbers, or one
Extents = Any  # the same, along the axes of an image
Wished = Any  # the same, with None for a size that stays
Spread = Any  # axes, or in their place the truth value `unbiased`
Tensors = Any  # each of several tensors, or one sequence of them
Order = Any  # the number of a norm, or its name

_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "a": "input", "x2": "other"}
_ALIASES.update(axis0="dim0", axis1="dim1")  # of swapaxes
_VARARGS = 4  # the flag of functions with *args
_NUMBERS = (int, float, complex, np.number, np.bool_)
_REALS = (int, float, np.floating, np.integer)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def _is_whole(x: Any) -> bool:
    if isinstance(x, Tensor):
        return (not x.ndim and x.dtype.kind == 1) or (x._raw.dtype == np.bool_ and not x.ndim)
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _is_number(x: Any) -> bool:
    return isinstance(x, _NUMBERS) or (isinstance(x, Tensor) and not x.ndim)


def _all(test: Test, alone: bool = False) -> Test:
    """The test of a sequence by a test of its entries; `alone`: one entry will do."""
    return lambda x: (isinstance(x, (tuple, list)) and all(map(test, x))) or (alone and test(x))


_are_whole, _wished = _all(_is_whole, True), _all(lambda n: n is None or _is_whole(n), True)
# by the name of an annotation: the test, and what an error says is wanted
_KINDS: dict[str, tuple[Test, str]] = {
    "Tensor": (_is_tensor, "Tensor"),
    "Tensors": (_is_tensor, "Tensor"),
    "int": (_is_whole, "int"),
    "float": (lambda x: isinstance(x, _REALS) or (isinstance(x, Tensor) and not x.ndim), "float"),
    "Number": (_is_number, "Number"),
    "Operand": (lambda x: isinstance(x, (Tensor, *_NUMBERS)), "Tensor or Number"),
    "bool": (lambda x: isinstance(x, (bool, np.bool_)), "bool"),
    "str": (lambda x: isinstance(x, str), "str"),
    "Sequence[Tensor]": (_all(_is_tensor), "tuple of Tensors"),
    "Sequence[int]": (_all(_is_whole), "tuple of ints"),
    "Dims": (lambda x: x is None or _are_whole(x), "int or tuple of ints"),
    "Sizes": (_are_whole, "tuple of ints"),
    "Extents": (_are_whole, "tuple of ints"),
    "Wished": (lambda x: x is not None and _wished(x), "tuple of ints"),
    "Spread": (lambda x: x is None or isinstance(x, (bool, np.bool_)) or _are_whole(x), "tuple of ints"),
    "Order": (lambda x: x is None or isinstance(x, str) or _is_number(x), "Number"),
    "dtypes.dtype": (lambda x: isinstance(dtypes.meant(x), dtypes.dtype), "torch.dtype"),
}
_TESTS: dict[str, Test] = {name: test for name, (test, _) in _KINDS.items()}
_TESTS.update({f"{name} | None": (lambda x, test=test: x is None or test(x)) for name, (test, _) in _KINDS.items()})  # type: ignore[misc]
_PLAIN = frozenset((int, float, bool, str, type(None)))  # types that say all of a value
_BY_TYPE = (None, _is_tensor, _KINDS["Operand"][0])  # tests of the type alone
_NUMERIC = ("int", "float", "int | None", "float | None", "Number", "Number | None", "Dims")
_LOOSE = ("inplace", "training")  # PyTorch takes the truth value of anything


def checked(function: Any, method: bool = False, floating: bool = False, call: Any = None) -> Any:
    """The function with a check of its arguments in front; itself where its annotations say nothing.

    The first argument of a method is a tensor anyway. `floating`: it has to be one of floating-point numbers. `call` is
    called in place of the function, which then only says the arguments.
    """
    if not isinstance(function, FunctionType):
        return function
    call = call or function
    rule = getattr(function, "rule", function)  # of a formula: what says the arguments
    code, said = rule.__code__, rule.__annotations__
    names = code.co_varnames[: code.co_argcount]
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    by_name = {name: _TESTS[said[name]] for name in (*names, *only) if said.get(name) in _TESTS and name not in _LOOSE}
    tests = tuple([by_name.get(name) for name in names])
    rest = code.co_varnames[len(names) + len(only)] if code.co_flags & _VARARGS else ""
    others = _TESTS.get(said.get(rest, ""))
    if not by_name and others is None:
        return function
    if method and set(by_name) <= set(names[:1]) and others is None and not set(names) & {"dim", "keepdim"}:
        return function
    known = frozenset((*names, *only))
    plain = frozenset(at for at, name in enumerate(names) if said.get(name) in _NUMERIC)
    title = function.__name__
    least = code.co_argcount - len(rule.__defaults__ or ())
    most = 1000 if code.co_flags & _VARARGS else code.co_argcount

    lowest = 2 if floating else getattr(getattr(function, "row", None), "least", 0)
    passed: set[Any] = set()  # types of arguments that were right, where they say all

    def called(*args: Any, **kwargs: Any) -> Any:
        types = tuple(map(type, args))
        if types not in passed:
            check(args)
            pairs = zip(types, tests)  # noqa: B905 - not all are given
            if others is None and not lowest and all(t in _PLAIN or test in _BY_TYPE for t, test in pairs):
                passed.add(types)
        if kwargs:
            words: tuple[Any, ...] = (*kwargs, *map(type, kwargs.values()))
            if words not in passed:
                before, kwargs = kwargs, named(kwargs)
                if kwargs is before and _PLAIN.issuperset(words[len(kwargs) :]):
                    passed.add(words)
        for at in plain:
            if at < len(args) and isinstance(args[at], Tensor):
                args = (*args[:at], args[at].item(), *args[at + 1 :])
        try:
            return call(*args, **kwargs)
        except Exception as wrong:
            if _meant(wrong):
                raise
            kind: type[Exception] = TypeError if isinstance(wrong, AttributeError) else RuntimeError
            if isinstance(wrong, IndexError):  # NumPy's AxisError is one too
                kind = IndexError
            raise kind(f"{title}() cannot be computed for these arguments: {wrong}") from wrong

    def check(args: tuple[Any, ...]) -> None:
        if len(args) > most:
            raise TypeError(f"{title}() takes {most} positional arguments, but {len(args)} were given")
        for at, (x, test) in enumerate(zip(args, tests)):  # noqa: B905 - more of them than names are `others`
            if test is not None and not test(x):
                raise _wrong(title, names[at], at, said[names[at]], x)
        xs = args[len(names) :] if others is not None else ()
        for x in xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list)) and not names else xs:
            if not others(x):  # type: ignore[misc]
                raise _wrong(title, rest, 0, said[rest], x)
        if lowest:
            need_kind(title, args[:1], lowest)

    def named(kwargs: dict[str, Any]) -> dict[str, Any]:
        for name in kwargs.keys() - known:  # `axis` is `dim`
            other = _ALIASES.get(name, "")
            if other in known and other not in kwargs:
                kwargs = {other if key == name else key: x for key, x in kwargs.items()}
        if "dtype" in kwargs:
            kwargs = {**kwargs, "dtype": dtypes.meant(kwargs["dtype"])}
        for name, x in kwargs.items():
            if name in by_name and not by_name[name](x):
                raise _wrong(title, name, 0, said[name], x)
        if not any(isinstance(x, Tensor) for x in kwargs.values()):
            return kwargs
        return {
            name: x.item() if isinstance(x, Tensor) and said.get(name) in _NUMERIC else x for name, x in kwargs.items()
        }

    called.__name__, called.__qualname__, called.__doc__ = title, function.__qualname__, function.__doc__
    called.__module__ = function.__module__
    called.row, called.node = getattr(function, "row", None), getattr(function, "node", "")  # type: ignore[attr-defined]
    called.__wrapped__, called.check = function, check  # type: ignore[attr-defined]
    called.least = least  # type: ignore[attr-defined]
    return called


def need_kind(name: str, xs: tuple[Any, ...], least: int) -> None:
    """NotImplementedError unless an operand has numbers of a kind: whole ones (1) or floating-point ones (2)."""
    if all(isinstance(x, Tensor) and x._raw.dtype in dtypes.FLOATS for x in xs):
        return
    kinds = [x.dtype if isinstance(x, Tensor) else dtypes.of_number(x) for x in xs]
    highest = max(kinds, key=lambda kind: kind.kind, default=dtypes.float32)
    if highest.kind < least:
        what = "a floating-point dtype" if least == 2 else "numbers"
        raise NotImplementedError(f"{name}() is not implemented for {highest}: it needs {what}")


def _meant(wrong: BaseException) -> bool:
    """Whether an error was raised by a `raise` of this package, or by the call itself; not by what it computes with."""
    from opcode import opmap

    trace: Any = wrong.__traceback__
    if type(wrong) is TypeError or trace.tb_next is None:
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    home = type(wrong).__module__
    name = trace.tb_frame.f_globals.get("__name__", "")
    if home.startswith("gradcli.") and not home.startswith("gradcli.eager"):
        return False
    if not name.startswith("gradcli."):
        return not name.startswith("numpy")
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] in (opmap["RAISE_VARARGS"], opmap["RERAISE"])


def _wrong(title: str, name: str, at: int, kind: str, x: Any) -> TypeError:
    """The error for an argument of a wrong type, at a position counted from 0."""
    wanted = _KINDS[kind.removesuffix(" | None")][1]
    return TypeError(f"{title}(): argument '{name}' (position {at + 1}) must be {wanted}, not {type(x).__name__}")
