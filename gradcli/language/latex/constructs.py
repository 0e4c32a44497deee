"""Constructs of LaTeX: fractions and derivatives, roots, norms, functions, sums over an index, cases and matrices."""

from __future__ import annotations

import re

from gradcli.diagnostics import visible
from gradcli.language.latex.latex_commands import (
    AT_A_POINT,
    BARS,
    ELSEWHERE,
    ENTRYWISE,
    FUNCTIONS,
    GREEK,
    INVERSES,
    MATRIX_VALUED,
    NORMS,
    OVER,
    PAIRS,
    RECIPROCALS,
    ROUNDED,
    SEVERAL,
    TIMES,
)
from gradcli.language.latex.latex_tokens import ATOM, POWER, PRODUCT, Part
from gradcli.language.latex.letters import Letters


class Constructs(Letters):
    """What a command makes of its arguments."""

    def fraction(self) -> Part:
        r"""\frac{a}{b}"""
        first = self.at
        self.at += 1
        if self.names[self.at : self.at + 2] in (["{", "d"], ["{", "\\partial"]) and self.names[self.at + 2] != "_":
            derivative = self.derivative(first)
            if derivative is not None:
                return derivative
        top, bottom = self.digit_or_argument(), self.digit_or_argument()
        number = top.number and bottom.number
        return Part(f"{top.within(PRODUCT)}/{bottom.within(ATOM)}", PRODUCT, matrix=top.matrix, number=number)

    def derivative(self, first: int) -> Part | None:
        r"""\frac{\partial y}{\partial x}, \frac{d^2}{dx^2} y as grad(y, x, 2); None for a fraction of other things."""
        sign = self.names[self.at + 1]
        stop = self.end_of_group(self.at)
        if self.names[stop : stop + 2] != ["{", sign]:
            return None
        opened = self.open("}")
        self.at += 1
        order = self.argument().text if self.names[self.at] == "^" and self.step() else ""
        value = None if self.names[self.at] == "}" else self.factor()
        self.expect("}", opened)
        opened = self.open("}")
        self.at += 1
        leaf = self.name().text
        if self.names[self.at] == "^" and self.step() and self.argument().text != order:
            raise self.error("GC138", "the orders of the derivative differ", first, self.at - 1)
        if self.names[self.at] != "}":
            hint = "write grad(grad(y, x), z) in a line without LaTeX"
            raise self.error("GC138", "a derivative is by one name", opened, self.at, hint)
        self.expect("}", opened)
        if value is None:
            value = self.factor()
        text = value.text[1:-1] if value.text[:1] == "(" and value.bind == ATOM else value.text
        return Part(f"grad({text}, {leaf}{f', {order}' if order else ''})")

    def digit_or_argument(self) -> Part:
        r"""An argument; of a number without braces, only the first digit: \frac12 is one half."""
        name = self.names[self.at]
        if len(name) > 1 and name.isdigit():
            start = self.starts[self.at]
            self.names[self.at : self.at + 1] = name[0], name[1:]
            self.starts[self.at : self.at + 1] = start, start + 1
            self.stops.insert(self.at, start + 1)
        return self.argument()

    def root(self) -> Part:
        r"""\sqrt{x}, \sqrt[n]{x}"""
        self.at += 1
        if self.names[self.at] == "[":
            degree = self.bracket()
            value = self.argument()
            return Part(f"{value.within(ATOM)}**(1/{degree.within(ATOM)})", POWER)
        return Part(f"sqrt({self.digit_or_argument().text})")

    def bars(self) -> Part:
        r"""|x|, \|x\|, with a kind of norm"""
        mark = self.names[self.at]
        if self.names[self.at + 1] == "_":
            raise self.error("GC138", "a bar with a subscript has no meaning here", self.at, self.at + 1, AT_A_POINT)
        closing = (BARS | NORMS)[mark]
        opened = self.open(closing)
        part = self.comparison()
        self.expect(closing, opened)
        if mark in BARS:
            if part.matrix or part.capital:
                inside = self.written(opened + 1, self.at - 1)
                first = rf"\|{inside}\|" if part.column else rf"\det({inside})"
                texts = first, rf"\mathrm{{abs}}({inside})"
                raise self.readings("a matrix between bars", opened, self.at - 1, *texts)
            return Part(f"abs({part.text})")
        kind = "2"
        if self.names[self.at] == "_":
            end = self.end_of_group(self.at + 1)
            kind = "".join(self.names[self.at + 1 : end]).strip("{}")
            self.at = end
        norms = {"2": f"norm({part.text})", "F": f"norm({part.text})", "1": f"sum(abs({part.text}))"}
        norms |= dict.fromkeys(("infty", "\\infty"), f"max(abs({part.text}))")
        if kind not in norms or (kind == "1" and part.matrix and part.bind == ATOM):
            raise self.error(
                "GC138", f"unknown norm `{visible(kind)}`", opened, self.at - 1, "the norms are 1, 2, F and \\infty"
            )
        return Part(norms[kind])

    def function(self, command: str) -> Part:
        r"""\sin x, \sin^2 x, \log_{10} x, \max(a, b)"""
        first = self.at
        if command in ELSEWHERE:
            raise self.error("GC138", f"`{command}` has no meaning here", first, help=ELSEWHERE[command])
        name = FUNCTIONS.get(command, "")
        self.at += 1
        exponent, base = "", ""
        name = name or (command if command not in RECIPROCALS else "")
        while self.names[self.at] in ("^", "_"):
            mark = self.names[self.at]
            self.at += 1
            if mark == "_" and name != "log":
                end = self.end_of_group(self.at)
                below = visible(self.joined(self.at, end).removeprefix("{").removesuffix("}"))
                hint = "write the subscript as a part of a name, or leave it out"
                if name in SEVERAL:
                    hint = f"write the function alone, or `\\{name}(x)` of the entries of x"
                raise self.error("GC138", f"`\\{command}` has no subscript `{below}`", first, end - 1, hint)
            value = self.argument()
            if mark == "_":
                if value.text in ("2", "10"):
                    name = f"log{value.text}"
                else:
                    base = value.text
            elif value.text == "-1":
                inverse = INVERSES.get(command, "")
                one = f"\\arc{command}" if inverse and not command.endswith("h") else f"\\mathrm{{{inverse}}}"
                raise self.readings(f"`\\{command}^{{-1}}`", first, self.at - 1, one, f"\\frac{{1}}{{\\{command} ..}}")
            else:
                exponent = f"**{value.within(POWER)}"
        values = self.arguments() if self.names[self.at] in PAIRS else [self.bare(first)]
        if command in RECIPROCALS:
            return Part(f"1/{RECIPROCALS[command]}({values[0].text}){exponent}", PRODUCT)
        inside = ", ".join(one.text for one in values)
        if name in SEVERAL and len(values) > 2:
            inside = f"[{inside}]"
        text = f"{SEVERAL.get(name, name) if len(values) == 2 else name}({inside})"
        if base:
            text = f"({text}/log({base}))"
        matrix = name in MATRIX_VALUED or (name in ENTRYWISE and values[0].matrix)
        return Part(text + exponent, POWER if exponent else ATOM, matrix=matrix)

    def bare(self, first: int) -> Part:
        """The argument of a function that has no brackets: numbers, and one factor behind them."""
        factors = []
        while True:
            part = self.factor()
            factors.append(part.within(POWER))
            if not part.number:
                break
            if self.ends() or self.names[self.at] in TIMES or self.names[self.at] in OVER:
                break
        inside = "*".join(factors)
        following = self.names[self.at]
        factor = following[:1].isalpha() or following in PAIRS or following.removeprefix("\\") in GREEK
        if factor and following not in TIMES and following not in OVER and not self.ends():
            one, rest = self.written(first, self.at), self.written(self.at, self.at + 1)
            function = self.written(first, first + 1)
            value = self.written(first + 1, self.at)
            raise self.readings(
                f"`{one} {rest}`", first, self.at, f"{function}({value}) {rest}", f"{function}({value} {rest})"
            )
        return Part(inside, matrix=len(factors) == 1 and part.matrix)

    def rounded(self) -> Part:
        r"""\lfloor x \rfloor, \lceil x \rceil"""
        closing, function = ROUNDED[self.names[self.at]]
        opened = self.open(closing)
        part = self.comparison()
        self.expect(closing, opened)
        return Part(f"{function}({part.text})")

    def inner_product(self) -> Part:
        r"""\langle x, y \rangle"""
        opened = self.open("rangle")
        left = self.comparison()
        if self.names[self.at] != ",":
            raise self.error("GC138", "a comma is expected", self.at, help="write two values between the brackets")
        self.at += 1
        right = self.comparison()
        self.expect("rangle", opened)
        return Part(f"sum({left.within(POWER)}*{right.within(POWER)})")

    def binomial(self) -> Part:
        r"""\binom{n}{k}"""
        self.at += 1
        n, k = self.argument(), self.argument()
        rest = f"factorial({n.text} - {k.within(PRODUCT)})"
        return Part(f"factorial({n.text})/(factorial({k.text})*{rest})", PRODUCT)

    def gradient(self) -> Part:
        r"""\nabla_x y"""
        self.at += 2
        leaf = self.argument().text
        return Part(f"grad({self.factor().text}, {leaf})")

    # what has rows or an index

    def series(self) -> Part:
        r"""\sum_{i=1}^{n} body, \sum_i body, \prod"""
        first = self.at
        word = {"\\sum": "sum", "\\prod": "prod"}[self.names[first]]
        self.at += 1
        index, low, high = "", "", ""
        while self.names[self.at] in ("_", "^"):
            mark = self.names[self.at]
            self.at += 1
            if mark == "^":
                high = self.argument().text
                continue
            group = self.names[self.at] == "{"
            opened = self.open("}") if group else self.at
            index = self.names[self.at]
            self.at += 1
            if group:
                if self.names[self.at] == "=":
                    self.at += 1
                    low = self.sum().text
                if self.names[self.at] == ",":
                    hint = "write a sum for each: \\sum_i \\sum_j"
                    raise self.error("GC138", "a sum runs over one index", opened, self.at, hint)
                if self.names[self.at] not in ("}", ""):
                    hint = "write \\sum_{i=1}^{n}, or \\sum_i over all entries"
                    if self.names[self.at] == "<":
                        hint = "write \\sum_{i=1}^{n-1} \\sum_{j=i+1}^{n}"
                    elif self.names[self.at] in ("ne", "neq"):
                        hint = "write a sum for each index, minus the terms where both are equal"
                    raise self.error("GC138", "the index of a sum runs between two numbers", opened, self.at, hint)
                self.expect("}", opened)
            if not re.fullmatch(r"[A-Za-z]", index):
                raise self.error("GC138", "the index of a sum is one letter", opened, self.at - 1)
        if not index:
            part = self.product()
            return Part(f"{word}({part.text})")
        if bool(low) != bool(high):
            raise self.error("GC138", "a sum has both bounds or none", first, self.at - 1, "write \\sum_{i=1}^{n}")
        outer, around = self.indices.get(index), self.ranges.pop(index, None)
        self.indices[index] = -1 if not low else int(low) if low in ("0", "1") else 1
        body = self.product()
        if low:
            stop = str(int(high) + 1) if high.isdigit() else high.removesuffix(" - 1")
            stop = f"{high} + 1" if stop == high else stop
            span = f"{low}, {stop}" if low != "0" else stop
        elif index in self.ranges:
            span = self.ranges.pop(index)
        else:
            raise self.error(
                "GC138", f"nothing has the index {index}", first, self.at - 1, f"write \\sum_{{{index}=1}}^{{n}}"
            )
        if outer is None:
            del self.indices[index]
        else:
            self.indices[index] = outer
        if around is not None:
            self.ranges[index] = around
        if word == "prod":
            return Part(f"prod([{body.text} for {index} in range({span})])")
        return Part(f"sum({body.text} for {index} in range({span}))")

    def cases(self) -> Part:
        r"""\begin{cases} x & x > 0 \\ 0 & \text{otherwise} \end{cases}"""
        first = self.at
        self.at += 1
        rows: list[tuple[str, str]] = []
        while not self.names[self.at].startswith(r"\end"):
            value = self.comparison().text
            if self.names[self.at] == ",":
                self.at += 1
            condition = ""
            if self.names[self.at] == "&":
                self.at += 1
                if self.names[self.at] in ("\\text", "\\mathrm", "\\textrm"):
                    self.at += 1
                    self.word()
                if self.names[self.at] not in (r"\\", ",", ".", ";") and not self.names[self.at].startswith(r"\end"):
                    condition = self.comparison().text.rstrip(".")
                    if self.names[self.at] == "=":
                        self.at += 1
                        condition += f" == {self.sum().text}"
            rows.append((value, condition))
            if self.names[self.at] in (",", ".", ";"):
                self.at += 1
            if self.names[self.at] == r"\\":
                self.at += 1
            elif not self.names[self.at].startswith(r"\end"):
                raise self.error("GC138", "`cases` is never closed", first, help=r"add \end{cases}")
        self.at += 1
        *others, (text, condition) = rows or [("", "")]
        if not others or not all(condition for _, condition in others):
            hint = "write a value & condition in every row, and `otherwise` in the last"
            raise self.error("GC138", "`cases` needs a condition in every row but the last", first, help=hint)
        if condition and not (len(others) == 1 and complementary(others[0][1], condition)):
            text = f"where({condition}, {text}, nan)"
        for value, condition in reversed(others):
            text = f"where({condition}, {value}, {text})"
        return Part(text)

    def matrix(self, function: str) -> Part:
        r"""\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}; a column is a vector."""
        first = self.at
        self.at += 1
        rows: list[list[str]] = [[]]
        while not self.names[self.at].startswith(r"\end"):
            rows[-1].append(self.comparison().text)
            if self.names[self.at] == "&":
                self.at += 1
            elif self.names[self.at] == r"\\":
                self.at += 1
                if not self.names[self.at].startswith(r"\end"):
                    rows.append([])
            elif not self.names[self.at].startswith(r"\end"):
                raise self.error("GC138", "the matrix is never closed", first, help=r"add \end{pmatrix}")
        self.at += 1
        if len({len(row) for row in rows}) > 1 or not rows[0]:
            raise self.error("GC138", "the rows of the matrix have different lengths", first)
        column = len(rows[0]) == 1 and len(rows) > 1
        text = ", ".join(row[0] if column else f"[{', '.join(row)}]" for row in rows)
        return Part(f"{function}([{text}])" if function else f"[{text}]", matrix=not function)


def complementary(one: str, other: str) -> bool:
    """Whether two conditions are each other's opposite: x > 0 and x <= 0."""
    opposite = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
    turned = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
    a, b = one.split(" "), other.split(" ")
    if len(a) != 3 or len(b) != 3 or a[1] not in opposite:
        return False
    return b in ([a[0], opposite[a[1]], a[2]], [a[2], turned[opposite[a[1]]], a[0]])
