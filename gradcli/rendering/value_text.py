"""Numbers and arrays as text or JSON values.

A number is printed with the fewest digits that read back as the same number, never cut to fit a column. Only
`digits`, an option, shortens it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from gradcli.base.results.calculations import Value

INFINITY = float("inf")
NONFINITE = {INFINITY: "inf", -INFINITY: "-inf"}


def number(value: Any, digits: int | None = None) -> str:
    """One number as people read it: `64.0`, `1e-05`, `nan`, `1.0+2.0j`; a float32 has its own digits."""
    if type(value) is float or type(value) is int:
        return repr(value) if digits is None else rounded(value, digits)
    if digits is None and getattr(value, "dtype", None) == "float32":
        return repr(float(str(value)))  # its own shortest digits, spelled as Python spells floats
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, complex):
        real, imaginary = number(plain.real, digits), number(plain.imag, digits)
        return f"{real}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if isinstance(plain, bool):
        return "1" if plain else "0"
    return repr(plain) if digits is None else rounded(plain, digits)


def derivative(value: Any, digits: int | None = None) -> str:
    """A derivative as people read it: `number`, but a zero has no sign."""
    return number(value + 0, digits)


def without_zero(text: str) -> str:
    """A number as exact ones are written: `2` for `2.0`.

    >>> without_zero("-2.0"), without_zero("2.05"), without_zero("2.0*x")
    ('-2', '2.05', '2.0*x')
    """
    return text.removesuffix(".0") if is_decimal(text) else text


def is_decimal(text: str) -> bool:
    """Whether a text is a number without an exponent."""
    return text.lstrip("-").replace(".", "", 1).isdecimal()


def rounded(value: float, digits: int) -> str:
    """The number to `digits` significant digits."""
    return format(value, f".{digits}g")


def jsonable(value: Any) -> Any:
    """A value for JSON: numbers, nested lists, [re, im] if complex, strings for what is not finite."""
    if type(value) is float:
        return value if value - value == 0 else nonfinite(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "tolist"):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind == "b":
            return (value + 0).tolist()
        plain = value.tolist()
        return plain if kind == "f" and bool((abs(value) < INFINITY).all()) else jsonable(plain)
    if isinstance(value, float):
        return jsonable(float(value))
    if isinstance(value, complex):
        return [jsonable(value.real), jsonable(value.imag)]
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return str(value)


def nonfinite(value: float) -> str:
    return NONFINITE.get(value, "nan")


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a number or an array."""
    return tuple(getattr(value, "shape", ()))


def size_of(value: Any) -> int:
    """How many entries a number or an array has."""
    return int(getattr(value, "size", 1))


def entry(value: Any, position: int) -> Any:
    """Entry `position` of an array in row-major order, or the number itself."""
    return value.flat[position] if shape_of(value) else value


def positions(size: int, limit: int) -> Iterator[int | None]:
    """The entries to show of `size`: all up to `limit`, else the first and last few with None between them."""
    if size <= limit:
        yield from range(size)
        return
    head = max(1, (limit - 1) * 2 // 3)
    tail = max(1, limit - 1 - head)
    yield from range(head)
    yield None
    yield from range(size - tail, size)


def inline(value: Any, digits: int | None = None, limit: int = 1000) -> str:
    """A number or an array on one line, as nested lists; an array over `limit` entries is summarised."""
    if isinstance(value, tuple):
        return ", ".join(inline(item, digits, limit) for item in value)
    if isinstance(value, str):
        return value
    if not shape_of(value):
        return number(value, digits)
    if size_of(value) > limit:
        return summary(value, digits)
    return nested(value, digits)


def nested(value: Any, digits: int | None) -> str:
    """An array as nested lists in one line, whatever its size."""
    shape = shape_of(value)
    if size_of(value) == 0:
        return str(value.tolist())
    texts: Iterable[str] = [number(item, digits) for item in value.flat]
    for size in reversed(shape):
        items = list(texts)
        texts = [f"[{', '.join(items[at : at + size])}]" for at in range(0, len(items), size)]
    return "".join(texts)


def summary(value: Any, digits: int | None = None) -> str:
    """A summary of a large array: shape, smallest and largest entry, norm, number of entries that are not finite."""
    shape = "x".join(map(str, shape_of(value)))
    if getattr(value, "dtype", None) is not None and value.dtype.kind == "c":
        return f"array {shape}, complex"
    finite = value[(value == value) & (abs(value) != INFINITY)]
    words = [f"array {shape}"]
    if finite.size:
        digits = 6 if digits is None else digits
        low, high = number(float(finite.min()), digits), number(float(finite.max()), digits)
        norm = number(float((finite.astype("float64") ** 2).sum() ** 0.5), digits)
        words += [f"min {low}", f"max {high}", f"norm {norm}"]
    if finite.size < value.size:
        words.append(f"{value.size - finite.size} not finite")
    return ", ".join(words)


def point(at: dict[str, Value], digits: int | None = None, limit: int = 12) -> str:
    """A point as you would type it: `x = 2.0, y = 3.0`; large arrays are summarised."""
    return ", ".join(f"{name} = {inline(value, digits, limit)}" for name, value in at.items())
