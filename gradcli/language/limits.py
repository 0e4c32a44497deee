"""Reads `--limit` texts and mappings into Limits."""

from __future__ import annotations

import re

from gradcli.base.diagnostics import did_you_mean, error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "kib": 2**10,
    "mb": 10**6,
    "mib": 2**20,
    "gb": 10**9,
    "gib": 2**30,
}
AMOUNT = r"([0-9]+(?:_[0-9]+)*)(?:[eE]\+?([0-9]{1,2}))?\s*([A-Za-z]{0,3})"
LARGEST = 2**62
HELP = "write it as text=64KiB,nodes=1000000,nesting=200,digits=400"


class Limits:
    """The limits on a script. Treat an instance as frozen.

    text: bytes of UTF-8. nodes: of the graph, after differentiation. nesting: brackets, signs, powers and
    blocks inside each other. digits: of one literal. elements: of one array, computed before it is allocated.
    work: steps of loops, iterations times the nodes of an iteration.
    """

    __slots__ = ("digits", "elements", "nesting", "nodes", "text", "work")

    def __init__(
        self,
        text: int = 64 * 1024,
        nodes: int = 1_000_000,
        nesting: int = 200,
        digits: int = 400,
        elements: int = 2**27,
        work: int = 10**8,
    ) -> None:
        self.text = text
        self.nodes = nodes
        self.nesting = nesting
        self.digits = digits
        self.elements = elements
        self.work = work

    def as_dict(self) -> dict[str, int]:
        """Return the limits by name, in the order in which they are documented."""
        return {key: getattr(self, key) for key in NAMES}

    def __repr__(self) -> str:
        return f"Limits({', '.join(f'{key}={value}' for key, value in self.as_dict().items())})"


NAMES = ("text", "nodes", "nesting", "digits", "elements", "work")
DEFAULT_LIMITS = Limits()
if TYPE_CHECKING:
    LimitsLike = Limits | Mapping[str, object] | str | None


def parse_limits(text: str, base: Limits = DEFAULT_LIMITS) -> Limits:
    """Return `base` changed by a text such as "text=64KiB,nodes=1000000"; raises GC702 for a malformed text.

    >>> parse_limits("text=1MiB,nesting=1e5").text
    1048576
    """
    changes: dict[str, object] = {}
    for part in text.split(","):
        key, equals, amount = part.partition("=")
        if not equals:
            raise error("GC702", f"`{visible(part.strip())}` is not NAME=NUMBER", help=HELP)
        if key.strip() in changes:
            raise error("GC702", f"the limit `{visible(key.strip())}` is given twice")
        changes[key.strip()] = amount.strip()
    return make_limits(changes, base)


def limits_of(value: LimitsLike) -> Limits:
    """Limits from Limits, a mapping, a text as for `--limit`, or None for the defaults.

    >>> limits_of({"nodes": 10}).nodes
    10
    """
    if value is None or isinstance(value, Limits):
        return value or DEFAULT_LIMITS
    return parse_limits(value) if isinstance(value, str) else make_limits(value)


def make_limits(changes: Mapping[str, object], base: Limits = DEFAULT_LIMITS) -> Limits:
    """Return `base` changed by a mapping of names to integers or texts such as "64KiB"; raises GC702 for others."""
    values = base.as_dict()
    for key, amount in changes.items():
        if key not in values:
            guess = did_you_mean(key, NAMES)
            names = ", ".join(NAMES)
            raise error(
                "GC702",
                f"unknown limit `{visible(key)}`",
                help=f"did you mean `{guess}`?" if guess else f"the limits are {names}",
            )
        values[key] = read_amount(key, amount)
    return Limits(**values)


def read_amount(key: str, amount: object) -> int:
    """Return one limit as an integer of at least 1."""
    number: int | None = None
    if type(amount) is int:
        number = amount
    elif isinstance(amount, str) and len(amount) <= 40 and (match := re.fullmatch(AMOUNT, amount.strip())):
        digits, exponent, unit = match.groups()
        factor = UNITS.get(unit.lower())
        if factor is not None and (key == "text" or not unit):
            number = int(digits.replace("_", "")) * 10 ** int(exponent or 0) * factor
    if number is None or not 1 <= number <= LARGEST:
        shown = visible(amount if isinstance(amount, str) else repr(amount))
        sizes = "bytes, such as 65536 or 64KiB" if key == "text" else "a whole number, such as 1000"
        raise error("GC702", f"`{shown}` is not a value for the limit `{key}`", help=f"write {sizes}")
    return number
