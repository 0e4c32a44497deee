r"""A recursive-descent parser: the tokens of a line of LaTeX become text in the language of scripts.

    statement  = [ target "=" ] comparison { "," comparison }
    comparison = addition { ("<" | "\le" | ..) addition }
    addition   = [ sign ] product { ("+" | "-") product }
    product    = factor { [ "\cdot" | "/" | .. ] factor }
    factor     = atom [ "_" index ] { "^" exponent } [ "!" ]
    atom       = number | symbol | bracket | what a command of CONSTRUCTS begins

A `TranslatedPart` is the text of a rule's result with what decides the next one: how tightly it binds, whether it is
an array.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.base.diagnostics import visible
from gradcli.base.records import NamedTuple
from gradcli.language.latex.ambiguities import (
    call_or_product,
    may_be_called,
    refuse_comma_in_number,
    refuse_cross,
    refuse_dot,
    refuse_function_of_matrix,
    refuse_juxtaposition,
    refuse_mark,
    refuse_marked_name,
    refuse_open_argument,
    refuse_open_operand,
    refuse_power_of_matrix,
    refuse_power_of_number,
    refuse_word,
    scalar,
)
from gradcli.language.latex.latex_commands import (
    ACCENTS,
    ALPHABETS,
    AT_A_POINT,
    BARS,
    BOLD,
    BREAKS,
    COMPARISONS,
    DOTS,
    ELSEWHERE,
    ENTRYWISE,
    EXPECTED,
    FUNCTIONS,
    GREEK,
    INDEX_LETTERS,
    INDEXED,
    INDICATOR,
    INVERSE_TRANSPOSES,
    INVERSES,
    MATRICES,
    MATRIX_ENVIRONMENTS,
    MATRIX_VALUED,
    NORMS,
    OVER,
    PAIRS,
    RECIPROCALS,
    RENAMED,
    ROUNDED,
    SEPARATORS,
    SEVERAL,
    TIMES,
    TRANSPOSES,
    WITH_WORDS,
)
from gradcli.language.latex.latex_tokens import LatexTokens, TranslatedPart
from gradcli.language.notation import ATOM, POWER, PRODUCT, SUM

DEEPEST = 40  # brackets inside each other: the reader recurses
SIDES = "write == between two values; else the left side is a name, f(x), or \\frac{\\partial f}{\\partial x}"
NO_FACTOR = re.compile(
    r"\\(?:text|operatorname|math\w+)\{[^{}]*\}|\\[A-Za-z]+|_\{[^{}]*\}|_."
)  # of an exponent: words, subscripts
OF_MATRICES = ("trace", "det")
ONES = re.compile(r"(?:1|\{ 1 \})(?: _ (?:([a-zA-Z])|\{ ([a-zA-Z]) \}))?(?! [_(\[])")  # \mathbf{1}, \mathbf{1}_n
CALLED = re.compile(r"\b(?!exp|log|sqrt)[a-z]\w+\(")  # a function whose value may be a matrix
REDUCED = r"(?:sum|prod|max|min)\("
OF_NUMBERS = re.compile(rf"(?:{REDUCED})+(?!{REDUCED})[a-z_]\w*\(")  # sums of values of functions
NUMBER = re.compile(
    r"(?:(?:log|sqrt)\()*(?:(?:log)?det|trace|norm)\(|(?:log|sqrt)\((?:[\d.*/+() -]|pi)+$"
)  # log(det(A)), log(2*pi)
OWN_E = re.compile(r"^[ \t]*(?:const[ \t]+)?e[ \t]*(?:\[[^\]]*\][ \t]*)?(?:=(?!=)|in\b)", re.MULTILINE)  # e = 1.6e-19
VECTOR_E = re.compile(  # e^\top P e, \dot{e}, \mathbf{e}
    r"(?<![A-Za-z\\])e\s*\^\s*\{?\s*\\(?:top|intercal)|\\(?:d?dot|mathbf|boldsymbol|bm|vec)\s*\{?\s*e(?![a-z])"
)


def statements(t: LatexTokens) -> str:
    """The script text of the line; statements end with a semicolon, and in an environment with its rows."""
    texts = [statement(t)]
    while t.token in BREAKS:
        t.at += 1
        if t.token:
            texts.append(statement(t))
    if t.token:
        raise t.unexpected()
    for name, (array, place) in t.entry_like.items():
        indices = name.removeprefix(f"{array}_")
        if indices in t.bound or (len(indices) > 1 and t.bound.issuperset(indices)):
            hint = "write brackets around all that it runs over, as in \\sum_i (..), or another name"
            raise t.error("GC139", f"`{name}` may be in the sum over `{indices}`, or a name", place - 1, place, hint)
        if array in t.entries:
            hint = f"write {array}[0] for the first entry, in a line without LaTeX"
            raise t.error("GC139", f"`{name}` may be an entry of `{array}`, or a name", place - 1, place, hint)
    return "; ".join(texts)


def statement(t: LatexTokens) -> str:
    """The script text up to the end of the line or of the row of an environment."""
    end, depth = t.at, 0
    while t.names[end] and (depth or t.names[end] not in BREAKS):
        depth += t.names[end] == "(" or t.names[end].startswith(r"\begin")
        depth -= t.names[end] == ")" or t.names[end].startswith(r"\end")
        end += 1
    equals = [k for k in range(t.at, end) if t.names[k] == "=" and t.names[:k].count("{") <= t.names[:k].count("}")]
    environment = next((k for k in range(t.at, end) if t.names[k].startswith(r"\begin")), end)
    equals = [k for k in equals if k < environment]  # behind it stand the conditions of cases
    if len(equals) > 1:
        raise t.error("GC138", "a line has at most one `=`", equals[1], help="give each equation a line of its own")
    left = ""
    if equals:
        claim = t.token in ("\\frac", "\\dfrac", "\\tfrac", "\\nabla")
        left = f"assert {factor(t).text} == " if claim else target(t, equals[0]) + " = "
        if t.at != equals[0]:
            raise t.error("GC138", "the left side is not a name", 0, equals[0] - 1, SIDES)
        t.at = equals[0] + 1
    text = comparison(t).text
    while t.token == ",":
        refuse_comma_in_number(t)
        t.at += 1
        if t.token in ("", *BREAKS):
            break
        text += f", {comparison(t).text}"
    return left + text


def target(t: LatexTokens, equals: int) -> str:
    """What stands on the left of an equals sign: a name, or a function with its parameters, or log p(..) of one."""
    if t.at < equals and re.fullmatch(r"[A-Za-z]\w+", t.written(t.at, equals)):
        word = t.written(t.at, equals)
        t.at = equals
        return word
    if t.at == equals:
        hint = "give each equation a left side; a chain a = b = c is two equations"
        raise t.error("GC138", "the equation has no left side", equals, help=hint)
    logarithm = t.token in ("\\log", "\\ln") and "(" in t.names[t.at : equals]  # of a function
    t.at += logarithm
    first = t.at
    command = t.names[first].removeprefix("\\")
    if not (t.is_letter(first) or t.names[first] in WITH_WORDS or command in RENAMED):
        hint = ELSEWHERE.get(command, SIDES)
        raise t.error("GC138", "the left side is not a name", first, equals - 1, hint)
    t.alone = True
    text = "log_" * logarithm + symbol(t).text
    t.alone = False
    if t.take("^"):
        refuse_mark(t, first)
        end = t.end_of_group(t.at)
        if t.names[end] not in ("=", "("):
            raise t.error("GC138", "the left side is not a name", first, equals - 1, SIDES)
        mark = t.written(t.at, end).strip("{}")
        base, below, index = t.joined(first, t.at - 1).partition("_")
        index = index.strip("{}") + mark if below else mark
        hint = f"write the mark below the line, as in `{base}_{{{index}}}`"
        hint += ", or == between two values" if mark.isdigit() else ""
        raise t.error("GC138", "a name has no superscript", first, end - 1, hint)
    if t.token == "(":
        opened = t.at
        parameters = [part.text for part in arguments(t)]
        if not all(re.fullmatch(r"\w+", name) for name in parameters):
            hint = "write a letter, as in f(x, \\sigma)"
            raise t.error("GC138", "a parameter of a function is a name", opened, t.at - 1, hint)
        text += f"({', '.join(parameters)})"
    if t.token == "_":
        hint = "leave the index out on both sides: an equation is about whole arrays"
        raise t.error("GC138", "the left side is an entry of an array", first, equals - 1, hint)
    return text


def addition(t: LatexTokens) -> TranslatedPart:
    """[ sign ] product { sign product }"""
    sign = ""
    if t.token in ("+", "-"):
        sign = "-" if t.token == "-" else ""
        t.at += 1
    part = product(t)
    if sign:
        part = TranslatedPart(f"-{part.within(PRODUCT)}", SUM, matrix=part.matrix, column=part.column)
    while t.token in ("+", "-"):
        sign = t.token
        t.at += 1
        term = product(t)
        first, second = part.text.rpartition("*")[2] == "I", term.text.rpartition("*")[2] == "I"
        if (part.matrix and second) or (first and term.matrix):
            raise t.readings("`I` beside a matrix", t.at - 1, t.at - 1, r"\mathrm{eye}(n)", r"\mathrm{I}")
        matrix, column = part.matrix or term.matrix, part.column or term.column
        part = TranslatedPart(f"{part.text} {sign} {term.within(PRODUCT)}", SUM, matrix=matrix, column=column)
    return part


def comparison(t: LatexTokens) -> TranslatedPart:
    """sum [ comparison sum ]"""
    part = addition(t)
    while t.token in COMPARISONS:
        sign = COMPARISONS[t.token]
        t.at += 1
        part = TranslatedPart(f"{part.text} {sign} {addition(t).text}", -1)
    return part


def product(t: LatexTokens) -> TranslatedPart:
    """Factors with signs between them, or beside each other."""
    start = t.at
    left = factor(t)
    divided, hadamard = False, 0
    while True:
        at_sign, sign = t.at, t.token
        if sign in TIMES:
            t.at += 1
            right = factor(t)
            if sign == "cdot" and (left.transposed or (left.matrix and right.matrix)):
                left = matrix_product(left, right)
                continue
            if sign == "cdot":
                refuse_dot(t, left, right, start, at_sign)
            if sign == "times" and left.matrix and right.matrix:
                refuse_cross(t, left, right, start, at_sign)
                left = TranslatedPart(f"cross({left.text}, {right.text})", matrix=True)
            else:
                left = matrix_product(left, right) if TIMES[sign] == "@" else entrywise(left, right)
            hadamard = at_sign if sign in ("odot", "circ") else 0
        elif sign in OVER:
            t.at += 1
            left, divided = entrywise(left, factor(t), "/"), True
        elif t.ends():
            return left
        else:
            right = factor(t)
            if divided and (not left.number or (right.text == "pi" and left.text[:2] == "1/")):
                what = f"`{t.written(start, t.at)}`"
                raise t.readings(what, start, t.at - 1, "\\frac{..}{..}", "(..)/(..)")
            if sign[:1].isdigit():
                raise t.error("GC138", "a number cannot follow a factor", at_sign, help="write \\cdot between them")
            outer = t.outer and right.transposed and not (left.transposed or left.matrix or left.number)
            outer = outer and (t.ends() or not scalar(t, left.text))  # of a number times x^T y
            if right.transposed and right.column >= right.matrix and (left.column or outer):
                left = TranslatedPart(f"outer({left.text}, {right.text.removesuffix('.T')})", matrix=True)
                continue
            refuse_juxtaposition(t, left, right, start, at_sign)
            scaled = (left.column and not right.matrix) or NUMBER.match(right.text)  # an array times a number
            arrays = left.transposed or (
                left.matrix and not (scaled or (left.capital and OF_NUMBERS.match(right.text)))
            )
            if arrays and hadamard:
                a, b = t.written(start, hadamard + 1), t.written(hadamard + 1, t.at)
                whole = f"({t.written(start, at_sign)}) {t.written(at_sign, t.at)}"
                raise t.readings("this product", start, t.at - 1, f"{a} ({b})", whole)
            left = matrix_product(left, right) if arrays else entrywise(left, right)


def matrix_product(left: TranslatedPart, right: TranslatedPart) -> TranslatedPart:
    """left @ right: row @ matrix is a row, row @ column a number, matrix @ matrix a matrix. Ones add up entries."""
    if left.text.startswith("ones("):
        row = right.matrix and not right.column
        return TranslatedPart(f"sum({right.text}, axis=0)", matrix=row, transposed=row, column=row)
    if right.text.startswith("ones("):
        column = left.matrix and not left.transposed
        return TranslatedPart(f"sum({left.text}, axis=-1)", matrix=column, column=column)
    row = left.transposed and (left.column or not left.matrix)
    if right.column and (row or left.column):  # a number
        return TranslatedPart(f"{left.within(PRODUCT)} @ {right.within(POWER)}", PRODUCT)
    square = right.matrix
    text = f"{left.within(PRODUCT)} @ {right.within(POWER)}"
    return TranslatedPart(
        text, PRODUCT, matrix=square and not row, transposed=square and row, column=right.column and not row
    )


def entrywise(left: TranslatedPart, right: TranslatedPart, sign: str = "*") -> TranslatedPart:
    """left*right or left/right."""
    text = f"{left.within(PRODUCT)}{sign}{right.within(POWER)}"
    matrix, transposed = left.matrix or right.matrix, left.transposed or right.transposed
    column = left.column or right.column
    number, capital = left.number and right.number, left.number and right.capital and sign == "*"
    return TranslatedPart(text, PRODUCT, matrix, transposed, number, capital, column)


def factor(t: LatexTokens) -> TranslatedPart:
    """An atom with its powers."""
    first = t.at
    part = nested_atom(t)
    if t.token == "_":
        part = entry(t, part, first)
    powers = 0
    while t.take("^"):
        if powers and not part.transposed and t.token not in ("T", "\\top", "{"):
            base, _, exponent = t.written(first, t.at - 1).rpartition("^")
            texts = f"{base}^{{{exponent}^{t.token}}}", f"({base}^{exponent})^{t.token}"
            raise t.readings("a second exponent", first, t.at, *texts)
        part = power(t, part, first)
        powers += 1
    if part.text.startswith("ones(") and part.transposed and not t.ends() and t.token not in (*TIMES, *OVER, "_"):
        return matrix_product(part, factor(t))  # a number, in front of which anything may stand
    if t.token == "!":
        base, raised, exponent = t.written(first, t.at).rpartition("^")
        if raised and t.names[first] not in ("(", "[", "{"):
            inside = f"{base}^{{({exponent.strip('{}')})!}}"
            raise t.readings("a factorial behind a power", first, t.at, f"({base}^{exponent})!", inside)
        t.at += 1
        part = TranslatedPart(f"factorial({part.text})")
        if t.token == "!":
            hint = r"write the product, such as \prod_{i=1}^{k} (2 i - 1)"
            raise t.error("GC138", "a double factorial is not supported", t.at, help=hint)
    if t.token == "'":
        raise t.error("GC138", "a prime has no meaning here", t.at, help=ELSEWHERE["'"])
    return part


def entry(t: LatexTokens, part: TranslatedPart, first: int) -> TranslatedPart:
    """An entry of an array in brackets or of a call, where a sum binds the index: (A x)_i; the positive part [x]_+."""
    group = t.names[t.at + 1] == "{"
    if t.names[t.at + 1 + group] == "+" and (not group or t.names[t.at + 3] == "}"):
        t.at += 4 if group else 2
        return TranslatedPart(f"maximum(0, {part.text})", matrix=part.matrix, column=part.column)
    end = t.end_of_group(t.at + 1) - group
    inner = [letter(name) for name in t.names[t.at + 1 + group : end] if name != ","]
    if not 0 < len(inner) < 3 or not t.indices.keys() >= set(inner):
        hint = "only a sum has an index, as in \\sum_i (A x)_i; write (A @ x)[0] in a line without LaTeX"
        hint = INDICATOR if part.text == "1" else hint
        raise t.error("GC138", "a subscript stands behind a name or in a sum", first, t.at + 1, hint)
    t.at += 1
    array = part.within(ATOM)
    return TranslatedPart(f"{array}[{', '.join(slots(t, array))}]")


def power(t: LatexTokens, base: TranslatedPart, start: int) -> TranslatedPart:
    """The base, which begins at token `start`, with the exponent at the present place."""
    first = t.at
    for tokens in TRANSPOSES:
        if t.take_all(tokens):
            if "T" in tokens[:2]:
                refuse_power_of_number(t, start, first)
            return TranslatedPart(f"{base.within(ATOM)}.T", matrix=base.matrix, transposed=True, column=base.column)
    for tokens in INVERSE_TRANSPOSES:
        if t.take_all(tokens):
            return TranslatedPart(f"inv({base.text}).T", matrix=True)
    refuse_mark(t, start)
    if t.names[start] not in PAIRS and not base.number:
        refuse_marked_name(t, start)
    if t.names[first] == "circ" or t.names[first : first + 2] == ["{", "circ"]:
        value = t.written(start, first - 1)
        hint = f"write `{value} \\pi / 180` for an angle in degrees" if base.number else f"write `{value}_0`"
        raise t.error("GC138", r"`^\circ` has no meaning here", first - 1, first, hint)
    exponent = argument(t)
    if exponent.text == "pi" and base.capital and t.token == "(":
        raise call_or_product(t, start, f"{base.text}_pi")
    refuse_power_of_matrix(t, base, exponent, start, first)
    if exponent.text == "-1" and base.matrix:
        return TranslatedPart(f"inv({base.text})", matrix=True)
    return TranslatedPart(f"{base.within(ATOM)}**{exponent.within(POWER)}", POWER, number=base.number)


def nested_atom(t: LatexTokens) -> TranslatedPart:
    """An atom; raises GC502 where too many stand inside each other."""
    t.depth += 1
    if t.depth > DEEPEST:
        raise t.error("GC502", f"more than {DEEPEST} brackets or functions inside each other", t.at)
    part = atom(t)
    t.depth -= 1
    return part


def atom(t: LatexTokens) -> TranslatedPart:
    """A number, a name, a bracket, a command with its arguments."""
    name = t.token
    if name[:1].isdigit() or (name[:1] == "." and len(name) > 1):
        t.at += 1
        return TranslatedPart(name, number=True)
    if name in PAIRS:
        part = bracket(t)
        text = f"({part.text})" if part.bind < ATOM else part.text
        return TranslatedPart(text, matrix=part.matrix, transposed=part.transposed, column=part.column)
    if name in ("\\pi", "π") and t.names[t.at + 1] != "_":
        t.at += 1
        return TranslatedPart("pi", number=True)
    if name in CONSTRUCTS and (name != "\\nabla" or t.names[t.at + 1] == "_"):
        return CONSTRUCTS[name](t)
    if name.startswith(r"\begin{") and name[7:-1] in MATRIX_ENVIRONMENTS:
        return matrix_of(t, MATRIX_ENVIRONMENTS[name[7:-1]])
    command = name.removeprefix("\\")
    if command != name and (command in FUNCTIONS or command in RECIPROCALS):
        return function_of(t, command)
    return symbol(t)


def bracket(t: LatexTokens, closing: str = "") -> TranslatedPart:
    """A group in brackets or bars, without them."""
    closing = closing or PAIRS[t.token]
    opened = t.open(closing)
    part = comparison(t)
    t.expect(closing, opened)
    return part


def argument(t: LatexTokens) -> TranslatedPart:
    """What belongs to a command, `^` or `_`: a group in braces, or one token."""
    if t.token == "{":
        return bracket(t)
    if len(t.token) > 1 and t.token.isdigit():  # x^23 is x^2 3 in LaTeX
        digits = t.token
        raise t.readings(f"`^{digits}` without braces", t.at, t.at, f"^{{{digits}}}", f"^{digits[0]} {digits[1:]}")
    t.alone = t.names[t.at + 1 : t.at + 2] == ["("] and len(t.token) == 1
    part = nested_atom(t)
    t.alone = False
    return part


def arguments(t: LatexTokens) -> list[TranslatedPart]:
    """The values between brackets, separated by commas."""
    closing = PAIRS[t.token]
    separate(t)
    opened = t.open(closing)
    values = [comparison(t)]
    while t.token == ",":
        refuse_comma_in_number(t, 3)
        t.at += 1
        values.append(comparison(t))
    t.expect(closing, opened)
    return values


def separate(t: LatexTokens) -> None:
    r"""Turn the one bar, or the semicolon, between arguments into a comma: p(x | y), KL(p \| q), N(x; m)."""
    end, depth, bars = t.at, 0, []
    while t.names[end] and (depth or end == t.at):
        depth += (t.names[end] in PAIRS) - (t.names[end] in PAIRS.values())
        if depth == 1 and t.names[end] == ";":
            t.names[end] = ","
        elif depth == 1 and t.names[end] in SEPARATORS:
            bars.append(end)
        end += 1
    if len(bars) == 1:
        t.names[bars[0]] = ","


def symbol(t: LatexTokens) -> TranslatedPart:
    """A letter, a Greek letter, a word in an alphabet or with an accent; with its subscript."""
    first = t.at
    name = t.names[first]
    command = name.removeprefix("\\") if name[:1] == "\\" else ""
    matrix = False
    if command in GREEK:
        text = command
        t.at += 1
        if command == "Delta" and re.fullmatch(r"[A-Za-z]|\\\w+", t.token) and t.is_letter(t.at):
            text += "_" + t.token.removeprefix("\\")  # a difference is one name
            t.at += 1
    elif (command or name) in RENAMED:
        text = RENAMED[command or name]
        t.at += 1
    elif command in BOLD and (ones := ONES.match(" ".join(t.names[first + 1 : first + 9]))):
        size = ones[1] or ones[2] or "n"
        t.at += 1 + len(ones[0].split())
        if size in t.indices:
            raise t.error("GC138", "a vector of ones has no entries to be read", first, t.at - 1, INDICATOR)
        return TranslatedPart(f"ones({size})", matrix=True, column=True)
    elif command in ALPHABETS or command in BOLD or command in ACCENTS:
        t.at += 1
        text, matrix = word(t)
        normal = command == "mathcal" and text == "N" and text not in t.functions
        matrix = matrix or command in BOLD
        if command in ACCENTS:
            text += f"_{ACCENTS[command]}"
        if command in ALPHABETS and not t.alone:
            if text == "E" and t.token in ("[", "(") and text not in t.functions:
                raise t.error("GC138", "an expected value is not supported", first, t.at, EXPECTED)
            if text in FUNCTIONS or text in RECIPROCALS or command == "operatorname":
                t.at -= 1
                return function_of(t, text)
            if t.token == "(":
                beta = text == "B" and text not in t.functions
                return normal_density(t, first) if normal else call(t, "beta" if beta else text)
    elif re.fullmatch(r"[A-Za-zα-ωΑ-Ω]\w*", name):
        refuse_word(t, first)
        text = name
        t.at += 1
        if len(text) > 1 and text not in t.words and t.token == "(":
            return call(t, text)
    else:
        raise t.unexpected()
    if t.take("_"):
        part = subscript(t, text, matrix)
        if part.text[-1] not in ")]" and (may_be_called(t, text) or may_be_called(t, part.text)):
            raise call_or_product(t, first, part.text)
        return part
    if t.indices.get(text, 0) < 0:
        hint = f"write \\sum_{{{visible(text)}=1}}^{{n}}, or \\sum_{{{visible(text)}=0}}^{{n-1}}"
        raise t.error(
            "GC139", f"`{visible(text)}` may count from 0 or from 1, and the sum has no bounds", first, help=hint
        )
    if text == "e" and t.token == "^" and not any(t.names[t.at + 1 :][: len(row)] == row for row in TRANSPOSES[:2]):
        t.at += 1
        if name == "e" and "".join(t.names[t.at : t.end_of_group(t.at)]) in ("T", "{T}"):
            raise t.readings("`e^T`", first, t.at, r"e^\top", r"\exp(T)")
        if name == "e" and t.token == "2" and not OWN_E.search(t.context):
            raise t.readings("`e^2`", first, t.at, r"\exp(2)", r"\mathrm{q}^2")
        end = t.end_of_group(t.at)
        if "i" not in t.indices and "i" in NO_FACTOR.sub("", t.joined(t.at, end)):
            hint = "complex numbers are not supported; write another letter for a number"
            raise t.error("GC139", "`i` in an exponent may be the imaginary unit", first, end - 1, hint)
        exponent = argument(t)
        refuse_function_of_matrix(t, "exp", exponent, first)
        return TranslatedPart(f"exp({exponent.text})")
    if t.token == "(" and text in t.functions:
        return call(t, text)
    if may_be_called(t, text):
        raise call_or_product(t, first, text)
    if text == "e" and not OWN_E.search(t.context) and VECTOR_E.search(t.context):
        text = "e_"  # beside the number
    elif name == "e" and not OWN_E.search(t.context):
        raise t.readings("`e` without an exponent", first, first, r"\exp(1)", r"\mathrm{q}")
    capital = is_capital(text) and text not in t.numbers
    column = matrix and text.islower()
    matrix = matrix or text in t.matrices or (capital and t.arrays)
    return TranslatedPart(text, matrix=matrix, capital=capital, column=column)


def is_capital(text: str) -> bool:
    """Whether a letter may stand for a matrix: A, Sigma."""
    return text in MATRICES or (len(text) == 1 and text.isupper())


def word(t: LatexTokens) -> tuple[str, bool]:
    """The letters and digits in braces, or one letter; and whether a part of them is bold."""
    if t.token != "{":
        letter = t.token.removeprefix("\\")
        if not letter.isalpha():
            raise t.unexpected()
        t.at += 1
        return letter, False
    opened = t.open("}")
    text, bold = "", False
    while t.token not in ("}", ""):
        command = t.token.removeprefix("\\")
        t.at += 1
        if command in ACCENTS or command in BOLD or command in ALPHABETS:
            inner, inside = word(t)
            text += inner + (f"_{ACCENTS[command]}" if command in ACCENTS else "")
            bold = bold or inside or command in BOLD
        else:
            text += command
    t.expect("}", opened)
    if not re.fullmatch(r"[A-Za-z]\w*", text):
        indicator = t.token in ("_", "[", "(")
        ones = INDICATOR if indicator else r"write `\mathrm{ones}(n)` for a vector of ones"
        hint = ones if text == "1" else "a name is a letter, and letters, digits or _ behind it"
        raise t.error("GC138", f"`{visible(text)}` is not a name", opened, t.at - 1, hint)
    return text, bold


def subscript(t: LatexTokens, text: str, matrix: bool) -> TranslatedPart:
    """The name with its subscript: an entry where a sum binds the index, else a part of the name."""
    first = t.at
    group = t.names[first] == "{"
    end = t.end_of_group(first) - 1 if group else min(t.end_of_group(first), len(t.names) - 1)
    if group and not t.names[end]:
        raise t.error("GC138", "`{` is never closed", first, help="add `}`")
    if t.names[end - 1] in WITH_WORDS:
        t.at = end
        raise t.unexpected()
    inner = [
        letter(name)
        for name in t.names[first + group : end]
        if name not in ("{", "}") and name.removeprefix("\\") not in ALPHABETS
    ]
    if text in ("delta", "epsilon", "varepsilon") and len(inner) > 1 and set(inner) <= INDEX_LETTERS:
        hint = "leave out the terms that are 0, or write \\mathrm{eye}(n) for the identity matrix"
        shown = t.written(first - 2, end + group)
        raise t.error("GC138", f"`{shown}` is not supported", first - 2, end, hint)
    if not t.indices.keys() & set(inner):
        suffix = "".join(inner)
        if not re.fullmatch(r"\w+", suffix):
            hint = "write a letter, a number or a word, such as `h_0` or `h_{prev}`"
            raise t.error("GC138", f"`{visible(suffix)}` is not part of a name", first, max(first, end - 1), hint)
        t.at = end + group
        name = f"{text.rstrip('_')}_{suffix}"
        if t.token == "(" and name in t.functions:
            return call(t, name)
        if suffix in SEVERAL and t.token == "(":  # an eigenvalue of a matrix
            shown = visible(t.written(first - 2, t.at))
            hint = f"write `{suffix}(eigvalsh(A))` in a line without LaTeX, or `{shown} \\cdot (..)` for a product"
            raise t.error("GC139", f"`{shown}(` may be a function or a product", first - 2, t.at, hint)
        if suffix.isdigit() or len(suffix) == 1 or set(suffix) <= INDEX_LETTERS:
            t.entry_like.setdefault(name, (text, first))
        capital = is_capital(text) and (t.arrays or text in MATRICES or not set(suffix) <= INDEX_LETTERS)
        column = matrix and text.islower()
        return TranslatedPart(name, matrix=matrix or (capital and t.arrays), capital=capital, column=column)
    if text in t.numbers:
        hint = f"write another letter for how many there are, such as {text.swapcase()}"
        raise t.error("GC139", f"`{text}` is how many terms a sum has, and an array", first - 2, end - 1, hint)
    t.entries.add(text)
    places = slots(t, text)
    column = matrix and text.islower() and len(places) == 1  # bold x_i is a vector
    return TranslatedPart(f"{text}[{', '.join(places)}]", matrix=column, column=column)


def slots(t: LatexTokens, array: str) -> list[str]:
    """The indices of an entry in a subscript, counted from 0."""
    t.at += 1
    if t.names[t.at - 1] != "{":
        return [slot(t, array, 0, letter(t.names[t.at - 1]))]
    places: list[str] = []
    while t.token != "}":
        if t.take(","):
            continue
        begin = t.at
        if t.names[begin + 1] in ("+", "-"):
            part = addition(t)
            shift = max((t.indices.get(letter(name), 0) for name in t.names[begin : t.at]), default=0)
            places.append(less(part.text, shift))
        elif t.names[begin + 1] == "_":  # labels: w_{y_n}
            places.append(symbol(t).text)
        else:
            t.at += 1
            places.append(slot(t, array, len(places), letter(t.names[begin])))
    t.at += 1
    return places


def slot(t: LatexTokens, array: str, axis: int, index: str) -> str:
    """One index of an entry, counted from 0."""
    if index not in t.indices:
        return str(int(index) - 1) if index.isdigit() else index
    if t.indices[index] < 0:  # the index has no bounds: it runs over this axis
        t.ranges.setdefault(index, f"len({array})" if axis == 0 else f"shape({array})[{axis}]")
        return index
    return f"{index} - {t.indices[index]}" if t.indices[index] else index


def call(t: LatexTokens, name: str) -> TranslatedPart:
    """A function and its arguments in brackets."""
    values = arguments(t)
    text = f"{name}({', '.join(value.text for value in values)})"
    return TranslatedPart(text, matrix=name in MATRIX_VALUED or (name in ENTRYWISE and values[0].matrix))


def normal_density(t: LatexTokens, first: int) -> TranslatedPart:
    r"""\mathcal{N}(x | \mu, \sigma^2) and \mathcal{N}(x | \mu, \Sigma): the variance is the last argument."""
    values = arguments(t)
    if len(values) != 3:
        hint = r"write \mathcal{N}(x | \mu, \sigma^2) for the density of a normal distribution"
        raise t.error("GC138", "a density has a place, a mean and a variance", first, t.at - 1, hint)
    x, mean, variance = values
    deviation = variance.text.removesuffix("**2")
    if variance.capital or variance.matrix:
        d, root = f"({x.within(SUM)} - {mean.within(PRODUCT)})", f"sqrt(det(2*pi*{variance.within(POWER)}))"
        return TranslatedPart(f"exp(-{d} @ inv({variance.text}) @ {d}/2)/{root}", PRODUCT)
    if re.fullmatch(r"(sigma|s|σ)(_\w+|\[.*\])?", variance.text):
        shown = t.written(first, t.at - 1)
        raise t.readings("the last argument", first, t.at - 1, f"{shown}^2)", f"{shown.rpartition(',')[0]}, v)")
    if not re.fullmatch(r"\w+(\[[^\]]*\])?", deviation) or deviation == variance.text:
        deviation = f"sqrt({variance.text})"
    return TranslatedPart(f"norm_pdf({x.text}, {mean.text}, {deviation})")


def fraction(t: LatexTokens) -> TranslatedPart:
    r"""\frac{a}{b}"""
    first = t.at
    t.at += 1
    if t.names[t.at : t.at + 2] in (["{", "d"], ["{", "\\partial"]) and t.names[t.at + 2] != "_":
        part = derivative(t, first)
        if part is not None:
            return part
    top, bottom = digit_or_argument(t), digit_or_argument(t)
    number = top.number and bottom.number
    text = f"{top.within(PRODUCT)}/{bottom.within(ATOM)}"
    return TranslatedPart(text, PRODUCT, matrix=top.matrix, number=number, column=top.column)


def derivative(t: LatexTokens, first: int) -> TranslatedPart | None:
    r"""\frac{\partial y}{\partial x}, \frac{d^2}{dx^2} y as grad(y, x, 2); None for a fraction of other things."""
    sign = t.names[t.at + 1]
    stop = t.end_of_group(t.at)
    if t.names[stop : stop + 2] != ["{", sign]:
        return None
    opened = t.open("}")
    t.at += 1
    order = argument(t).text if t.take("^") else ""
    value = None if t.token == "}" else factor(t)
    t.expect("}", opened)
    opened = t.open("}")
    t.at += 1
    leaf = symbol(t).text
    if t.take("^") and argument(t).text != order:
        raise t.error("GC138", "the orders of the derivative differ", first, t.at - 1)
    if t.token != "}":
        hint = "write grad(grad(y, x), z) in a line without LaTeX"
        raise t.error("GC138", "a derivative is by one name", opened, t.at, hint)
    t.expect("}", opened)
    if value is None:
        value = operand(t, first)
    text = value.text[1:-1] if value.text[:1] == "(" and value.bind == ATOM else value.text
    return TranslatedPart(f"grad({text}, {leaf}{f', {order}' if order else ''})")


def digit_or_argument(t: LatexTokens) -> TranslatedPart:
    r"""An argument; of a number without braces, only the first digit: \frac12 is one half."""
    name = t.token
    if len(name) > 1 and name.isdigit():
        start = t.starts[t.at]
        t.names[t.at : t.at + 1] = name[0], name[1:]
        t.starts[t.at : t.at + 1] = start, start + 1
        t.stops.insert(t.at, start + 1)
    return argument(t)


def root(t: LatexTokens) -> TranslatedPart:
    r"""\sqrt{x}, \sqrt[n]{x}"""
    first = t.at
    t.at += 1
    if t.token == "[":
        degree = bracket(t)
        value = argument(t)
        if degree.text == "3":
            return TranslatedPart(f"cbrt({value.text})")
        if degree.text.isdigit() and int(degree.text) % 2 and degree.text != "1":  # of negative numbers too
            return TranslatedPart(f"sign({value.text})*abs({value.text})**(1/{degree.text})", PRODUCT)
        return TranslatedPart(f"{value.within(ATOM)}**(1/{degree.within(ATOM)})", POWER)
    value = digit_or_argument(t)
    refuse_function_of_matrix(t, "sqrt", value, first)
    return TranslatedPart(f"sqrt({value.text})")


def bars(t: LatexTokens) -> TranslatedPart:
    r"""|x|, \|x\|, with a kind of norm"""
    mark = t.token
    if t.names[t.at + 1] == "_":
        raise t.error("GC138", "a bar with a subscript has no meaning here", t.at, t.at + 1, AT_A_POINT)
    opened, part = t.at, bracket(t, (BARS | NORMS)[mark])
    if mark in BARS:
        if part.matrix or part.capital:
            inside = t.written(opened + 1, t.at - 1)
            first = rf"\|{inside}\|" if part.column else rf"\det({inside})"
            texts = first, rf"\mathrm{{abs}}({inside})"
            raise t.readings("a matrix between bars", opened, t.at - 1, *texts)
        return TranslatedPart(f"abs({part.text})")
    kind, closed, below = "2", t.at - 1, t.token == "_"
    if below:
        end = t.end_of_group(t.at + 1)
        kind = "".join(name for name in t.names[t.at + 1 : end] if name not in ("{", "}", *WITH_WORDS))
        t.at = end
    norms = {"2": f"norm({part.text})", "F": f"norm({part.text})", "1": f"sum(abs({part.text}))"}
    norms |= dict.fromkeys(("infty", "\\infty"), f"max(abs({part.text}))")
    norms |= dict.fromkeys(("*", "\\ast"), f"norm({part.text}, 'nuc')")
    if kind not in norms:
        hint = "the norms are 1, 2, F, * and \\infty"
        raise t.error("GC138", f"unknown norm `{visible(kind)}`", opened, t.at - 1, hint)
    if below and kind not in ("F", "*", "\\ast") and part.matrix and not part.column and part.bind == ATOM:
        inside = t.written(opened + 1, closed)
        of_entries = rf"`\|{inside}\|_F`" if kind == "2" else f"`{norms[kind].replace(part.text, inside)}`"
        number = kind[-3:].replace("fty", "inf")
        hint = f"write {of_entries} for that of all entries, or `norm(.., {number})` without LaTeX"
        raise t.error("GC139", f"norm {kind} of a matrix has more than one reading", opened, t.at - 1, hint)
    return TranslatedPart(norms[kind])


def function_of(t: LatexTokens, command: str) -> TranslatedPart:
    r"""\sin x, \sin^2 x, \log_{10} x, \max(a, b)"""
    first = t.at
    if command in ELSEWHERE:
        raise t.error("GC138", f"`{command}` has no meaning here", first, help=ELSEWHERE[command])
    name = FUNCTIONS.get(command, "")
    t.at += 1
    exponent, base = "", ""
    name = name or (command if command not in RECIPROCALS else "")
    if name in SEVERAL and t.token == "_":
        end = t.end_of_group(t.at + 1)
        letters = set(map(letter, t.names[t.at : end]))
        if not any(used(t, own) for own in letters if own.isalnum()):
            hint = f"write the function alone, or `\\{name}_i x_i` over an index"
            raise t.error("GC138", f"nothing has an index that is below `\\{name}`", first, end - 1, hint)
        return iterated(t, first, name, indices_of(t, first), extremum)
    while t.token in ("^", "_"):
        mark = t.token
        t.at += 1
        if mark == "_" and name != "log":
            end = t.end_of_group(t.at)
            below = visible(t.joined(t.at, end).removeprefix("{").removesuffix("}"))
            hint = "write the subscript as a part of a name, or leave it out"
            raise t.error("GC138", f"`\\{command}` has no subscript `{below}`", first, end - 1, hint)
        value = argument(t)
        if mark == "_":
            if value.text in ("2", "10"):
                name = f"log{value.text}"
            else:
                base = value.text
        elif value.text == "-1":
            inverse = INVERSES.get(command, "")
            inverse_name = f"\\arc{command}" if inverse and not command.endswith("h") else f"\\mathrm{{{inverse}}}"
            raise t.readings(f"`\\{command}^{{-1}}`", first, t.at - 1, inverse_name, f"\\frac{{1}}{{\\{command} ..}}")
        else:
            exponent = f"**{value.within(POWER)}"
    values = arguments(t) if t.token in PAIRS else [bare(t, first)]
    if name in OF_MATRICES and not values[0].matrix and not CALLED.search(values[0].text):
        hint = r"write a bold letter for a matrix, such as \mathbf{A} or \boldsymbol{\rho}"
        raise t.error("GC138", f"`{command}` is taken of what is no matrix", first, t.at - 1, hint)
    if t.names[first] in ("\\exp", "\\log", "\\ln"):
        refuse_function_of_matrix(t, name, values[0], first)
    if command in RECIPROCALS:
        return TranslatedPart(f"1/{RECIPROCALS[command]}({values[0].text}){exponent}", PRODUCT)
    inside = ", ".join(value.text for value in values)
    if name in SEVERAL and len(values) > 2:
        inside = f"[{inside}]"
    text = f"{SEVERAL.get(name, name) if len(values) == 2 else name}({inside})"
    if base:
        text = f"({text}/log({base}))"
    matrix = name in MATRIX_VALUED or (name in ENTRYWISE and values[0].matrix)
    return TranslatedPart(text + exponent, POWER if exponent else ATOM, matrix=matrix)


def bare(t: LatexTokens, first: int) -> TranslatedPart:
    """The argument of a function that has no brackets: numbers, and one factor behind them."""
    start = t.at
    factors = []
    while True:
        last = t.at
        part = factor(t)
        factors.append(part.within(POWER))
        if not part.number:
            break
        if t.ends() or t.token in TIMES or t.token in OVER:
            break
    refuse_open_argument(t, first, start)
    if t.names[first] in ("\\log", "\\ln") and len(factors) > 1 and "pi" not in factors and not part.number:
        function, number, rest = t.written(first, start), t.written(start, last), t.written(last, t.at)
        texts = f"{function}({number}) {rest}", f"{function}({number} {rest})"
        raise t.readings(f"`{t.written(first, t.at)}`", first, t.at - 1, *texts)
    inside = "*".join(factors)
    return TranslatedPart(inside, matrix=len(factors) == 1 and part.matrix)


def rounded(t: LatexTokens) -> TranslatedPart:
    r"""\lfloor x \rfloor, \lceil x \rceil"""
    closing, function = ROUNDED[t.token]
    return TranslatedPart(f"{function}({bracket(t, closing).text})")


def inner_product(t: LatexTokens) -> TranslatedPart:
    r"""\langle x, y \rangle"""
    opened = t.open("rangle")
    left = comparison(t)
    if t.token != ",":
        raise t.error("GC138", "a comma is expected", t.at, help="write two values between the brackets")
    t.at += 1
    right = comparison(t)
    t.expect("rangle", opened)
    return TranslatedPart(f"sum({left.within(POWER)}*{right.within(POWER)})")


def binomial(t: LatexTokens) -> TranslatedPart:
    r"""\binom{n}{k}"""
    t.at += 1
    n, k = argument(t), argument(t)
    rest = f"factorial({n.text} - {k.within(PRODUCT)})"
    return TranslatedPart(f"factorial({n.text})/(factorial({k.text})*{rest})", PRODUCT)


def gradient(t: LatexTokens) -> TranslatedPart:
    r"""\nabla_x y"""
    first = t.at
    t.at += 2
    leaf = argument(t).text
    return TranslatedPart(f"grad({operand(t, first).text}, {leaf})")


def operand(t: LatexTokens, first: int) -> TranslatedPart:
    """What the derivative that begins at token `first` is of: numbers, and one factor behind them."""
    start = t.at
    part = factor(t)
    while part.number and not t.ends() and t.token not in OVER:
        t.at += t.token in TIMES
        part = entrywise(part, factor(t))
    refuse_open_operand(t, first, start)
    return part


# what has rows or an index


def series(t: LatexTokens) -> TranslatedPart:
    r"""\sum_{i=1}^{n} body, \sum_i body, \sum_{i<j} body, \prod"""
    first = t.at
    word = {"\\sum": "sum", "\\prod": "prod"}[t.names[first]]
    t.at += 1
    indices = indices_of(t, first)
    if not indices.ranges:
        return TranslatedPart(f"{word}({product(t).text})")
    return iterated(t, first, word, indices, product)


class Indices(NamedTuple):
    """What stands below and above a sum: the first and last value of each index, and comparisons of positions."""

    ranges: dict[str, tuple[str, str]]
    conditions: list[tuple[str, str, str]]


def indices_of(t: LatexTokens, first: int) -> Indices:
    r"""_i, _{i=1}^n, _{i,j}, _{i<j}, _{j \ne i}, _{1 \le i < j \le n}, _{i=1, i \ne j}^n, _{i=1,\dots,n}"""
    ranges: dict[str, tuple[str, str]] = {}
    conditions: list[tuple[str, str, str]] = []
    above = ""
    while t.token in ("_", "^"):
        mark = t.token
        t.at += 1
        if mark == "^":
            above = argument(t).text
        elif t.token != "{":
            ranges[index_of(t, t.at)] = "", ""
            t.at += 1
        else:
            opened = t.open("}")
            while t.token != "}":
                items(t, opened, ranges, conditions)
                t.take(",")
            t.expect("}", opened)
    lows = [low for low, _ in ranges.values() if low]
    for index, (low, high) in ranges.items():
        compared = any(index in condition for condition in conditions)
        low = low or (lows[0] if above and lows else "1" if above and compared else "")
        ranges[index] = low, high or above
        if bool(low) != bool(high or above):
            raise t.error("GC138", "a sum has both bounds or none", first, t.at - 1, "write \\sum_{i=1}^{n}")
    return Indices(ranges, conditions)


def items(
    t: LatexTokens, opened: int, ranges: dict[str, tuple[str, str]], conditions: list[tuple[str, str, str]]
) -> None:
    """What stands between two commas below a sum."""
    start = t.at
    if t.token == "(":
        hint = "write \\sum_{i,j} M_{ij} (..) with 1 in M for each pair that counts, and 0 for the others"
        raise t.error("GC138", "the index of a sum is one letter", opened, t.end_of_group(opened) - 1, hint)
    terms, signs = [bound(t)], list[str]()
    while t.token == "=" or t.token in COMPARISONS:
        signs.append("=" if t.token == "=" else COMPARISONS[t.token])
        t.at += 1
        terms.append(bound(t))
    letters = [name.removeprefix("\\") for name in t.names[start : t.at]]
    if t.token not in (",", "}") and not (t.is_letter(t.at) and not signs and len(letters) == 1):
        hint = ELSEWHERE["in"] if t.token == "in" else "write \\sum_{i=1}^{n}, or \\sum_i over all entries"
        raise t.error("GC138", "the index of a sum runs between two numbers", opened, t.at, hint)
    if signs in ([], ["="]) and not (signs and ranges and letter(t.names[start]) in t.indices):
        high = ""
        if t.names[t.at] == "," and t.names[t.at + 1].removeprefix("\\") in DOTS and signs:
            t.at += 2
            t.take(",")
            high = bound(t)
        ranges[index_of(t, start)] = (terms[1], high) if signs else ("", "")
        return
    inner = [term for term in terms if term in ranges or term in t.indices or used(t, term)]
    new = [term for term in inner if term not in t.indices and term not in ranges]
    low, high = "", ""
    if len(terms) > 2 and terms[0] not in inner and terms[-1] not in inner:
        low = terms[0] if signs[0] == "<=" else f"{terms[0]} + 1" if not terms[0].isdigit() else str(int(terms[0]) + 1)
        high = terms[-1] if signs[-1] == "<=" else f"{terms[-1]} - 1"
        terms, signs = terms[1:-1], signs[1:-1]
    if terms != inner or "=" in signs or not (new or (len(inner) > 1 and inner[0] in ranges)):
        hint = "write \\sum_{i=1}^{n}, \\sum_{i<j}, or \\sum_{j \\ne i} in a sum over i"
        raise t.error("GC138", "the index of a sum runs between two numbers", opened, t.at, hint)
    ranges.update(dict.fromkeys(new, (low, high)))
    conditions += zip(terms, signs, terms[1:], strict=False)


def bound(t: LatexTokens) -> str:
    """An index or a bound below a sum."""
    if t.is_letter(t.at) and t.names[t.at + 1] not in ("+", "-", "_", "/"):
        t.at += 1
        return letter(t.names[t.at - 1])
    return addition(t).text


def index_of(t: LatexTokens, place: int) -> str:
    """The letter at a place, as an index."""
    if not t.names[place]:
        raise t.unexpected()
    if not t.is_letter(place):
        raise t.error("GC138", "the index of a sum is one letter", place)
    return letter(t.names[place])


def letter(token: str) -> str:
    """The name for a letter, also a Greek one."""
    name = token.removeprefix("\\")
    return "λ" if name == "lambda" else name


def used(t: LatexTokens, name: str) -> bool:
    """Whether a subscript behind the present place has this letter."""
    places = [k for k in range(t.at, len(t.names)) if t.names[k] == "_" and t.names[k - 1] not in INDEXED]
    return any(name in map(letter, t.names[k + 1 : t.end_of_group(k + 1)]) for k in places)


def iterated(
    t: LatexTokens, first: int, word: str, indices: Indices, body: Callable[[LatexTokens], TranslatedPart]
) -> TranslatedPart:
    """A function over all values of indices, which are bound in the body."""
    outer = {index: (t.indices.get(index), t.ranges.pop(index, None)) for index in indices.ranges}
    t.bound.update(indices.ranges)
    t.indices.update({index: int(low != "0") if low else -1 for index, (low, _) in indices.ranges.items()})
    texts, inside = [body(t).text], list(indices.ranges)
    for index, (low, high) in indices.ranges.items():
        inside.remove(index)
        if not low and index not in t.ranges:
            hint = f"write \\sum_{{{index}=1}}^{{n}}"
            raise t.error("GC138", f"nothing has the index {index}", first, t.at - 1, hint)
        stop = str(int(high) + 1) if high.isdigit() else high.removesuffix(" - 1")
        stop = f"{high} + 1" if stop == high else stop
        span = t.ranges.pop(index, "") if not low else f"{low}, {stop}" if low != "0" else stop
        texts.append(f"for {index} in range({span})")
        for a, sign, b in indices.conditions:
            if index in (a, b) and a not in inside and b not in inside:
                one_base = t.indices[a] == t.indices[b]
                sides = (own if one_base or t.indices[own] < 1 else f"{own} - 1" for own in (a, b))
                texts.append(f"if {f' {sign} '.join(sides)}")
    for index, (base, around) in outer.items():
        t.indices.pop(index)
        if base is not None:
            t.indices[index] = base
        if around is not None:
            t.ranges[index] = around
    return TranslatedPart(f"{word}({' '.join(texts)})")


def extremum(t: LatexTokens) -> TranslatedPart:
    r"""What \max_i is taken of."""
    first = t.at
    part = bracket(t) if t.token in PAIRS else bare(t, first)
    if t.token in ("^", "_", "!", "'"):
        inside = t.written(first, t.at)
        texts = rf"\max_i ({inside}{t.token} ..)", rf"(\max_i {inside}){t.token} .."
        raise t.readings(f"`{t.token}` behind the brackets", first, t.at, *texts)
    return part


def cases(t: LatexTokens) -> TranslatedPart:
    r"""\begin{cases} x & x > 0 \\ 0 & \text{otherwise} \end{cases}"""
    first = t.at
    t.at += 1
    rows: list[tuple[str, str]] = []
    while not t.token.startswith(r"\end"):
        value = comparison(t).text
        t.take(",")
        condition = ""
        if t.take("&"):
            if t.token in ("\\text", "\\mathrm", "\\textrm"):
                t.at += 1
                word(t)
            if t.token not in (r"\\", ",", ".", ";") and not t.token.startswith(r"\end"):
                condition = comparison(t).text.rstrip(".")
                if t.take("="):
                    condition += f" == {addition(t).text}"
        rows.append((value, condition))
        if t.token in (",", ".", ";"):
            t.at += 1
        if not t.take(r"\\") and not t.token.startswith(r"\end"):
            raise t.error("GC138", "`cases` is never closed", first, help=r"add \end{cases}")
    t.at += 1
    *others, (text, condition) = rows or [("", "")]
    if not others or not all(condition for _, condition in others):
        hint = "write a value & condition in every row, and `otherwise` in the last"
        raise t.error("GC138", "`cases` needs a condition in every row but the last", first, help=hint)
    if condition and not (len(others) == 1 and complementary(others[0][1], condition)):
        text = f"where({condition}, {text}, nan)"
    for value, condition in reversed(others):
        text = f"where({condition}, {value}, {text})"
    return TranslatedPart(text)


def matrix_of(t: LatexTokens, function: str) -> TranslatedPart:
    r"""\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}; a column is a vector."""
    first = t.at
    t.at += 1
    rows: list[list[str]] = [[]]
    while not t.token.startswith(r"\end"):
        rows[-1].append(comparison(t).text)
        if t.take("&"):
            continue
        if t.take(r"\\"):
            if not t.token.startswith(r"\end"):
                rows.append([])
        elif not t.token.startswith(r"\end"):
            raise t.error("GC138", "the matrix is never closed", first, help=r"add \end{pmatrix}")
    t.at += 1
    if len({len(row) for row in rows}) > 1 or not rows[0]:
        raise t.error("GC138", "the rows of the matrix have different lengths", first)
    column = len(rows[0]) == 1 and len(rows) > 1
    text = ", ".join(row[0] if column else f"[{', '.join(row)}]" for row in rows)
    return TranslatedPart(f"{function}([{text}])" if function else f"[{text}]", matrix=not function)


def less(index: str, shift: int) -> str:
    """The text of an index minus a number: of i + 1 and 1 it is i."""
    plain = index.removesuffix(f" + {shift}")
    return plain if plain != index else f"{index} - {shift}" if shift else index


def complementary(condition: str, opposite_condition: str) -> bool:
    """Whether two conditions are each other's opposite: x > 0 and x <= 0."""
    opposite = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
    turned = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
    a, b = condition.split(" "), opposite_condition.split(" ")
    if len(a) != 3 or len(b) != 3 or a[1] not in opposite:
        return False
    return b in ([a[0], opposite[a[1]], a[2]], [a[2], turned[opposite[a[1]]], a[0]])


CONSTRUCTS: dict[str, Callable[[LatexTokens], TranslatedPart]] = {  # by the token that begins them
    **dict.fromkeys((*BARS, *NORMS), bars),
    **dict.fromkeys(ROUNDED, rounded),
    **dict.fromkeys(("\\frac", "\\dfrac", "\\tfrac"), fraction),
    **dict.fromkeys(("\\binom", "\\dbinom", "\\tbinom"), binomial),
    **dict.fromkeys(("\\sum", "\\prod"), series),
    "langle": inner_product,
    "\\nabla": gradient,
    "\\sqrt": root,
    r"\begin{cases}": cases,
}
