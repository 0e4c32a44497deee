"""Diagnostics for characters that start no token: their name, and what to type instead.

Characters that look like others and invisible ones have tables of their own.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.diagnostics import Span

# Greek letters of names, without those drawn like Latin ones (capital Alpha, small omicron, ...)
GREEK = "ΓΔΘΛΞΠΣΦΨΩα-ξπ-ω"

# never allowed, also not in comments and strings: they hide text, reorder it or steer a terminal
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\uffff"
    "\U000e0000-\U000e0fff]"
)

LATIN = dict(
    zip(
        # Cyrillic
        "асеһіјӏорԛѕԝхуАВСЕНІЈКМОРԚЅТԜХУ"
        # Greek
        "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοϲϳ"
        # Armenian, Latin extensions, Cherokee
        "օսհոɑɡıȷ",
        "acehijlopqswxyABCEHIJKMOPQSTWXYABEZHIKMNOPTYXocjouhnagij",
        strict=True,
    )
)
# signs of mathematics that are read as operators
OPERATORS = {
    "−": "-",
    "×": "*",
    "⊙": "*",
    "·": "*",
    "⋅": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "‖": "||",
    "∥": "||",
}
POWERS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ", "0123456789n", strict=True))
ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0307": "dot"}
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))  # of names: x₁ is x_1
SIGNS = {
    sign: meant
    for meant, signs in {
        "-": "–—‐‑‒﹣",
        "*": "∙•∗✕⨯⋆",
        "/": "∕⁄",
        "<=": "⩽",
        ">=": "⩾",
        "==": "≡",
        "'": "‘’′",
        '"': "“”„«»″",
        "and": "∧",
        "or": "∨",
        "not": "¬",
        "in": "∈",
        "inf": "∞",
        "e": "ⅇℯ",
        "Δ": "∆",
        "sqrt(...)": "√",
        "sum(...)": "∑",
        "prod(...)": "∏",
        "grad(y, x)": "∂∇",
        "...": "…",
        ".T": "⊤",
    }.items()
    for sign in signs
}
HINTS = {
    "⁻": "write x**-1 or exp(-x), or inv(A) for the inverse of a matrix",
    "⟨": "write x @ y for an inner product",
    "⌊": "write floor(x)",
    "⌈": "write ceil(x)",
    "⊗": "write kron(A, B) or outer(x, y)",
    "±": "write + or -",
    "≈": "write = or ==",
    "∫": "integrals are not supported",
    "°": "write x*pi/180 for an angle in degrees",
    **dict.fromkeys(SUBSCRIPTS, "a number below the line belongs to a name, as in x₁; norms are norm(x), norm(x, 1)"),
    "?": "write where(condition, a, b) to choose between two values",
    "{": "dictionaries and sets are not supported; write a list as [a, b]",
    "}": "dictionaries and sets are not supported; write a list as [a, b]",
    "\\": "a statement goes on over a line end only inside brackets",
    "$": "write the name alone",
    "`": "leave out the backticks",
}


def is_superscript(char: str) -> bool:
    """Return whether a character is a superscript, such as ⁻ and ˣ."""
    import unicodedata

    return unicodedata.decomposition(char).startswith("<super>")


def character_name(char: str) -> str:
    """Return a character's name and number, such as "Cyrillic small letter a (U+0430)"."""
    import unicodedata  # 2 ms that only an error pays

    code = f"U+{ord(char):04X}"
    if 0xD800 <= ord(char) <= 0xDFFF:
        return f"half of a UTF-16 pair ({code})"
    if char == "\x00":
        return f"NUL ({code})"
    name = unicodedata.name(char, "").capitalize()
    if name:
        return f"{name} ({code})"
    return f"control character {code}" if unicodedata.category(char) == "Cc" else f"character {code}"


def drawable(char: str) -> bool:
    """Return whether a character can be shown alone without changing the text around it."""
    import unicodedata

    kind, direction = unicodedata.category(char)[0], unicodedata.bidirectional(char)
    return kind in "LNPS" and direction not in ("R", "AL")


def stray(text: str, at: int, span: Span) -> Diagnostic:
    """Return the diagnostic for the character at offset `at`, which starts no token or is never allowed."""
    char = text[at]
    if FORBIDDEN.match(char):
        if "\ud800" <= char <= "\udfff":
            hint = "the text was not UTF-8 where it came from"
            return Diagnostic("GC102", f"the text holds {character_name(char)}", span, (), hint)
        return Diagnostic("GC103", f"the text holds an invisible {character_name(char)}", span, (), "delete it")
    import unicodedata

    if char in HINTS:
        return Diagnostic("GC105", f"unexpected `{char}`", span, (), HINTS[char])
    shown = f"`{char}`, {character_name(char)}," if drawable(char) else character_name(char)
    meant = looks_like(char)
    if meant == " ":
        return Diagnostic("GC104", f"{shown} is not an ordinary space", span, (), "type a space")
    if meant is not None:
        message = f"{shown} is not `{visible(meant)}`"
        return Diagnostic("GC104", message, span, (), f"type `{visible(meant)}`")
    letter, *marks = list(unicodedata.normalize("NFD", text[at - 1 : at] + char if char in ACCENTS else char))
    if len(marks) == 1 and marks[0] in ACCENTS and letter.isalpha():
        return Diagnostic(
            "GC105", f"{shown} is not a letter of a name", span, (), f"write {letter}_{ACCENTS[marks[0]]}"
        )
    if char.isalpha():
        hint = "names are ASCII letters, digits, _ and Greek letters"
        return Diagnostic("GC105", f"{shown} is not a letter of a name", span, (), hint)
    fraction = unicodedata.normalize("NFKC", char).split("\u2044")  # ½
    over = f"write {'/'.join(fraction)}" if len(fraction) == 2 else None
    return Diagnostic("GC105", f"{shown} is not part of the language", span, (), over)


def looks_like(char: str) -> str | None:
    """Return the character that a look-alike stands for, or None."""
    import unicodedata

    if char in LATIN:
        return LATIN[char]
    if char in SIGNS:
        return SIGNS[char]
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if unicodedata.category(char) == "Zs":
        return " "
    plain = unicodedata.normalize("NFKC", char)  # full-width and mathematical letters
    if len(plain) == 1 and (plain.isascii() or re.match(f"[{GREEK}]", plain)) and plain.isprintable():
        return plain
    return None
