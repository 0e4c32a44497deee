"""Lines of LaTeX: equations, sums and products of factors, powers."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.language.latex.constructs import Constructs
from gradcli.language.latex.latex_commands import (
    ACCENTS,
    ALPHABETS,
    BARS,
    BOLD,
    BREAKS,
    COMPARISONS,
    ELSEWHERE,
    FUNCTIONS,
    GREEK,
    INDICATOR,
    INVERSE_TRANSPOSES,
    LORENTZ,
    MARKS,
    MATRICES,
    MATRIX_ENVIRONMENTS,
    NORMS,
    OVER,
    PAIRS,
    RECIPROCALS,
    ROUNDED,
    TIMES,
    TRANSPOSES,
)
from gradcli.language.latex.latex_tokens import ATOM, POWER, PRODUCT, SUM, Part

ENVIRONMENT = re.compile(r"\\begin\{([a-z]+\*?)\}")
DEEPEST = 40  # brackets inside each other: the reader recurses
SIDES = "write == between two values; else the left side is a name, f(x), or \\frac{\\partial f}{\\partial x}"
TIME = re.compile(r"(?:[a-z]|[+*/=]\s?|(?<!\^\{)-\s?|\\sqrt\{)T(?![A-Za-z])")  # T as a number: rT, \sqrt{T}


class Formula(Constructs):
    """A line of LaTeX."""

    def line(self) -> str:
        """The script text of the line; statements end with a semicolon, and in an environment with its rows."""
        statements = [self.statement()]
        while self.names[self.at] in BREAKS:
            self.at += 1
            if self.names[self.at]:
                statements.append(self.statement())
        if self.names[self.at]:
            raise self.unexpected()
        for name, (array, place) in self.entry_like.items():
            if array in self.entries:
                hint = f"write {array}[0] for the first entry, in a line without LaTeX"
                raise self.error("GC139", f"`{name}` may be an entry of `{array}`, or a name", place - 1, place, hint)
        return "; ".join(statements)

    def statement(self) -> str:
        """The script text up to the end of the line or of the row of an environment."""
        end, depth = self.at, 0
        while self.names[end] and (depth or self.names[end] not in BREAKS):
            depth += self.names[end] == "(" or self.names[end].startswith(r"\begin")
            depth -= self.names[end] == ")" or self.names[end].startswith(r"\end")
            end += 1
        equals = [k for k in range(self.at, end) if self.names[k] == "=" and not self.inside(k)]
        environment = next((k for k in range(self.at, end) if self.names[k].startswith(r"\begin")), end)
        equals = [k for k in equals if k < environment]  # behind it stand the conditions of cases
        if len(equals) > 1:
            raise self.error(
                "GC138", "a line has at most one `=`", equals[1], help="give each equation a line of its own"
            )
        left = ""
        claim = False
        if equals:
            claim = self.names[self.at] in ("\\frac", "\\dfrac", "\\tfrac", "\\nabla")
            left = f"assert {self.factor().text} == " if claim else self.target(equals[0]) + " = "
            if self.at != equals[0]:
                raise self.error("GC138", "the left side is not a name", 0, equals[0] - 1, SIDES)
            self.at = equals[0] + 1
        text = self.comparison().text
        while self.names[self.at] == ",":
            self.at += 1
            if self.names[self.at] in ("", *BREAKS):
                break
            text += f", {self.comparison().text}"
        return left + text

    def inside(self, k: int) -> bool:
        """Whether token `k` stands in braces."""
        before = self.names[:k]
        return before.count("{") > before.count("}")

    def target(self, equals: int) -> str:
        """What stands on the left of an equals sign: a name, or a function with its parameters."""
        word = "".join(self.names[self.at : equals])
        if re.fullmatch(r"[A-Za-z]\w+", word):
            self.at = equals
            return word
        if self.at == equals:
            hint = "give each equation a left side; a chain a = b = c is two equations"
            raise self.error("GC138", "the equation has no left side", equals, help=hint)
        first = self.at
        command = self.names[first].removeprefix("\\")
        if not (self.letter(first) or command in ALPHABETS | BOLD | ACCENTS.keys() | {"lambda"}):
            hint = ELSEWHERE.get(command, SIDES)
            raise self.error("GC138", "the left side is not a name", first, equals - 1, hint)
        self.alone = True
        text = self.name().text
        self.alone = False
        if self.names[self.at] == "^":
            self.at += 1
            self.marked(first)
            end = self.end_of_group(self.at)
            if self.names[end] not in ("=", "("):
                raise self.error("GC138", "the left side is not a name", first, equals - 1, SIDES)
            mark = self.written(self.at, end).strip("{}")
            base, below, index = self.joined(first, self.at - 1).partition("_")
            index = index.strip("{}") + mark if below else mark
            hint = f"write the mark below the line, as in `{base}_{{{index}}}`"
            raise self.error("GC138", "a name has no superscript", first, end - 1, hint)
        if self.names[self.at] == "(":
            opened = self.at
            parameters = [part.text for part in self.arguments()]
            if not all(re.fullmatch(r"\w+", one) for one in parameters):
                hint = "write a letter, as in f(x, \\sigma)"
                raise self.error("GC138", "a parameter of a function is a name", opened, self.at - 1, hint)
            text += f"({', '.join(parameters)})"
        if self.names[self.at] == "_":
            hint = "leave the index out on both sides: an equation is about whole arrays"
            raise self.error("GC138", "the left side is an entry of an array", first, equals - 1, hint)
        return text

    def sum(self) -> Part:
        """[ sign ] product { sign product }"""
        sign = ""
        if self.names[self.at] in ("+", "-"):
            sign = "-" if self.names[self.at] == "-" else ""
            self.at += 1
        part = self.product()
        if sign:
            part = Part(f"-{part.within(PRODUCT)}", SUM, matrix=part.matrix)
        while self.names[self.at] in ("+", "-"):
            sign = self.names[self.at]
            self.at += 1
            term = self.product()
            first, second = part.text.rpartition("*")[2] == "I", term.text.rpartition("*")[2] == "I"
            if (part.matrix and second) or (first and term.matrix):
                raise self.readings("`I` beside a matrix", self.at - 1, self.at - 1, r"\mathrm{eye}(n)", r"\mathrm{I}")
            part = Part(f"{part.text} {sign} {term.within(PRODUCT)}", SUM, matrix=part.matrix)
        return part

    def comparison(self) -> Part:
        """sum [ comparison sum ]"""
        part = self.sum()
        while self.names[self.at] in COMPARISONS:
            sign = COMPARISONS[self.names[self.at]]
            self.at += 1
            part = Part(f"{part.text} {sign} {self.sum().text}", -1)
        return part

    def product(self) -> Part:
        """Factors with signs between them, or beside each other."""
        start = self.at
        left = self.factor()
        divided = False
        while True:
            name = self.names[self.at]
            if name in TIMES:
                sign_at = self.at
                self.at += 1
                right = self.factor()
                sign = "@" if name == "cdot" and (left.transposed or (left.matrix and right.matrix)) else TIMES[name]
                if name == "cdot" and sign == "*" and left.text in self.vectors and not right.number:
                    a, b = self.written(start, sign_at), self.written(sign_at + 1, self.at)
                    raise self.readings(r"`\cdot`", start, self.at - 1, rf"{a}^\top {b}", rf"{a} \odot {b}")
                if name == "times" and left.matrix and right.matrix:
                    if left.capital or right.capital or left.bind < ATOM or right.bind < ATOM:
                        a, b = self.written(start, sign_at), self.written(sign_at + 1, self.at)
                        texts = (rf"\mathrm{{cross}}({a}, {b})",) if left.column or right.column else ()
                        texts = (*texts, f"{a} {b}", rf"{a} \odot {b}")
                        raise self.readings(r"`\times`", sign_at, sign_at, *texts)
                    left = Part(f"cross({left.text}, {right.text})", matrix=True)
                    continue
            elif name in OVER:
                self.at += 1
                right, sign, divided = self.factor(), "/", True
            elif self.ends():
                return left
            else:
                here = self.at
                right = self.factor()
                if divided and not left.number:
                    what = f"`{self.written(start, self.at)}`"
                    raise self.readings(what, start, self.at - 1, "\\frac{..}{..}", "(..)/(..)")
                if self.names[here][:1].isdigit():
                    raise self.error("GC138", "a number cannot follow a factor", here, help="write \\cdot between them")
                if right.transposed and left.column and right.column:
                    left = Part(f"outer({left.text}, {right.text.removesuffix('.T')})", matrix=True)
                    continue
                label = left.text.endswith("]") and "]" not in right.text  # y_i w^T in a sum: a number of each sample
                factor = (
                    self.scalar(left.text) and not self.ends()
                )  # of x^T y; in front of x^T alone it may be a vector
                plain = left.matrix or left.transposed or left.number or label or factor
                if right.transposed and not (right.matrix or plain):
                    a, b = self.written(start, here), self.written(here, self.at)
                    outer = rf"\mathrm{{outer}}({a}, {self.written(here, here + 1)})"
                    raise self.readings("this product", start, self.at - 1, outer, rf"{a} \cdot {b}")
                lone = re.fullmatch("[a-z]", right.text) and right.text not in self.numbers
                lone = lone and not re.fullmatch("[a-z]", self.names[self.at])  # M g h are numbers
                if left.capital and not left.matrix and lone:
                    a, b = left.text.rpartition("*")[2], right.text
                    a = f"\\{a}" if a in MATRICES else a
                    what = f"`{self.written(start, self.at)}`"
                    raise self.readings(what, start, self.at - 1, rf"\mathbf{{{a}}} {b}", rf"{a} \cdot {b}")
                sign = "@" if left.matrix or left.transposed else "*"
            space = " " if sign == "@" else ""
            text = f"{left.within(PRODUCT)}{space}{sign}{space}{right.within(POWER)}"
            row = left.transposed and not left.matrix
            if sign == "@":  # row @ matrix is a row, row @ column a number, matrix @ matrix a matrix
                square = right.matrix and not (row and right.column)
                left = Part(
                    text, PRODUCT, matrix=square and not row, transposed=square and row, column=right.column and not row
                )
            else:
                matrix, transposed = left.matrix or right.matrix, left.transposed or right.transposed
                number, capital = left.number and right.number, left.number and right.capital and sign == "*"
                left = Part(text, PRODUCT, matrix=matrix, transposed=transposed, number=number, capital=capital)

    def scalar(self, text: str) -> bool:
        r"""Whether a factor has Greek letters only, none of which is transposed in the script: \frac{\lambda}{2}."""
        letters = [one.partition("_")[0] for one in re.findall(r"[^\W\d]\w*", text)]
        return all(one == "λ" or (one in GREEK and one.islower()) for one in letters) and not any(
            re.search(rf"\\{'lambda' if one == 'λ' else one}\s*\^\s*\{{?\s*(?:T|\\\w+)", self.source.text)
            for one in letters
        )

    def factor(self) -> Part:
        """An atom with its powers."""
        first = self.at
        part = self.nested_atom()
        if self.names[self.at] == "_":
            part = self.entry(part, first)
        while self.names[self.at] == "^":
            self.at += 1
            part = self.power(part, first)
        if self.names[self.at] == "!":
            base, raised, exponent = self.written(first, self.at).rpartition("^")
            if raised and self.names[first] not in ("(", "[", "{"):
                inside = f"{base}^{{({exponent.strip('{}')})!}}"
                raise self.readings("a factorial behind a power", first, self.at, f"({base}^{exponent})!", inside)
            self.at += 1
            part = Part(f"factorial({part.text})")
            if self.names[self.at] == "!":
                hint = r"write the product, such as \prod_{i=1}^{k} (2 i - 1)"
                raise self.error("GC138", "a double factorial is not supported", self.at, help=hint)
        if self.names[self.at] == "'":
            raise self.error("GC138", "a prime has no meaning here", self.at, help=ELSEWHERE["'"])
        return part

    def entry(self, part: Part, first: int) -> Part:
        """An entry of an array in brackets or of a call, where a sum binds the index: (A x)_i."""
        group = self.names[self.at + 1] == "{"
        index = self.names[self.at + 1 + group]
        if index not in self.indices or (group and self.names[self.at + 3] != "}"):
            one = part.text == "1"
            hint = (
                INDICATOR
                if one
                else "only a sum has an index, as in \\sum_i (A x)_i; write (A @ x)[0] in a line without LaTeX"
            )
            raise self.error("GC138", "a subscript stands behind a name or in a sum", first, self.at + 1, hint)
        self.at += 4 if group else 2
        array = part.within(ATOM)
        return Part(f"{array}[{self.slot(array, 0, index)}]")

    def power(self, base: Part, start: int) -> Part:
        """The base, which begins at token `start`, with the exponent at the present place."""
        first = self.at
        for tokens in TRANSPOSES:
            if self.names[first : first + len(tokens)] == tokens:
                self.at += len(tokens)
                if "T" in (tokens[0], tokens[1:2] == ["T"] and "T") and self.maybe_number(start, first):
                    shown = self.written(start, self.at)
                    hint = r"write `^\top` for a transpose, and another letter than T for a power"
                    raise self.error("GC139", f"`{shown}` may be a transpose or a power", start, self.at - 1, hint)
                return Part(f"{base.within(ATOM)}.T", matrix=base.matrix, transposed=True, column=base.column)
        for tokens in INVERSE_TRANSPOSES:
            if self.names[first : first + len(tokens)] == tokens:
                self.at += len(tokens)
                return Part(f"inv({base.text}).T", matrix=True)
        self.marked(start)
        if self.names[start] not in PAIRS and not base.number:
            self.named(start)
        if self.names[first] == "circ" or self.names[first : first + 2] == ["{", "circ"]:
            value = self.written(start, first - 1)
            hint = f"write `{value} \\pi / 180` for an angle in degrees" if base.number else f"write `{value}_0`"
            raise self.error("GC138", r"`^\circ` has no meaning here", first - 1, first, hint)
        exponent = self.argument()
        if exponent.text == "pi" and base.capital and self.names[self.at] == "(":
            raise self.call_or_product(start, f"{base.text}_pi")
        if base.matrix and base.bind == ATOM and exponent.number and exponent.text != "1":
            value = self.written(start, first - 1)
            twice = rf"{value}^\top {value}" if base.column else f"{value} {value}", rf"{value} \odot {value}"
            raise self.readings("a power of a matrix", first - 1, self.at - 1, *twice)
        if exponent.text == "-1" and not base.matrix and self.names[start] in PAIRS:
            letters = [one for one in self.names[start : first - 1] if one.isalpha()]
            if len(letters) > 1 and all(one.isupper() and len(one) == 1 for one in letters):
                inside = self.written(start + 1, first - 2)
                texts = rf"\mathrm{{inv}}({inside})", rf"\frac{{1}}{{{inside}}}"
                raise self.readings("an inverse", start, self.at - 1, *texts)
        if exponent.text == "-1" and base.matrix:
            return Part(f"inv({base.text})", matrix=True)
        return Part(f"{base.within(ATOM)}**{exponent.within(POWER)}", POWER, number=base.number)

    def maybe_number(self, start: int, end: int) -> bool:
        """Whether T above the tokens from `start` may be a number: (1 + r)^T, or T stands for a number elsewhere."""
        ones = re.search(r"\(\s*1\s*[+-]|[+-]\s*1\s*\)$", self.written(start, end - 1))
        return ones is not None or "T" in self.numbers or TIME.search(self.source.text) is not None

    def named(self, start: int) -> None:
        r"""Refuse an exponent that marks the name at `start`: \theta^{old}, \theta^{\text{old}}, F^{\mu\nu}."""
        end = self.end_of_group(self.at)
        inner = [one for one in self.names[self.at : end] if one not in ("{", "}")]
        upright = inner[:1] != [] and inner[0].removeprefix("\\") in ALPHABETS
        word = "".join(inner[upright:])
        base, exponent = self.joined(start, self.at - 1), self.written(self.at, end)
        below = re.search(rf"_\{{?(\\\w+\s*)*{re.escape(word)}", self.source.text)  # the index of another name
        tensor = set(inner) <= LORENTZ and (len(inner) > 1 or below)
        if word in (*MARKS, "0") or (upright and word.isalpha()) or tensor:
            name = f"{base[:-1]}{word}}}" if base[-1] == "}" else f"{base}_{exponent if tensor else f'{{{word}}}'}"
            texts = name, f"({base})^{exponent}"
            raise self.readings(f"`{base}^{exponent}`", start, end - 1, *texts)

    def nested_atom(self) -> Part:
        """An atom; raises GC502 where too many stand inside each other."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("GC502", f"more than {DEEPEST} brackets or functions inside each other", self.at)
        part = self.atom()
        self.depth -= 1
        return part

    def atom(self) -> Part:
        """A number, a name, a bracket, a command with its arguments."""
        name = self.names[self.at]
        if name[:1].isdigit() or (name[:1] == "." and len(name) > 1):
            self.at += 1
            return Part(name, number=True)
        if name in CONSTRUCTS and (name != "\\nabla" or self.names[self.at + 1] == "_"):
            return CONSTRUCTS[name](self)
        environment = ENVIRONMENT.fullmatch(name)
        if environment and environment[1] in MATRIX_ENVIRONMENTS:
            return self.matrix(MATRIX_ENVIRONMENTS[environment[1]])
        command = name.removeprefix("\\")
        if command != name and (command in FUNCTIONS or command in RECIPROCALS):
            return self.function(command)
        return self.name()

    def parenthesis(self) -> Part:
        """A value in brackets, which keeps them where something outside binds more tightly."""
        part = self.bracket()
        text = f"({part.text})" if part.bind < ATOM else part.text
        return Part(text, matrix=part.matrix, transposed=part.transposed)

    def number_pi(self) -> Part:
        """The number pi, as a command or a letter."""
        self.at += 1
        return Part("pi", number=True)


CONSTRUCTS: dict[str, Callable[[Formula], Part]] = {  # by the token that begins them
    **dict.fromkeys(PAIRS, Formula.parenthesis),
    **dict.fromkeys((*BARS, *NORMS), Formula.bars),
    **dict.fromkeys(ROUNDED, Formula.rounded),
    **dict.fromkeys(("\\frac", "\\dfrac", "\\tfrac"), Formula.fraction),
    **dict.fromkeys(("\\binom", "\\dbinom", "\\tbinom"), Formula.binomial),
    **dict.fromkeys(("\\sum", "\\prod"), Formula.series),
    **dict.fromkeys(("\\pi", "π"), Formula.number_pi),
    "langle": Formula.inner_product,
    "\\nabla": Formula.gradient,
    "\\sqrt": Formula.root,
    r"\begin{cases}": Formula.cases,
}
