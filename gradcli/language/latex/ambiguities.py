"""Refuses LaTeX that has more than one usual reading, with the readings: f(x + 1), x^{(i)}, (1 + r)^T."""

from __future__ import annotations

import re

from gradcli.base.diagnostics import GradcliError, visible
from gradcli.language.latex.latex_commands import (
    ALPHABETS,
    CLOSING,
    EXPECTED,
    GREEK,
    MATRICES,
    OVER,
    PAIRS,
    TIMES,
)
from gradcli.language.latex.latex_tokens import LatexTokens, TranslatedPart
from gradcli.language.notation import ATOM

TIME = re.compile(r"(?:[a-z]|[+*/=]\s?|(?<!\^\{)-\s?|\\sqrt\{)T(?![A-Za-z])")  # T as a number: rT, \sqrt{T}
INDEX = re.compile(r"(?:^|\*)[A-Za-z]\w*_([i-t]{1,3})$")  # of the last factor: A_ij
OFTEN_MATRICES = frozenset("AWX")
OFTEN_FUNCTIONS = frozenset(
    ("f", "g", "h", "F", "G", "H", "sigma", "phi", "varphi", "psi", "Phi", "Psi", "Gamma", "ell")
)
OFTEN_FUNCTIONS |= {"rho_tau", "rho_delta", "rho_c", "pi_theta"}  # losses and a policy; rho(..) may be a density
# in front of a bracket that holds names: p(x), but p(1 - p) is a product
SOMETIMES_FUNCTIONS = frozenset(("E", "N", "P", "J", "L", "p", "q", "u"))
USUAL = {"Gamma": "gamma", "sigma": "sigmoid", "Phi": "norm_cdf", "N": "norm_cdf", "psi": "digamma"}
USUAL |= {"B": "beta", "W": "lambertw", "zeta": "zeta", "I_0": "i0", "I_1": "i1", "J_0": "j0", "J_1": "j1"}
USUAL |= {"K_0": "k0", "K_1": "k1", "Y_0": "y0", "Y_1": "y1", "E_1": "exp1"}
# superscripts that name a value: theta^{old}
MARKS = frozenset(("old", "new", "opt", "ref", "max", "min", "obs", "true", "pred", "best", "eff", "tot"))
AFTER_ARGUMENTS = frozenset((")", ",", "|", "\\mid"))
LORENTZ = frozenset(("\\mu", "\\nu", "\\rho"))  # indices of tensors in physics


def refuse_word(t: LatexTokens, first: int) -> None:
    """Refuse letters without spaces, from token `first` on, that are often one word or a differential."""
    if first and t.stops[first - 1] == t.starts[first] and t.names[first - 1].isalpha():
        return
    end = first + 1
    while t.names[end].isalpha() and t.starts[end] == t.stops[end - 1]:
        end += 1
    text = t.written(first, end)
    letters = f"`{' '.join(text)}`"
    if (len(text) > 3 and end - first == len(text)) or text in ("TP", "TN", "FP", "FN"):
        hint = rf"write `\mathrm{{{text}}}` or {letters}"
        raise t.error("GC139", f"`{text}` may be a word or a product", first, end - 1, hint)
    if end - first == 2 and text[0] == "d" and not t.alone:
        hint = f"write {letters} for a product, or a derivative such as \\frac{{dy}}{{dx}}"
        raise t.error("GC139", f"`{text}` may be a differential or a product", first, end - 1, hint)


def may_be_called(t: LatexTokens, name: str) -> bool:
    """Whether a letter in front of a bracket is often a function: f(x + 1); any letter in x(t), x(s, t), x(t_i)."""
    following = t.names[t.at : t.at + 3]
    if following[:1] == ["["] and name in ("E", "P"):  # an expected value, a probability
        return not t.alone
    if following[:1] != ["("] or t.alone:
        return False
    if name in OFTEN_FUNCTIONS:
        return True
    if not t.is_letter(t.at + 1):
        return False
    if following[2:] == ["_"]:
        return name in SOMETIMES_FUNCTIONS or t.names[t.end_of_group(t.at + 3)] in AFTER_ARGUMENTS
    return following[2:] != [] and following[2] in AFTER_ARGUMENTS


def call_or_product(t: LatexTokens, first: int, name: str) -> GradcliError:
    """The error for a letter that is often a function, in front of a bracket."""
    shown = visible(t.written(first, t.at))
    if t.token == "[":
        hint = f"{EXPECTED}; write `{shown} \\cdot (..)` for a product"
        return t.error("GC139", f"`{shown}[` may be an expected value or a product", first, t.at, hint)
    known = f", `\\mathrm{{{USUAL[name]}}}(..)` for the usual function" if name in USUAL else ""
    line = f"{name}({'t' if name == 'x' else 'x'}) = .."
    hint = f"write `{shown} \\cdot (..)` for a product{known}; define a function by a line {line}"
    return t.error("GC139", f"`{shown}(` may be a function or a product", first, t.at, hint)


def refuse_mark(t: LatexTokens, start: int) -> None:
    """Refuse exponents of what begins at `start` that are marks: x^{(i)}, a^{[l]}, x^*."""
    first = t.at
    group = t.names[first] == "{"
    end = t.end_of_group(first) - 1
    inside = t.names[first + 2 : end - 1]
    marked = group and t.names[first + 1] in ("(", "[") and t.names[end - 1] == PAIRS[t.names[first + 1]]
    if marked and not {"(", ")", "[", "]"} & set(inside) and not t.names[start][:1].isdigit():
        inner = "".join(t.names[first + 2 : end - 1]).replace("\\", "")
        index = inner if re.fullmatch(r"\w+", inner) else "1"
        base = t.joined(start, first - 1)
        raise t.readings("a superscript in brackets", first - 1, end, f"{base}_{index}", f"{base}^{{{inner}}}")
    sign, behind = (*t.names[first + group : first + group + 2], "", "")[:2]
    if (sign == "+" and not group) or (sign in ("+", "-") and behind in ("}", *CLOSING)):
        hint = "write a name such as `\\mathrm{H_plus}`"
        raise t.error("GC138", "a name has no sign", first - 1, first + group, hint)
    if sign in ("*", "\\ast", "\\star"):
        hint = "write a name such as `\\mathrm{x_star}`"
        raise t.error("GC138", "a name has no star", first - 1, first + group, hint)


def refuse_marked_name(t: LatexTokens, start: int) -> None:
    r"""Refuse an exponent that marks the name at `start`: \theta^{old}, \theta^{\text{old}}, F^{\mu\nu}."""
    end = t.end_of_group(t.at)
    inner = [token for token in t.names[t.at : end] if token not in ("{", "}")]
    upright = inner[:1] != [] and inner[0].removeprefix("\\") in ALPHABETS
    word = "".join(inner[upright:])
    base, exponent = t.joined(start, t.at - 1), t.written(t.at, end)
    below = re.search(rf"_\{{?(\\\w+\s*)*{re.escape(word)}", t.context)  # the index of another name
    tensor = set(inner) <= LORENTZ and (len(inner) > 1 or below)
    if word == "H" and word not in t.numbers:
        raise t.readings(f"`{base}^{exponent}`", start, end - 1, rf"{base}^\top", f"({base})^{exponent}")
    if word in (*MARKS, "0") or (upright and word.isalpha()) or tensor:
        name = f"{base[:-1]}{word}}}" if base[-1] == "}" else f"{base}_{exponent if tensor else f'{{{word}}}'}"
        letters, _, index = base.partition("_")
        name = f"{{{letters}_{{{word}}}}}_{index}" if index and base[-1] != "}" else name
        raise t.readings(f"`{base}^{exponent}`", start, end - 1, name, f"({base})^{exponent}")


def refuse_power_of_number(t: LatexTokens, start: int, first: int) -> None:
    """Refuse T, read from token `first` on, above tokens from `start` that may be a number: (1 + r)^T, or T is one."""
    growth = re.search(r"\(\s*1\s*[+-]|[+-]\s*1\s*\)$", t.written(start, first - 1))
    if growth or "T" in t.numbers or TIME.search(t.context):
        shown = t.written(start, t.at)
        hint = r"write `^\top` for a transpose, and another letter than T for a power"
        raise t.error("GC139", f"`{shown}` may be a transpose or a power", start, t.at - 1, hint)


def refuse_power_of_matrix(
    t: LatexTokens, base: TranslatedPart, exponent: TranslatedPart, start: int, first: int
) -> None:
    """Refuse X^2 of a matrix, and (A B)^{-1} of capitals that may be numbers; `first` begins the exponent."""
    if base.matrix and base.bind == ATOM and exponent.text not in ("1", "-1"):
        value, n = t.written(start, first - 1), t.written(first, t.at).removeprefix("{").removesuffix("}")
        square = rf"{value}^\top {value}" if base.column else f"{value} {value}"
        texts = square, rf"{value} \odot {value}"
        if n != "2":
            texts = (
                f"{value}_{{{n}}}" if base.column else rf"\mathrm{{matrix_power}}({value}, {n})",
                rf"\mathrm{{pow}}({value}, {n})",
            )
        raise t.readings("a power of a matrix", first - 1, t.at - 1, *texts)
    if exponent.text == "-1" and not base.matrix and t.names[start] in PAIRS:
        letters = [letter for letter in t.names[start : first - 1] if letter.isalpha()]
        if len(letters) > 1 and all(letter.isupper() and len(letter) == 1 for letter in letters):
            inside = t.written(start + 1, first - 2)
            texts = rf"\mathrm{{inv}}({inside})", rf"\frac{{1}}{{{inside}}}"
            raise t.readings("an inverse", start, t.at - 1, *texts)


def refuse_function_of_matrix(t: LatexTokens, name: str, value: TranslatedPart, first: int) -> None:
    """Refuse exp, log and sqrt of a matrix, from token `first` on: the matrix function, or entry by entry."""
    if value.matrix and not value.column:
        inside = t.joined(first + 1, t.at).removeprefix("^")
        inside = inside[1:-1] if inside[0] in PAIRS else inside
        texts = (rf"\mathrm{{expm}}({inside})",) if name == "exp" else ()
        raise t.readings(f"`{name}` of a matrix", first, t.at - 1, *texts, rf"\mathrm{{{name}}}({inside})")


def refuse_dot(t: LatexTokens, left: TranslatedPart, right: TranslatedPart, start: int, sign: int) -> None:
    r"""Refuse `\cdot` at token `sign` behind a vector of the script: an inner product, or entry by entry."""
    if left.text in t.vectors and not right.number:
        a, b = t.written(start, sign), t.written(sign + 1, t.at)
        raise t.readings(r"`\cdot`", start, t.at - 1, rf"{a}^\top {b}", rf"{a} \odot {b}")


def refuse_cross(t: LatexTokens, left: TranslatedPart, right: TranslatedPart, start: int, sign: int) -> None:
    r"""Refuse `\times` at token `sign` between arrays that are not both names of vectors."""
    if left.capital or right.capital or left.bind < ATOM or right.bind < ATOM:
        a, b = t.written(start, sign), t.written(sign + 1, t.at)
        texts = (rf"\mathrm{{cross}}({a}, {b})",) if left.column or right.column else ()
        raise t.readings(r"`\times`", sign, sign, *texts, f"{a} {b}", rf"{a} \odot {b}")


def refuse_juxtaposition(t: LatexTokens, left: TranslatedPart, right: TranslatedPart, start: int, middle: int) -> None:
    """Refuse a product of what begins at `start` and at `middle` that may be of arrays or of numbers: y x^T, A x."""
    label = left.text.endswith("]") and ("]" not in right.text or not t.ends())  # y_i w^T in a sum: a number of each
    number = scalar(t, left.text) and not t.ends()  # of x^T y; in front of x^T alone it may be a vector
    plain = left.matrix or left.transposed or left.number or label or number
    if right.transposed and not (right.matrix or plain):
        a, b = t.written(start, middle), t.written(middle, t.at)
        raised = max(k for k in range(middle, t.at) if t.names[k] == "^")
        outer = rf"\mathrm{{outer}}({a}, {t.written(middle, raised)})"
        raise t.readings("this product", start, t.at - 1, outer, rf"{a} \cdot {b}")
    if left.column and right.column and not left.transposed:
        a, b = t.written(start, middle), t.written(middle, t.at)
        raise t.readings("a product of vectors", start, t.at - 1, rf"{a}^\top {b}", rf"{a} \odot {b}")
    below, beside = (INDEX.search(factor.text) for factor in (left, right))
    shared = sorted(set(below[1]) & set(beside[1])) if below and beside else []
    if below and beside and shared and len(below[1] + beside[1]) > 2:  # Einstein's notation
        a, b = t.written(start, middle), t.written(middle, t.at)
        raise t.readings("a repeated index", start, t.at - 1, rf"\sum_{shared[0]} {a} {b}", rf"{a} \cdot {b}")
    lone = re.fullmatch("[a-z]", right.text) and right.text not in t.numbers
    lone = lone and not re.fullmatch("[a-z]", t.token)  # M g h are numbers
    both = right.text in OFTEN_MATRICES and left.text[-1:] in OFTEN_MATRICES
    if left.capital and not left.matrix and (lone or both) and not t.claim:  # whose script has no arrays
        a, b = left.text.rpartition("*")[2], right.text
        a = f"\\{a}" if a.partition("_")[0] in MATRICES else a
        product = rf"\mathbf{{{a}}} " + (rf"\mathbf{{{b}}}" if both else b)
        raise t.readings(f"`{t.written(start, t.at)}`", start, t.at - 1, product, rf"{a} \cdot {b}")


def refuse_comma_in_number(t: LatexTokens, digits: int = 0) -> None:
    """Refuse a comma at the present place that may belong to a number, with so many digits behind it: 1,000."""
    at = t.at
    together = t.names[at - 1][-1:].isdigit() and t.names[at + 1][:1].isdigit()
    together = together and t.stops[at - 1] == t.starts[at] and t.stops[at] == t.starts[at + 1]
    whole, behind = t.names[at - 1], t.names[at + 1].partition(".")[0]
    if together and len(behind) == (digits or len(behind)):
        number = f"{whole}{{,}}{t.names[at + 1]}" if len(behind) == 3 else f"{whole}.{t.names[at + 1]}"
        hint = f"write `{number}` for one number, or a space behind the comma for two"
        raise t.error("GC139", "the comma has more than one reading", at - 1, at + 1, hint)


def refuse_open_argument(t: LatexTokens, first: int, start: int) -> None:
    r"""Refuse what follows the argument, at `start` and without brackets, of a function: \log x y, \sin x/2."""
    slash = t.token in OVER
    following = t.names[t.at + slash]
    another = following[:1].isalpha() or following in PAIRS or following.removeprefix("\\") in GREEK
    another = another or (slash and following[:1].isdigit())
    if t.ends() or not another or following in TIMES or (following in OVER):
        return
    function, value, place = t.written(first, start), t.written(start, t.at), t.at + slash
    rest = t.written(place, place + 1) + (f"..{PAIRS[following]}" if following in PAIRS else "")
    texts = f"{function}({value}) {rest}", f"{function}({value} {rest})"
    if slash:
        texts = f"\\frac{{{function} {value}}}{{{rest}}}", f"{function}({value}/{rest})"
    shown = f"`{t.written(first, t.at)}{'/' if slash else ' '}{rest}`"
    raise t.readings(shown, first, place, *texts)


def refuse_open_operand(t: LatexTokens, first: int, start: int) -> None:
    r"""Refuse factors behind the one at `start` that the derivative at `first` is of: \frac{d}{dx} x^2 \sin x."""
    if not t.ends():
        derivative, value = t.written(first, start), t.written(start, t.at)
        texts = f"{derivative} ({value} ..)", f"({derivative} {value}) .."
        raise t.readings(f"`{derivative} {value} ..`", first, t.at, *texts)


def scalar(t: LatexTokens, text: str) -> bool:
    r"""Whether a factor has known numbers and Greek letters only, none of which is transposed: \frac{\lambda}{2}."""
    free = [name for name in re.findall(r"[^\W\d]\w*", text) if name not in t.source.scalars]
    names = [name.partition("_")[0] for name in free]
    return all(name == "λ" or (name in GREEK and name.islower()) for name in names) and not any(
        re.search(rf"\\{'lambda' if name == 'λ' else name}\s*\^\s*\{{?\s*(?:T|\\\w+)", t.context) for name in names
    )
