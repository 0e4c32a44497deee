"""Formulas of the script language as MathML, which browsers show without a library."""

from __future__ import annotations

import re
from unicodedata import lookup

from gradcli.rendering.mathematics import GREEK, Mathematics, stem_and_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INVISIBLE_TIMES, FUNCTION_APPLICATION = "&#x2062;", "&#x2061;"


def mathml(text: str, ranks: Mapping[str, int]) -> str:
    """A formula as a `math` element; `ranks` are those of its names, and a name that is not in `ranks` is a number.

    >>> mathml("x/2", {"x": 1})
    '<math><mfrac><mi>x</mi><mn>2</mn></mfrac></math>'
    """
    return f"<math>{MathML(ranks).formula(text)}</math>"


class MathML(Mathematics):
    """Presentation MathML."""

    top = "<mo>⊤</mo>"
    symbols = {"eye": '<mi mathvariant="normal">I</mi>', "ones": "<mn>1</mn>", "zeros": "<mn>0</mn>"}
    signs = {
        "-": "−",
        "<=": "≤",
        ">=": "≥",
        "!=": "≠",
        "==": "=",
        "<": "&lt;",
        ">": "&gt;",
        "and": "∧",
        "or": "∨",
        "not": "¬",
    }

    def number(self, text: str) -> str:
        return f"<mo>−</mo><mn>{text[1:]}</mn>" if text[0] == "-" else f"<mn>{text}</mn>"

    def name(self, name: str) -> str:
        return name_element(name)

    def verbatim(self, text: str) -> str:
        return f"<mtext>{escaped(text)}</mtext>"

    def bracketed(self, text: str) -> str:
        return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"

    def prefixed(self, sign: str, text: str) -> str:
        return self.sign(sign) + text

    def sign(self, sign: str) -> str:
        return f"<mo>{self.signs.get(sign, sign)}</mo>"

    def operator(self, left: str, sign: str, right: str) -> str:
        return left + self.sign(sign) + right

    def beside(self, one: str, other: str) -> str:
        return self.operator(one, INVISIBLE_TIMES, other)

    def dotted(self, one: str, other: str) -> str:
        return self.operator(one, "·", other)

    def begins_with_digit(self, text: str) -> bool:
        return re.match("(<mrow>|<msup>)*<mn>", text) is not None

    def fraction(self, above: str, below: str) -> str:
        return f"<mfrac>{row(above)}{row(below)}</mfrac>"

    def power(self, base: str, exponent: str, entrywise: bool = False) -> str:
        return f"<msup>{row(base)}{row('<mo>∘</mo>' * entrywise + exponent)}</msup>"

    def index(self, base: str, places: str) -> str:
        return f"<msub>{row(base)}{row(places)}</msub>"

    def joined(self, parts: Sequence[str], sign: str) -> str:
        return self.sign(sign).join(parts)

    def root(self, text: str) -> str:
        return f"<msqrt>{text}</msqrt>"

    def fenced(self, kind: str, text: str) -> str:
        fence = self.sign("|" if kind == "abs" else "‖")
        return row(fence + text + fence)

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        lines = ["".join(f"<mtd>{cell}</mtd>" for cell in cells) for cells in rows]
        return self.bracketed(f"<mtable>{''.join(f'<mtr>{line}</mtr>' for line in lines)}</mtable>")

    def cases(self, condition: str, yes: str, no: str) -> str:
        lines = ((yes, condition), (no, "<mtext>else</mtext>"))
        cells = "".join(f"<mtr><mtd>{value}</mtd><mtd>{when}</mtd></mtr>" for value, when in lines)
        return row(f"<mo>{{</mo><mtable>{cells}</mtable>")

    def function(self, name: str, parts: Sequence[str]) -> str:
        return f"<mi>{escaped(name)}</mi><mo>{FUNCTION_APPLICATION}</mo>{self.bracketed(self.joined(parts, ','))}"


def row(text: str) -> str:
    """Elements in one `mrow`."""
    return f"<mrow>{text}</mrow>" if text.count("<") > 2 else text


def escaped(text: str) -> str:
    """Text with the special characters of XML escaped."""
    return text.translate({38: "&amp;", 60: "&lt;", 62: "&gt;"})


def name_element(name: str) -> str:
    """A name: x1 as x with an index, Greek letters by name."""
    stem, index = stem_and_index(name)
    if stem.lower() in GREEK or stem == "lam":
        size = "CAPITAL" if stem[0].isupper() else "SMALL"
        letter = {"lam": "LAMDA", "lambda": "LAMDA"}.get(stem.lower(), stem.upper())
        stem = lookup(f"GREEK {size} LETTER {letter}")
    element = f"<mi>{escaped(stem)}</mi>"
    return f"<msub>{element}<mn>{index}</mn></msub>" if index else element


__all__ = ["mathml"]
