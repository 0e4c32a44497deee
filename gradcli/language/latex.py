r"""LaTeX formulas, translated line by line into the language of scripts.

A line with a LaTeX command, with braces behind `^` or `_`, or between dollar signs is read as mathematics: letters
beside each other are a product, and `\frac`, `\sqrt`, `\sum`, norms and Greek letters have their usual meaning.
`A x` and `x^\top y` are matrix products: the left factor is a capital or bold letter, transposed, or an inverse.
Where no part of the script has to be an array, capital letters are numbers, as in `G \frac{m M}{r^2}`. A derivative
on the left of an equation makes a claim. What has more than one usual reading is refused, with the readings. The
translation has the same lines as the source, so that later errors, which quote the translation, name the right line.
"""

from __future__ import annotations

import re

from gradcli.diagnostics import Diagnostic, GradcliError, did_you_mean, visible
from gradcli.language.source import LINE_END, Source
from gradcli.records import NamedTuple

MATHEMATICS = re.compile(r"\\[A-Za-z,;:!|{}()\[\]]|\$[^$]+\$|[\^_][ \t]*\{")
STRING = re.compile(r"\"[^\"\r\n]*\"|'[^'\r\n]*'")
ASSIGNED = re.compile(r"^[ \t]*(?:const[ \t]+)?([A-Za-z_]\w+)[ \t]*(?:\[[^\]\r\n]*\][ \t]*)?=(?!=)", re.MULTILINE)
DEFINED = re.compile(
    r"^[ \t$]*(?:def[ \t]+|\\begin\{\w+\*?\}\s*)?([A-Za-z_]\w*)[ \t]*\([\w\s,\\]*\)[ \t]*&?[=:]", re.MULTILINE
)
BEFORE = re.compile(r"[ \t]*(?:(?:assert|const|return)\b[ \t]*)?")  # what may stand in front of a formula
TOKEN = re.compile(
    r"(\\(?:begin|end)\{[a-z]+\*?\})|(?!\\(?:label|tag)\*?\{)(?:\\([A-Za-z]+)|(\\.))|([A-Za-zα-ωΑ-Ω]+)"
    r"|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))|(\s+|\\(?:label|tag)\*?\{[^{}]*\})|(==|.)"
)
# what only arrays have: transposes, norms, bold letters, traces, determinants, inverses, and A x, W x or X w
ARRAYS = re.compile(
    r"\\(?:top|intercal|[lV]Vert|Vert|\||mathbf|bm|boldsymbol|vec|tr|det|odot|begin\{[pb]?matrix)|\|\||[@ᵀ]|\.T\b"
    r"|\^(?:T|\{(?:T|-T|\\math\w+ ?\{?T\}?|\\text\{T\})\})|[A-Z]\^\{-1\}|(?:Tr|tr|softmax|norm|trace)\b"
    r"|(?<![A-Za-z\\])(?:[AWX](?:_\w|_\{\w+\})?) ?(?:[a-z](?![A-Za-z(^])|\\(?:beta|theta)\b)"
)
ENVIRONMENT = re.compile(r"\\begin\{([a-z]+\*?)\}")
EQUATIONS = frozenset(("equation", "align", "aligned", "gather", "gathered", "split", "multline", "eqnarray"))
MATRIX_ENVIRONMENTS = {"matrix": "", "pmatrix": "", "bmatrix": "", "vmatrix": "det"}
DEEPEST = 40  # brackets inside each other: the reader recurses

SPACES = frozenset(
    ("left", "right", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr")
    + ("quad", "qquad", "displaystyle", "textstyle", "limits", "nolimits", "nonumber", "notag", "mathstrut")
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
    **{f"ar{name}": f"a{name}" for name in ("sinh", "cosh", "tanh")},
    "ln": "log",
    "tr": "trace",
    "Tr": "trace",
    "sgn": "sign",
    "LSE": "logsumexp",
    **{name: name.lower() for name in ("ReLU", "GELU", "ELU", "SELU", "SiLU", "Softmax", "Sigmoid", "Var", "Diag")},
}
RECIPROCALS = {"sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh"}
INVERSES = {"sin": "asin", "cos": "acos", "tan": "atan", "sinh": "asinh", "cosh": "acosh", "tanh": "atanh"}
SEVERAL = {"max": "maximum", "min": "minimum"}  # of two values
ALPHABETS = frozenset(("mathrm", "mathit", "mathsf", "mathtt", "mathcal", "text", "textrm", "operatorname"))
BOLD = frozenset(("mathbf", "boldsymbol", "bm", "vec"))
ACCENTS = {
    "hat": "hat",
    "bar": "bar",
    "tilde": "tilde",
    "dot": "dot",
    "ddot": "ddot",
    "overline": "bar",
    "widehat": "hat",
}
UPRIGHT = ("\\mathsf", "\\mathrm", "\\text", "\\textsf")
LETTERS_T = (
    *(["\\top"], ["\\intercal"], ["T"]),
    *([alphabet, *tokens] for alphabet in UPRIGHT for tokens in (["T"], ["{", "T", "}"])),
)
TRANSPOSES = (*LETTERS_T, *(["{", *tokens, "}"] for tokens in LETTERS_T))  # exponents that transpose
INVERSE_TRANSPOSES = tuple(["{", "-", *tokens, "}"] for tokens in LETTERS_T)
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
BREAKS = (r"\\", ";")  # between statements
BARS = {"|": "|", "lvert": "rvert", "vert": "vert"}
NORMS = {r"\|": r"\|", "lVert": "rVert", "Vert": "Vert"}
ROUNDED = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
CLOSING = frozenset((*PAIRS.values(), "rvert", "rVert", ",", ";", "=", "", *COMPARISONS, "+", "-", "&", r"\\"))
CLOSING |= {"rangle", *(closing for closing, _ in ROUNDED.values())}
WORDS = frozenset((*TIMES, *OVER, *COMPARISONS, *PAIRS, *PAIRS.values(), *BARS, "rvert", *NORMS, "rVert"))
WORDS |= {"langle", "rangle", *ROUNDED, *(closing for closing, _ in ROUNDED.values())}
OFTEN_FUNCTIONS = frozenset(("f", "g", "h", "F", "G", "H", "sigma", "phi", "varphi", "psi", "Phi", "Psi", "Gamma"))
SOMETIMES_FUNCTIONS = frozenset(
    ("N", "P", "J", "L", "p", "q", "u", "ell")
)  # in front of a bracket that holds names: p(x), but p(1 - p) is a product
MATRIX_VALUED = frozenset(("diag", "outer", "kron", "eye", "inv", "expm"))
ENTRYWISE = frozenset(("exp", "log", "sin", "cos", "tanh", "softmax", "log_softmax", "relu", "sigmoid", "gelu", "silu"))
INDEX_LETTERS = frozenset("ijklmnpqrst")
ELSEWHERE = {
    **dict.fromkeys(("arg", "argmin", "argmax"), "write the function alone; `gradcli grad` differentiates it"),
    "partial": "write \\frac{\\partial y}{\\partial x}, or grad(y, x) in a line without LaTeX",
    "nabla": "write \\nabla_x y, or grad(y, x) in a line without LaTeX",
    "int": "integrals are not supported",
    "lim": "limits are not supported",
    "mathbb": "write what is meant: mean(x) for an expected value",
    "infty": "a sum needs a finite bound; write inf in a line without LaTeX",
    "prime": "write grad(f(x), x) for a derivative, in a line without LaTeX",
    "mid": "write a function of both, such as p(x, y)",
    "otimes": "write \\mathrm{kron}(A, B) or \\mathrm{outer}(x, y)",
    "approx": "write = or ==",
    "pm": "write + or -",
    "in": "write a domain in a line without LaTeX: x in (0, 1)",
    "to": "limits are not supported",
    "dagger": "write x^\\top for a transpose",
    **dict.fromkeys(("dots", "ldots", "cdots"), "write every term, or \\sum_{i=1}^{n}"),
}

SIDES = "write a name, a function such as f(x), or a derivative such as \\frac{\\partial f}{\\partial x}"

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly the text of a part is bound


class Part(NamedTuple):
    """A translated part: its text, how tightly it binds, and what juxtaposition with it means."""

    text: str
    bind: int = ATOM
    matrix: bool = False  # a product with what follows is a matrix product
    transposed: bool = False
    number: bool = False
    capital: bool = False  # a letter, perhaps behind a number, that may stand for a matrix
    column: bool = False  # a bold vector: in front of a transposed one it makes a matrix

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
    offset, done = 0, 0
    for number, line in enumerate(source.lines()):
        if number >= done and is_latex(line):
            done = environment_end(lines, number)
            formula, mark, comment = "".join(lines[number:done]).partition("#")
            before = BEFORE.match(formula)
            start = before.end() if before else 0
            end = len(formula.rstrip())
            try:
                text = Reader(source, formula[start:end], offset + start, words, functions).line()
                ends = "".join(LINE_END.findall(formula[start:end]))  # of an environment
                lines[number:done] = [
                    f"{formula[:start]}{text}{ends}{formula[end:]}{mark}{comment}",
                    *[""] * (done - number - 1),
                ]
            except GradcliError as error:
                problems += error.diagnostics
        offset += len(line)
    if problems:
        raise GradcliError(*problems)
    text = "".join(lines)
    return source if text == source.text else Source(text, source.name, source.path)


def environment_end(lines: list[str], number: int) -> int:
    r"""The number of the line behind the environments that begin in a line: behind it, where none goes on."""
    text = lines[number].partition("#")[0]
    stop = number + 1
    while stop < len(lines) and text.count(r"\begin{") > text.count(r"\end{"):
        text += lines[stop]
        stop += 1
    return stop


class Reader:
    """The tokens of one line and the place among them."""

    def __init__(
        self, source: Source, line: str, offset: int, words: frozenset[str], functions: frozenset[str]
    ) -> None:
        self.source = source
        self.offset = offset
        self.words = words  # names of several letters that the script assigns
        self.functions = functions
        self.arrays = ARRAYS.search(source.text) is not None
        self.entries: set[str] = set()  # arrays whose entries stand in a sum
        self.entry_like: dict[str, tuple[str, int]] = {}  # names with a subscript: the array, and the token
        self.alone = False  # whether a bracket behind the name that is read belongs to something else
        self.depth = 0
        self.at = 0
        self.indices: dict[str, int] = {}  # bound by sums: what a subscript subtracts to count from 0
        self.opened: list[str] = []  # what closes each open bracket
        self.ranges: dict[str, str] = {}  # the number of turns of an index without bounds, found in the body
        self.names: list[str] = []
        self.starts: list[int] = []
        self.stops: list[int] = []
        aligned: list[bool] = []
        for match in TOKEN.finditer(line):
            bounds, command, escaped, letters, number, space, other = match.groups()
            name = bounds or command or escaped or letters or number or other or ""
            if bounds:
                equations = bounds.partition("{")[2].rstrip("*}") in EQUATIONS
                if bounds.startswith(r"\begin"):
                    aligned.append(equations)
                elif aligned:
                    aligned.pop()
            if space or name in SPACES or (bounds and equations) or (name == "&" and aligned and aligned[-1]):
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
        for k in range(len(self.names) - 4):  # \mathrm{d}x is dx
            if self.names[k : k + 4] == ["\\mathrm", "{", "d", "}"] and self.names[k + 4].isalpha():
                self.names[k : k + 4] = ["\\partial"]
                self.starts[k : k + 4] = [self.starts[k]]
                self.stops[k : k + 4] = [self.stops[k + 3]]
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
        if name.startswith((r"\begin", r"\end")):
            read = "write a matrix as [[1, 2], [3, 4]]; cases, align and matrix environments are read"
            return self.error("GC138", f"`{visible(name)}` has no meaning here", self.at, help=read)
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
        return name in CLOSING or name.startswith(r"\end") or (bool(self.opened) and name == self.opened[-1])

    def expect(self, closing: str, opened: int) -> None:
        """Move past a closing bracket."""
        if self.names[self.at] != closing:
            shown = visible(self.names[opened])
            raise self.error("GC138", f"`{shown}` is never closed", opened, help=f"add `{visible(closing)}`")
        self.opened.pop()
        self.at += 1

    # statements -------------------------------------------------------------------------------------------

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
            depth += self.names[end].startswith(r"\begin") - self.names[end].startswith(r"\end")
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
        self.alone = True
        text = self.name().text
        self.alone = False
        if self.names[self.at] == "^":
            self.at += 1
            self.marked()
        if self.names[self.at] == "(":
            text += f"({', '.join(part.text for part in self.arguments())})"
        return text

    def marked(self) -> None:
        """Refuse exponents that are marks: x^{(i)}, a^{[l]}, x^*."""
        first = self.at
        group = self.names[first] == "{"
        if group and self.names[first + 1] in ("(", "["):
            end = first
            while self.names[end] not in ("}", ""):
                end += 1
            inner = "".join(self.names[first + 2 : end - 1]).replace("\\", "")
            one = inner if re.fullmatch(r"\w+", inner) else "1"
            base = self.names[first - 2].removeprefix("\\")
            raise self.readings("a superscript in brackets", first - 1, end, f"{base}_{one}", f"{base}^{{{inner}}}")
        if self.names[first + group] in ("*", "\\ast", "\\star"):
            hint = "write a name such as `\\mathrm{x_star}`"
            raise self.error("GC138", "a name has no star", first - 1, first + group, hint)

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
            term = self.product()
            first, second = part.text.rpartition("*")[2] == "I", term.text.rpartition("*")[2] == "I"
            if (part.matrix and second) or (first and term.matrix):
                raise self.readings("`I` beside a matrix", self.at - 1, self.at - 1, r"\mathrm{eye}(n)", r"\mathrm{I}")
            part = Part(f"{part.text} {sign} {term.within(PRODUCT)}", SUM, matrix=part.matrix)
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
                if name == "times" and left.matrix and right.matrix:
                    if left.capital or right.capital or left.bind < ATOM or right.bind < ATOM:
                        a, b = left.text, right.text
                        raise self.readings(r"`\times`", sign_at, sign_at, f"{a} {b}", rf"{a} \odot {b}")
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
                if right.transposed and not (right.matrix or left.matrix or left.transposed or left.number):
                    a, b = left.text, right.text.removesuffix(".T")
                    raise self.readings("this product", start, self.at - 1, f"outer({a}, {b})", f"{a} \\cdot {b}")
                if left.capital and not left.matrix and re.fullmatch("[a-z]", right.text):
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

    def written(self, first: int, end: int) -> str:
        """The user's own text of tokens `first` up to `end`."""
        start = self.offset + self.starts[first]
        return self.source.text[start : self.offset + self.stops[end - 1]]

    def factor(self) -> Part:
        """An atom with its powers."""
        first = self.at
        part = self.nested_atom()
        while self.names[self.at] == "^":
            self.at += 1
            part = self.power(part)
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
            hint = "write grad(f(x), x) for the derivative"
            raise self.error("GC138", "a prime has no meaning here", self.at, help=hint)
        return part

    def power(self, base: Part) -> Part:
        """The base with the exponent at the present place."""
        first = self.at
        for tokens in TRANSPOSES:
            if self.names[first : first + len(tokens)] == tokens:
                self.at += len(tokens)
                return Part(f"{base.within(ATOM)}.T", matrix=base.matrix, transposed=True, column=base.column)
        for tokens in INVERSE_TRANSPOSES:
            if self.names[first : first + len(tokens)] == tokens:
                self.at += len(tokens)
                return Part(f"inv({base.text}).T", matrix=True)
        self.marked()
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
        self.alone = self.names[self.at + 1 : self.at + 2] == ["("] and len(self.names[self.at]) == 1
        part = self.nested_atom()
        self.alone = False
        return part

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
        if name in ROUNDED:
            closing, function = ROUNDED[name]
            opened = self.open(closing)
            part = self.comparison()
            self.expect(closing, opened)
            return Part(f"{function}({part.text})")
        if name == "langle":
            opened = self.open("rangle")
            left = self.comparison()
            self.expect_comma()
            right = self.comparison()
            self.expect("rangle", opened)
            return Part(f"sum({left.within(POWER)}*{right.within(POWER)})")
        if environment := ENVIRONMENT.fullmatch(name):
            if environment[1] == "cases":
                return self.cases()
            if environment[1] in MATRIX_ENVIRONMENTS:
                return self.matrix(MATRIX_ENVIRONMENTS[environment[1]])
        command = name.removeprefix("\\") if name[:1] == "\\" else ""
        if command in ("frac", "dfrac", "tfrac"):
            return self.fraction()
        if command in ("binom", "dbinom", "tbinom"):
            self.at += 1
            n, k = self.argument(), self.argument()
            rest = f"factorial({n.text} - {k.within(PRODUCT)})"
            return Part(f"factorial({n.text})/(factorial({k.text})*{rest})", PRODUCT)
        if command == "nabla" and self.names[self.at + 1] == "_":
            self.at += 2
            leaf = self.argument().text
            return Part(f"grad({self.factor().text}, {leaf})")
        if command == "sqrt":
            return self.root()
        if command in ("sum", "prod"):
            return self.series()
        if command in FUNCTIONS or command in RECIPROCALS:
            return self.function(command)
        if command == "pi" or self.names[self.at] == "π":
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
            text, matrix = self.word()
            matrix = matrix or command in BOLD
            if command in ACCENTS:
                text += f"_{ACCENTS[command]}"
            if command in ALPHABETS and (text in FUNCTIONS or text in RECIPROCALS or command == "operatorname"):
                self.at -= 1
                return self.function(text)
            if command in ALPHABETS and self.names[self.at] == "(":
                return self.call(text)
        elif re.fullmatch(r"[A-Za-zα-ωΑ-Ω]\w*", name):
            text = name
            self.at += 1
            if len(text) > 1 and text not in self.words and self.names[self.at] == "(":
                return self.call(text)
        else:
            raise self.unexpected()
        if self.names[self.at] == "_":
            self.at += 1
            part = self.subscript(text, matrix)
            if part.text[-1] not in ")]" and self.may_be_called(text):
                raise self.call_or_product(first, part.text)
            return part
        if text == "e" and self.names[self.at] == "^":
            self.at += 1
            return Part(f"exp({self.argument().text})")
        if self.names[self.at] == "(" and text in self.functions:
            return self.call(text)
        if self.may_be_called(text):
            raise self.call_or_product(first, text)
        capital = text in MATRICES or (len(text) == 1 and text.isupper())
        column = matrix and text.islower()
        return Part(text, matrix=matrix or (capital and self.arrays), capital=capital, column=column)

    def may_be_called(self, name: str) -> bool:
        """Whether a letter in front of a bracket is often a function."""
        here = self.names[self.at : self.at + 3]
        if here[:1] != ["("] or self.alone:
            return False
        letter = here[1:2] != [""] and here[1].removeprefix("\\").isalpha()
        return name in OFTEN_FUNCTIONS or (
            name in SOMETIMES_FUNCTIONS and letter and here[2:] in ([")"], [","], ["_"], ["|"], ["\\mid"])
        )

    def call_or_product(self, first: int, name: str) -> GradcliError:
        """The error for a letter that is often a function, in front of a bracket."""
        shown = visible(self.written(first, self.at))
        hint = f"write `{shown} \\cdot (..)` for a product; define a function by a line {name}(x) = .."
        return self.error("GC139", f"`{shown}(` may be a function or a product", first, self.at, hint)

    def word(self) -> tuple[str, bool]:
        """The letters and digits in braces, or one letter; and whether a part of them is bold."""
        if self.names[self.at] != "{":
            letter = self.names[self.at].removeprefix("\\")
            if not letter.isalpha():
                raise self.unexpected()
            self.at += 1
            return letter, False
        opened = self.open("}")
        text, bold = "", False
        while self.names[self.at] not in ("}", ""):
            command = self.names[self.at].removeprefix("\\")
            self.at += 1
            if command in ACCENTS or command in BOLD or command in ALPHABETS:
                inner, inside = self.word()
                text += inner + (f"_{ACCENTS[command]}" if command in ACCENTS else "")
                bold = bold or inside or command in BOLD
            else:
                text += command
        self.expect("}", opened)
        if not re.fullmatch(r"[A-Za-z]\w*", text):
            hint = r"write `\mathrm{ones}(n)` for a vector of ones" if text == "1" else None
            raise self.error("GC138", f"`{visible(text)}` is not a name", opened, self.at - 1, hint)
        return text, bold

    def subscript(self, text: str, matrix: bool) -> Part:
        """The name with its subscript: an entry where a sum binds the index, else a part of the name."""
        first = self.at
        group = self.names[first] == "{"
        end = first + 1
        if group:
            nested = 0
            while self.names[end] and (nested or self.names[end] != "}"):
                nested += (self.names[end] == "{") - (self.names[end] == "}")
                end += 1
        inner = [
            name
            for name in self.names[first + group : end]
            if name not in ("{", "}") and name.removeprefix("\\") not in ALPHABETS
        ]
        if not self.indices.keys() & set(inner):
            suffix = "".join(piece.removeprefix("\\") for piece in inner)
            if not re.fullmatch(r"\w+", suffix):
                hint = "write a letter, a number or a word, such as `h_0` or `h_{prev}`"
                raise self.error(
                    "GC138", f"`{visible(suffix)}` is not part of a name", first, max(first, end - 1), hint
                )
            self.at = end + group
            name = f"{text}_{suffix}"
            if self.names[self.at] == "(" and name in self.functions:
                return self.call(name)
            if suffix in SEVERAL and self.names[self.at] == "(":  # an eigenvalue of a matrix
                shown = visible(self.written(first - 2, self.at))
                hint = f"write `{suffix}(eigvalsh(A))` in a line without LaTeX, or `{shown} \\cdot (..)` for a product"
                raise self.error("GC139", f"`{shown}(` may be a function or a product", first - 2, self.at, hint)
            if suffix.isdigit() or set(suffix) <= INDEX_LETTERS:
                self.entry_like.setdefault(name, (text, first))
            capital = len(text) == 1 and text.isupper() and not set(suffix) <= INDEX_LETTERS
            column = matrix and text.islower()
            return Part(name, matrix=matrix or (capital and self.arrays), capital=capital, column=column)
        self.entries.add(text)
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
                slots.append(less(part.text, shift))
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
        values = self.arguments()
        text = f"{name}({', '.join(value.text for value in values)})"
        return Part(text, matrix=name in MATRIX_VALUED or (name in ENTRYWISE and values[0].matrix))

    def arguments(self) -> list[Part]:
        """The values between brackets, separated by commas."""
        closing = PAIRS[self.names[self.at]]
        opened = self.open(closing)
        values = [self.comparison()]
        while self.names[self.at] == ",":
            self.at += 1
            values.append(self.comparison())
        self.expect(closing, opened)
        return values

    def expect_comma(self) -> None:
        """Move past a comma."""
        if self.names[self.at] != ",":
            raise self.error("GC138", "a comma is expected", self.at, help="write two values between the brackets")
        self.at += 1

    # commands ---------------------------------------------------------------------------------------------

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
        stop = self.names.index("}", self.at) if "}" in self.names[self.at :] else self.at
        if self.names[stop + 1 : stop + 3] != ["{", sign]:
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

    def step(self) -> bool:
        """Move past a token."""
        self.at += 1
        return True

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
                if self.names[self.at] != r"\\" and not self.names[self.at].startswith(r"\end"):
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
            if part.matrix or part.capital:
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
        exponent, base = "", ""
        name = name or (command if command not in RECIPROCALS else "")
        while self.names[self.at] in ("^", "_"):
            mark = self.names[self.at]
            self.at += 1
            value = self.argument()
            if mark == "_":
                if name != "log":
                    hint = (
                        f"write the function alone, or `\\{name}(x)` of the entries of x" if name in SEVERAL else None
                    )
                    problem = f"`\\{command}` has no subscript `{visible(value.text)}`"
                    raise self.error("GC138", problem, first, self.at - 1, hint)
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
        text = f"{SEVERAL.get(name, name) if len(values) > 1 else name}({', '.join(one.text for one in values)})"
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
                    raise self.error("GC138", "the index of a sum runs between two numbers", opened, self.at, hint)
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
        if word == "prod":
            return Part(f"prod([{body.text} for {index} in range({span})])")
        return Part(f"sum({body.text} for {index} in range({span}))")


def less(index: str, shift: int) -> str:
    """The text of an index minus a number: of i + 1 and 1 it is i."""
    plain = index.removesuffix(f" + {shift}")
    return plain if plain != index else f"{index} - {shift}" if shift else index


def complementary(one: str, other: str) -> bool:
    """Whether two conditions are each other's opposite: x > 0 and x <= 0."""
    opposite = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
    turned = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
    a, b = one.split(" "), other.split(" ")
    if len(a) != 3 or len(b) != 3 or a[1] not in opposite:
        return False
    return b in ([a[0], opposite[a[1]], a[2]], [a[2], turned[opposite[a[1]]], a[0]])
