r"""LaTeX formulas, translated line by line into the language of scripts.

A line with a LaTeX command, with braces behind `^` or `_`, or between dollar signs is read as mathematics: letters
beside each other are a product, and `\frac`, `\sqrt`, `\sum`, norms and Greek letters have their usual meaning.
`A x` and `x^\top y` are matrix products: the left factor is a capital or bold letter, transposed, or an inverse. What
has more than one usual reading is refused, with the readings. The translation has the same lines as the source, so
that later errors, which quote the translation, name the right line.
"""

from __future__ import annotations

import re

from gradcli.diagnostics import Diagnostic, GradcliError, did_you_mean, visible
from gradcli.language.source import Source

MATHEMATICS = re.compile(r"\\[A-Za-z,;:!|{}()\[\]]|\$[^$]+\$|[\^_][ \t]*\{")
STRING = re.compile(r"\"[^\"\r\n]*\"|'[^'\r\n]*'")
ASSIGNED = re.compile(r"^[ \t]*(?:const[ \t]+)?([A-Za-z_]\w+)[ \t]*(?:\[[^\]\r\n]*\][ \t]*)?=(?!=)", re.MULTILINE)
DEFINED = re.compile(r"^[ \t$]*(?:def[ \t]+)?([A-Za-z_]\w*)[ \t]*\([\w\s,\\]*\)[ \t]*[=:]", re.MULTILINE)
BEFORE = re.compile(r"[ \t]*(?:(?:assert|const|return)\b[ \t]*)?")  # what may stand in front of a formula
TOKEN = re.compile(r"\\([A-Za-z]+)|(\\.)|([A-Za-z]+)|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))|([ \t]+)|(==|.)")
DEEPEST = 40  # brackets inside each other: the reader recurses

SPACES = frozenset(
    ("left", "right", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr")
    + ("quad", "qquad", "displaystyle", "textstyle", "limits", "nolimits", "nonumber", "mathstrut")
    + (r"\,", r"\;", r"\:", r"\!", r"\ ", "$", r"\(", r"\)", r"\[", r"\]")
)
GREEK = frozenset(
    ("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa")
    + ("mu", "nu", "xi", "rho", "varrho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega")
    + ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega", "ell")
)
MATRICES = frozenset(("Sigma", "Lambda", "Omega", "Theta", "Phi", "Psi", "Xi"))  # Delta x is often a difference
FUNCTIONS = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "det", "max", "min")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan")},
    "ln": "log",
    "tr": "trace",
}
RECIPROCALS = {"sec": "cos", "csc": "sin", "cot": "tan"}
INVERSES = {"sin": "asin", "cos": "acos", "tan": "atan", "sinh": "asinh", "cosh": "acosh", "tanh": "atanh"}
SEVERAL = {"max": "maximum", "min": "minimum"}  # of two values
ALPHABETS = frozenset(("mathrm", "mathit", "mathsf", "mathtt", "mathcal", "text", "textrm", "operatorname"))
BOLD = frozenset(("mathbf", "boldsymbol", "bm", "vec"))
ACCENTS = {"hat": "hat", "bar": "bar", "tilde": "tilde", "dot": "dot", "overline": "bar", "widehat": "hat"}
LETTERS_T = (["\\top"], ["\\intercal"], ["T"], *([alphabet, "{", "T", "}"] for alphabet in ("\\mathsf", "\\mathrm")))
TRANSPOSES = (*LETTERS_T, *(["{", *tokens, "}"] for tokens in LETTERS_T))  # exponents that transpose
TIMES = {"*": "*", "cdot": "*", "times": "*", "ast": "*", "odot": "*", "circ": "*", "@": "@"}
OVER = {"/": "/", "div": "/"}
COMPARISONS = {
    "==": "==",
    "<": "<",
    ">": ">",
    "le": "<=",
    "leq": "<=",
    "ge": ">=",
    "geq": ">=",
    "neq": "!=",
    "ne": "!=",
}
PAIRS = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "lbrace": "rbrace"}
BARS = {"|": "|", "lvert": "rvert", "vert": "vert"}
NORMS = {r"\|": r"\|", "lVert": "rVert", "Vert": "Vert"}
CLOSING = frozenset((*PAIRS.values(), "rvert", "rVert", ",", ";", "=", "", *COMPARISONS, "+", "-"))
WORDS = frozenset((*TIMES, *OVER, *COMPARISONS, *PAIRS, *PAIRS.values(), *BARS, "rvert", *NORMS, "rVert"))
OFTEN_FUNCTIONS = frozenset(("f", "g", "h", "F", "G", "H", "sigma", "phi", "varphi", "psi", "Phi", "Psi", "Gamma"))
ELSEWHERE = {
    "partial": "write grad(y, x) for the derivative of y by x",
    "nabla": "write grad(y, x) for the gradient of y by x",
    "int": "integrals are not supported",
    "lim": "limits are not supported",
    "begin": "write a matrix as [[1, 2], [3, 4]]",
    "mathbb": "write what is meant: mean(x) for an expected value",
    "infty": "write inf in a line without LaTeX",
}

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly the text of a part is bound


class Part:
    """A translated part: its text, how tightly it binds, and what juxtaposition with it means."""

    __slots__ = ("bind", "matrix", "number", "text", "transposed")

    def __init__(
        self, text: str, bind: int = ATOM, *, matrix: bool = False, transposed: bool = False, number: bool = False
    ) -> None:
        self.text = text
        self.bind = bind
        self.matrix = matrix  # a product with what follows is a matrix product
        self.transposed = transposed
        self.number = number

    def within(self, bind: int) -> str:
        """The text where at least this binding is needed."""
        return self.text if self.bind >= bind else f"({self.text})"


def is_latex(line: str) -> bool:
    """Whether a line of a script is read as LaTeX."""
    return MATHEMATICS.search(STRING.sub("", line.partition("#")[0])) is not None


def translated(source: Source) -> Source:
    r"""Return a source whose LaTeX lines are written in the language of scripts.

    Raises GradcliError with the first problem of each line: GC138 for what the language does not have, GC139 for
    what has several readings, GC502 for brackets that are too deep.

    >>> translated(Source(r"\frac{1}{2} \|A x - b\|^2")).text
    '1/2*norm(A @ x - b)**2'
    """
    words = frozenset(ASSIGNED.findall(source.text))
    functions = frozenset(DEFINED.findall(source.text))
    problems: list[Diagnostic] = []
    lines = source.lines()
    offset = 0
    for number, line in enumerate(lines):
        if is_latex(line):
            formula, mark, comment = line.partition("#")
            before = BEFORE.match(formula)
            start = before.end() if before else 0
            end = len(formula.rstrip())
            try:
                text = Reader(source, formula[start:end], offset + start, words, functions).line()
                lines[number] = f"{formula[:start]}{text}{formula[end:]}{mark}{comment}"
            except GradcliError as error:
                problems += error.diagnostics
        offset += len(line)
    if problems:
        raise GradcliError(*problems)
    text = "".join(lines)
    return source if text == source.text else Source(text, source.name, source.path)


class Reader:
    """The tokens of one line and the place among them."""

    def __init__(
        self, source: Source, line: str, offset: int, words: frozenset[str], functions: frozenset[str]
    ) -> None:
        self.source = source
        self.offset = offset
        self.words = words  # names of several letters that the script assigns
        self.functions = functions
        self.depth = 0
        self.at = 0
        self.indices: dict[str, int] = {}  # bound by sums: what a subscript subtracts to count from 0
        self.opened: list[str] = []  # what closes each open bracket
        self.ranges: dict[str, str] = {}  # the number of turns of an index without bounds, found in the body
        self.names: list[str] = []
        self.starts: list[int] = []
        self.stops: list[int] = []
        for match in TOKEN.finditer(line):
            command, escaped, letters, number, space, other = match.groups()
            name = command or escaped or letters or number or other or ""
            if space or name in SPACES:
                continue
            single = (
                letters
                and letters not in words
                and not (line[match.end() : match.end() + 1] == "(" and len(letters) > 1)
            )
            for n, piece in enumerate(letters) if single else [(0, name)]:
                self.names.append("\\" + piece if command and piece not in WORDS else piece)
                self.starts.append(match.start() + n)
                self.stops.append(match.start() + n + 1 if single else match.end())
        self.names.append("")
        self.starts.append(len(line))
        self.stops.append(len(line))

    # errors -----------------------------------------------------------------------------------------------

    def error(
        self, code: str, message: str, first: int, last: int | None = None, help: str | None = None
    ) -> GradcliError:
        """The error about tokens `first` to `last`."""
        last = first if last is None else last
        start, end = self.offset + self.starts[first], self.offset + self.stops[last]
        return GradcliError(Diagnostic(code, message, self.source.span(start, end), (), help, source=self.source))

    def readings(self, what: str, first: int, last: int, *texts: str) -> GradcliError:
        """The error for what may be meant in several ways."""
        return self.error(
            "GC139",
            f"{what} has more than one reading",
            first,
            last,
            "write " + " or ".join(f"`{one}`" for one in texts),
        )

    def unexpected(self) -> GradcliError:
        """The error for the present token, which cannot stand here."""
        name = self.names[self.at]
        if name in ("^", "_"):
            return self.error("GC138", f"nothing comes before `{name}`", self.at)
        if not name or name in CLOSING:
            here = f"`{visible(name)}`" if name else "the end of the line"
            return self.error("GC138", f"a value is expected before {here}", self.at)
        command = name.removeprefix("\\")
        known = [*FUNCTIONS, *RECIPROCALS, *GREEK, "frac", "sqrt", "sum", "prod", "top", "cdot"]
        guess = did_you_mean(command, known) if name[0] == "\\" else None
        hint = ELSEWHERE.get(command) or (f"did you mean \\{guess}?" if guess else None)
        return self.error("GC138", f"`{visible(name)}` has no meaning here", self.at, help=hint)

    def open(self, closing: str) -> int:
        """Move past an opening bracket, which `closing` will close; return its place."""
        self.opened.append(closing)
        self.at += 1
        return self.at - 1

    def ends(self) -> bool:
        """Whether the present token ends a product; a bar does where it closes one."""
        name = self.names[self.at]
        return name in CLOSING or (bool(self.opened) and name == self.opened[-1])

    def expect(self, closing: str, opened: int) -> None:
        """Move past a closing bracket."""
        if self.names[self.at] != closing:
            shown = visible(self.names[opened])
            raise self.error("GC138", f"`{shown}` is never closed", opened, help=f"add `{visible(closing)}`")
        self.opened.pop()
        self.at += 1

    # statements -------------------------------------------------------------------------------------------

    def line(self) -> str:
        """The script text of the line."""
        equals = [k for k, name in enumerate(self.names) if name == "=" and not self.inside(k)]
        if len(equals) > 1:
            raise self.error(
                "GC138", "a line has at most one `=`", equals[1], help="give each equation a line of its own"
            )
        left = ""
        if equals:
            left = self.target(equals[0]) + " = "
            self.at = equals[0] + 1
        text = self.comparison().text
        if self.names[self.at] == ",":
            while self.names[self.at] == ",":
                self.at += 1
                text += f", {self.comparison().text}"
        if self.names[self.at]:
            raise self.unexpected()
        return left + text

    def inside(self, k: int) -> bool:
        """Whether token `k` stands in braces."""
        before = self.names[:k]
        return before.count("{") > before.count("}")

    def target(self, equals: int) -> str:
        """What stands on the left of an equals sign: a name, or a function with its parameters."""
        word = "".join(self.names[:equals])
        if re.fullmatch(r"[A-Za-z]\w+", word):
            self.at = equals
            return word
        text = self.name().text
        if self.names[self.at] == "(":
            text += f"({', '.join(self.arguments())})"
        if self.at != equals:
            raise self.error(
                "GC138", "the left side is not a name", 0, equals - 1, "write a name, or a function such as f(x)"
            )
        return text

    # expressions ------------------------------------------------------------------------------------------

    def comparison(self) -> Part:
        """sum [ comparison sum ]"""
        part = self.sum()
        while self.names[self.at] in COMPARISONS:
            sign = COMPARISONS[self.names[self.at]]
            self.at += 1
            part = Part(f"{part.text} {sign} {self.sum().text}", -1)
        return part

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
            part = Part(f"{part.text} {sign} {self.product().within(PRODUCT)}", SUM, matrix=part.matrix)
        return part

    def product(self) -> Part:
        """Factors with signs between them, or beside each other."""
        start = self.at
        left = self.factor()
        divided = False
        while True:
            name = self.names[self.at]
            if name in TIMES:
                self.at += 1
                right = self.factor()
                sign = "@" if name == "cdot" and (left.transposed or (left.matrix and right.matrix)) else TIMES[name]
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
                if right.transposed and not (right.matrix or left.matrix or left.transposed or left.number):
                    a, b = left.text, right.text.removesuffix(".T")
                    raise self.readings("this product", start, self.at - 1, f"outer({a}, {b})", f"{a} \\cdot {b}")
                sign = "@" if left.matrix or left.transposed else "*"
            space = " " if sign == "@" else ""
            text = f"{left.within(PRODUCT)}{space}{sign}{space}{right.within(POWER)}"
            row = left.transposed and not left.matrix
            if sign == "@":  # row @ matrix is a row, row @ column a number, matrix @ matrix a matrix
                left = Part(text, PRODUCT, matrix=right.matrix and not row, transposed=right.matrix and row)
            else:
                matrix, transposed = left.matrix or right.matrix, left.transposed or right.transposed
                left = Part(text, PRODUCT, matrix=matrix, transposed=transposed, number=left.number and right.number)

    def written(self, first: int, end: int) -> str:
        """The user's own text of tokens `first` up to `end`."""
        start = self.offset + self.starts[first]
        return self.source.text[start : self.offset + self.stops[end - 1]]

    def factor(self) -> Part:
        """An atom with its powers."""
        part = self.nested_atom()
        while self.names[self.at] == "^":
            self.at += 1
            part = self.power(part)
        if self.names[self.at] in ("'", "!"):
            what = {"'": "a prime", "!": "a factorial"}[self.names[self.at]]
            hint = "write grad(f(x), x) for the derivative" if what == "a prime" else "write gamma(n + 1)"
            raise self.error("GC138", f"{what} has no meaning here", self.at, help=hint)
        return part

    def power(self, base: Part) -> Part:
        """The base with the exponent at the present place."""
        first = self.at
        for tokens in TRANSPOSES:
            if self.names[first : first + len(tokens)] == tokens:
                self.at += len(tokens)
                return Part(f"{base.within(ATOM)}.T", matrix=base.matrix, transposed=True)
        exponent = self.argument()
        if base.matrix and base.bind == ATOM and exponent.number and exponent.text != "1":
            twice = f"{base.text} {base.text}", f"{base.text} \\odot {base.text}"
            raise self.readings("a power of a matrix", first - 1, self.at - 1, *twice)
        if exponent.text == "-1" and base.matrix:
            return Part(f"inv({base.text})", matrix=True)
        return Part(f"{base.within(ATOM)}**{exponent.within(POWER)}", POWER, number=base.number)

    def argument(self) -> Part:
        """What belongs to a command, `^` or `_`: a group in braces, or one token."""
        if self.names[self.at] == "{":
            return self.bracket()
        if len(self.names[self.at]) > 1 and self.names[self.at].isdigit():  # x^23 is x^2 3 in LaTeX
            one = self.names[self.at]
            raise self.readings(f"`^{one}` without braces", self.at, self.at, f"^{{{one}}}", f"^{one[0]} {one[1:]}")
        return self.nested_atom()

    def digit_or_argument(self) -> Part:
        r"""An argument; of a number without braces, only the first digit: \frac12 is one half."""
        name = self.names[self.at]
        if len(name) > 1 and name.isdigit():
            start = self.starts[self.at]
            self.names[self.at : self.at + 1] = name[0], name[1:]
            self.starts[self.at : self.at + 1] = start, start + 1
            self.stops.insert(self.at, start + 1)
        return self.argument()

    def bracket(self) -> Part:
        """A group in brackets, without the brackets."""
        closing = PAIRS[self.names[self.at]]
        opened = self.open(closing)
        part = self.comparison()
        self.expect(closing, opened)
        return part

    # atoms ------------------------------------------------------------------------------------------------

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
        if name in PAIRS:
            part = self.bracket()
            return Part(
                f"({part.text})" if part.bind < ATOM else part.text, matrix=part.matrix, transposed=part.transposed
            )
        if name in BARS or name in NORMS:
            return self.bars()
        command = name.removeprefix("\\") if name[:1] == "\\" else ""
        if command in ("frac", "dfrac", "tfrac"):
            return self.fraction()
        if command == "sqrt":
            return self.root()
        if command in ("sum", "prod"):
            return self.series()
        if command in FUNCTIONS or command in RECIPROCALS:
            return self.function(command)
        if command == "pi":
            self.at += 1
            return Part("pi", number=True)
        return self.name()

    def name(self) -> Part:
        """A letter, a Greek letter, a word in an alphabet or with an accent; with its subscript."""
        first = self.at
        name = self.names[first]
        command = name.removeprefix("\\") if name[:1] == "\\" else ""
        matrix = False
        if command in GREEK:
            text = command
            self.at += 1
        elif command == "lambda":  # a word of Python
            text = "λ"
            self.at += 1
        elif command in ALPHABETS or command in BOLD or command in ACCENTS:
            self.at += 1
            text = self.word()
            matrix = command in BOLD
            if command in ACCENTS:
                text += f"_{ACCENTS[command]}"
            if command in ALPHABETS and self.names[self.at] == "(":
                return self.call(FUNCTIONS.get(text, text))
        elif re.fullmatch(r"[A-Za-z]\w*", name):
            text = name
            self.at += 1
            if len(text) > 1 and text not in self.words and self.names[self.at] == "(":
                return self.call(text)
        else:
            raise self.unexpected()
        if self.names[self.at] == "_":
            self.at += 1
            return self.subscript(text, matrix)
        if text == "e" and self.names[self.at] == "^":
            self.at += 1
            return Part(f"exp({self.argument().text})")
        if self.names[self.at] == "(" and text in self.functions:
            return self.call(text)
        if self.names[self.at] == "(" and text in OFTEN_FUNCTIONS:
            hint = f"write `{visible(name)} \\cdot (..)` for a product; define a function by a line {text}(x) = .."
            raise self.error("GC139", f"`{visible(name)}(` may be a function or a product", first, self.at, hint)
        return Part(text, matrix=matrix or text in MATRICES or (len(text) == 1 and text.isupper()))

    def word(self) -> str:
        """The letters and digits in braces, or one letter."""
        if self.names[self.at] != "{":
            letter = self.names[self.at].removeprefix("\\")
            if not letter.isalpha():
                raise self.unexpected()
            self.at += 1
            return letter
        opened = self.open("}")
        text = ""
        while self.names[self.at] not in ("}", ""):
            text += self.names[self.at].removeprefix("\\")
            self.at += 1
        self.expect("}", opened)
        if not re.fullmatch(r"[A-Za-z]\w*", text):
            raise self.error("GC138", f"`{visible(text)}` is not a name", opened, self.at - 1)
        return text

    def subscript(self, text: str, matrix: bool) -> Part:
        """The name with its subscript: an entry where a sum binds the index, else a part of the name."""
        first = self.at
        group = self.names[first] == "{"
        end = first + 1
        if group:
            while self.names[end] not in ("}", ""):
                end += 1
        inner = self.names[first + group : end]
        if not self.indices.keys() & set(inner):
            suffix = "".join(piece.removeprefix("\\") for piece in inner)
            if not re.fullmatch(r"\w+", suffix):
                raise self.error("GC138", f"`{visible(suffix)}` is not part of a name", first, max(first, end - 1))
            self.at = end + group
            name = f"{text}_{suffix}"
            return (
                self.call(name) if self.names[self.at] == "(" and name in self.functions else Part(name, matrix=matrix)
            )
        if not group:
            self.at = end
            slots = [self.slot(text, 0, inner[0])]
            return Part(f"{text}[{slots[0]}]")
        self.at = first + 1
        slots = []
        while self.names[self.at] != "}":
            if self.names[self.at] == ",":
                self.at += 1
                continue
            here = self.at
            if self.names[here + 1] in ("+", "-"):
                part = self.sum()
                shift = max((self.indices.get(one, 0) for one in self.names[here : self.at]), default=0)
                slots.append(f"{part.text} - {shift}" if shift else part.text)
            else:
                piece = self.names[here]
                self.at += 1
                slots.append(self.slot(text, len(slots), piece))
        self.at += 1
        return Part(f"{text}[{', '.join(slots)}]")

    def slot(self, array: str, axis: int, index: str) -> str:
        """One index of an entry, counted from 0."""
        if index not in self.indices:
            return str(int(index) - 1) if index.isdigit() else index
        if self.indices[index] < 0:  # the index has no bounds: it runs over this axis
            self.ranges.setdefault(index, f"len({array})" if axis == 0 else f"shape({array})[{axis}]")
            return index
        return f"{index} - {self.indices[index]}" if self.indices[index] else index

    def call(self, name: str) -> Part:
        """A function and its arguments in brackets."""
        return Part(f"{name}({', '.join(self.arguments())})")

    def arguments(self) -> list[str]:
        """The values between brackets, separated by commas."""
        closing = PAIRS[self.names[self.at]]
        opened = self.open(closing)
        found = [self.comparison().text]
        while self.names[self.at] == ",":
            self.at += 1
            found.append(self.comparison().text)
        self.expect(closing, opened)
        return found

    # commands ---------------------------------------------------------------------------------------------

    def fraction(self) -> Part:
        r"""\frac{a}{b}"""
        first = self.at
        self.at += 1
        above = self.names[self.at : self.at + 2]
        if above in (["{", "d"], ["{", "\\partial"]) and "}" in self.names[self.at :]:
            below = self.names.index("}", self.at) + 1
            if self.names[below : below + 2] == above:
                hint = "write grad(y, x) for the derivative of y by x"
                raise self.error("GC138", "a derivative is not a fraction here", first, below, hint)
        top, bottom = self.digit_or_argument(), self.digit_or_argument()
        number = top.number and bottom.number
        return Part(f"{top.within(PRODUCT)}/{bottom.within(ATOM)}", PRODUCT, matrix=top.matrix, number=number)

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
        closing = (BARS | NORMS)[mark]
        opened = self.open(closing)
        part = self.comparison()
        self.expect(closing, opened)
        if mark in BARS:
            if part.matrix:
                raise self.readings(
                    "a matrix between bars", opened, self.at - 1, rf"\det({part.text})", f"abs({part.text})"
                )
            return Part(f"abs({part.text})")
        kind = "2"
        if self.names[self.at] == "_":
            group = self.names[self.at + 1] == "{"
            kind = self.names[self.at + 1 + group]
            self.at += 2 + group
            if group:
                self.opened.append("}")
                self.expect("}", self.at - 2)
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
        name = FUNCTIONS.get(command, "")
        self.at += 1
        exponent = ""
        while self.names[self.at] in ("^", "_"):
            mark = self.names[self.at]
            self.at += 1
            value = self.argument()
            if mark == "_":
                if name != "log" or value.text not in ("2", "10"):
                    raise self.error(
                        "GC138", f"`\\{command}` has no subscript `{visible(value.text)}`", first, self.at - 1
                    )
                name = f"log{value.text}"
            elif value.text == "-1":
                inverse = INVERSES.get(command, "")
                one = f"\\arc{command}" if inverse and not command.endswith("h") else f"\\mathrm{{{inverse}}}"
                raise self.readings(f"`\\{command}^{{-1}}`", first, self.at - 1, one, f"\\frac{{1}}{{\\{command} ..}}")
            else:
                exponent = f"**{value.within(POWER)}"
        if self.names[self.at] in ("(", "{", "["):
            values = self.arguments()
        else:
            values = [self.bare(first)]
        if command in RECIPROCALS:
            return Part(f"1/{RECIPROCALS[command]}({values[0]}){exponent}", PRODUCT)
        text = f"{SEVERAL.get(name, name) if len(values) > 1 else name}({', '.join(values)})"
        return Part(text + exponent, POWER if exponent else ATOM)

    def bare(self, first: int) -> str:
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
        return inside

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
                high = self.argument().within(PRODUCT)
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
                self.expect("}", opened)
            if not re.fullmatch(r"[A-Za-z]", index):
                raise self.error("GC138", "the index of a sum is one letter", opened, self.at - 1)
        if not index:
            part = self.product()
            return Part(f"{word}({part.text})")
        if bool(low) != bool(high):
            raise self.error("GC138", "a sum has both bounds or none", first, self.at - 1, "write \\sum_{i=1}^{n}")
        outer = self.indices.get(index)
        self.indices[index] = -1 if not low else int(low) if low in ("0", "1") else 1
        body = self.product()
        if low:
            stop = f"{high} + 1" if not high.isdigit() else str(int(high) + 1)
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
        if word == "prod":
            return Part(f"prod([{body.text} for {index} in range({span})])")
        return Part(f"sum({body.text} for {index} in range({span}))")
