"""Tokens of a line of LaTeX, the place among them, and the errors about them."""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic, GradcliError, did_you_mean, visible
from gradcli.base.records import NamedTuple
from gradcli.language.latex.latex_commands import (
    BARS,
    BLACKBOARD,
    CLOSING,
    ELSEWHERE,
    EQUATIONS,
    EXPECTED,
    FUNCTIONS,
    GREEK,
    NORMS,
    RECIPROCALS,
    SPACES,
    WITH_WORDS,
    WORDS,
)
from gradcli.language.notation import ATOM
from gradcli.language.source import Source

# bounds of an environment, an escaped sign, a command, letters, a number, space, any other sign
TOKEN = re.compile(
    r"(\\(?:begin|end)\{[a-z]+\*?\})|(?!\\(?:label|tag)\*?\{)"
    r"(?:(\\(?:left|right)\.|\\[^A-Za-z])|\\([A-Za-z]+)(?:(?<=operatorname)\*)?)"
    r"|([A-Za-zα-ωΑ-Ω]+)|([0-9]+(?:\{,\}[0-9]{3})*(?:\.(?:[0-9]+|(?!\s*$)))?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(\s+|\\(?:label|tag)\*?\{[^{}]*\})|(==|\|\||.)"
)
# what only arrays have: transposes, norms, traces, determinants, inverses; A x, W x, X w; a capital before a bold one
ARRAYS = re.compile(
    r"\\(?:top|intercal|[lV]Vert|Vert|\||tr|det|odot|begin\{[pb]?matrix)|\|\||[@ᵀ]|\.T\b"
    r"|\^(?:T|\{(?:T|-T|\\math\w+ ?\{?T\}?|\\text\{T\})\})|[A-Z]\^\{-1\}|(?:Tr|tr|softmax|norm|trace)\b"
    r"|(?<![A-Za-z\\])(?:[AWX](?:_\w|_\{\w+\})?) ?(?:[a-z](?![A-Za-z(^])|\\(?:beta|theta)\b)"
    r"|[A-Z] ?\\(?:mathbf|bm|boldsymbol|vec)\b"
)
VECTOR = re.compile(r"(?:\\\||\|\||\\lVert|\\Vert) ?([a-z]) ?(?=\\\||\|\||\\[rV]|\\right)")  # x in \|x\|
BOUND = re.compile(r"\\(?:sum|prod)\s*_\s*\{[^{}]*\}\s*\^\s*\{?\s*([A-Za-z])(?![A-Za-z])")  # n in \sum_{i=1}^n


class TranslatedPart(NamedTuple):
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


class LatexTokens:
    """The tokens of a line, the place `at` among them, and what the formulas read so far have bound and used.

    `words` are names of several letters that the script assigns, and `functions` those that it defines; `context` is
    the text that shows what its letters are.
    """

    def __init__(
        self, source: Source, line: str, offset: int, words: frozenset[str], functions: frozenset[str], context: str
    ) -> None:
        self.source = source
        self.context = context
        self.claim = context != source.text  # whether the line is about a script
        self.offset = offset
        self.words = words
        self.functions = functions
        self.vectors = frozenset(VECTOR.findall(context))
        self.numbers = frozenset(BOUND.findall(context))
        own = ARRAYS.findall(BOUND.sub("", source.text))
        if self.claim:  # A x alone makes no arrays of the numbers of its script
            own = [array for array in own if array[0] not in "AWX" or "^" in array]
            own += ARRAYS.findall(BOUND.sub("", context.removesuffix(source.text)))
        self.arrays = any(array[0] not in "AWX" or array[-1] not in self.numbers for array in own)
        self.matrices: frozenset[str] = frozenset()  # names that have two indices in the script of a claim
        self.outer = False  # whether x^\top behind a vector is the row of a matrix, as in a claim about a matrix
        self.entries: set[str] = set()  # arrays whose entries stand in a sum
        self.entry_like: dict[str, tuple[str, int]] = {}  # names with a subscript: the array, and the token
        self.alone = False  # whether a bracket behind the name that is read belongs to something else
        self.depth = 0
        self.at = 0
        self.indices: dict[str, int] = {}  # bound by sums: what a subscript subtracts to count from 0
        self.opened: list[str] = []  # what closes each open bracket
        self.bound: set[str] = set()  # all indices of sums in the line
        self.ranges: dict[str, str] = {}  # the number of iterations of an index without bounds, found in the body
        self.names: list[str] = []
        self.starts: list[int] = []
        self.stops: list[int] = []
        aligned: list[bool] = []
        for match in TOKEN.finditer(line):
            bounds, escaped, command, letters, number, space, other = match.groups()
            name = bounds or command or escaped or letters or (number or "").replace("{,}", "") or other or ""
            if bounds:
                equations = bounds.partition("{")[2].rstrip("*}") in EQUATIONS
                if bounds.startswith(r"\begin"):
                    aligned.append(equations)
                elif aligned:
                    aligned.pop()
            beside = name == "&" and (aligned[-1] if aligned else line[match.end() :].lstrip()[:1] == "=")
            if space or name in SPACES or (bounds and equations) or beside:
                continue
            if name == "||" and self.names.count("|") % 2:  # |a||b| is a product
                name = "|"
                self.names.append(name)
                self.starts.append(match.start())
                self.stops.append(match.start() + 1)
            elif name == "||":
                name = r"\|"
            called = letters and len(letters) > 1 and line[match.end() : match.end() + 1] == "("
            single = letters and letters not in words and not called
            for n, piece in enumerate(letters) if single else [(0, name)]:
                self.names.append("\\" + piece if command and piece not in WORDS else piece)
                self.starts.append(match.start() + n)
                self.stops.append(match.start() + n + 1 if single else match.end())
        while self.names and self.names[-1] in (".", ","):  # the end of a sentence
            self.remove(len(self.names) - 1)
        for k in range(len(self.names) - 4):  # \mathrm{d}x is dx
            if self.names[k : k + 4] == ["\\mathrm", "{", "d", "}"] and (
                "".join(self.names[k + 4 : k + 5]).isalpha() or self.names[k - 1 : k] == ["{"]
            ):
                self.names[k] = "\\partial"
                self.stops[k] = self.stops[k + 3]
                self.remove(k + 1, 3)
        while "\\substack" in self.names:  # conditions below each other
            k = self.names.index("\\substack")
            end = self.end_of_group(k + 1)
            self.names[k + 1 : end] = ["," if name == "\\\\" else name for name in self.names[k + 1 : end]]
            self.remove(end - 1)
            self.remove(k, 2)
        if self.names[:1] == ["{"] and self.end_of_group(0) == len(self.names):  # {\displaystyle ..}
            self.remove(len(self.names) - 1)
            self.remove(0)
        for k, name in enumerate(self.names):
            if name == "^":
                self.subscript_first(k)
        self.names.append("")
        self.starts.append(len(line))
        self.stops.append(len(line))

    def remove(self, k: int, count: int = 1) -> None:
        """Leave out tokens."""
        for tokens in (self.names, self.starts, self.stops):
            del tokens[k : k + count]

    def end_of_group(self, k: int) -> int:
        r"""The place behind the token, the group in braces, or the word in an alphabet, as in \mathrm{H}, at `k`."""
        depth = 0
        while k < len(self.names) and self.names[k] in WITH_WORDS:
            k += 1
        for end in range(k, len(self.names)):
            depth += (self.names[end] == "{") - (self.names[end] == "}")
            if depth <= 0:
                return end + 1
        return len(self.names)

    def subscript_first(self, k: int) -> None:
        """Where a subscript stands behind the power at `k`, exchange them: x^2_i is x_i^2."""
        middle = self.end_of_group(k + 1)
        if self.names[middle : middle + 1] == ["_"]:
            end = self.end_of_group(middle + 1)
            self.names[k:end] = self.names[middle:end] + self.names[k:middle]
            self.starts[k:end] = self.starts[middle:end] + self.starts[k:middle]
            self.stops[k:end] = self.stops[middle:end] + self.stops[k:middle]

    # errors

    def error(
        self, code: str, message: str, first: int, last: int | None = None, help: str | None = None
    ) -> GradcliError:
        """The error about tokens `first` to `last`."""
        last = first if last is None else last
        start = self.offset + min(self.starts[first : last + 1])
        end = self.offset + max(self.stops[first : last + 1])
        return GradcliError(Diagnostic(code, message, self.source.span(start, end), (), help, source=self.source))

    def readings(self, what: str, first: int, last: int, *texts: str) -> GradcliError:
        """The error for what may be meant in several ways."""
        hint = "write " + " or ".join(f"`{reading}`" for reading in texts)
        return self.error("GC139", f"{what} has more than one reading", first, last, hint)

    def unexpected(self) -> GradcliError:
        """The error for the present token, which cannot stand here."""
        name = self.token
        if name in ("^", "_"):
            return self.error("GC138", f"nothing comes before `{name}`", self.at)
        if not name or name in CLOSING:
            place = f"`{visible(name)}`" if name else "the end of the line"
            negative = "put a negative value in brackets, as in (-x)" if name == "-" else None
            return self.error("GC138", f"a value is expected before {place}", self.at, help=negative)
        command = name.removeprefix("\\")
        if name.startswith((r"\begin", r"\end")):
            read = "write a matrix as [[1, 2], [3, 4]]; cases, align and matrix environments are read"
            return self.error("GC138", f"`{visible(name)}` has no meaning here", self.at, help=read)
        known = [*FUNCTIONS, *RECIPROCALS, *GREEK, "frac", "sqrt", "sum", "prod", "top", "cdot"]
        guess = did_you_mean(command, known) if name[0] == "\\" else None
        hint = ELSEWHERE.get(command) or (f"did you mean \\{guess}?" if guess else None)
        if command in ("mathbb", "mathds", "mathbbm"):
            letter = next((name for name in self.names[self.at + 1 : self.at + 3] if name != "{"), "")
            hint = BLACKBOARD.get(letter, EXPECTED)
        elif name[0] == "\\" and hint is None:
            hint = "write it in a line without LaTeX, in the language of scripts"
        return self.error("GC138", f"`{visible(name)}` has no meaning here", self.at, help=hint)

    def open(self, closing: str) -> int:
        """Move past an opening bracket, which `closing` will close; return its place."""
        self.opened.append(closing)
        self.at += 1
        return self.at - 1

    def ends(self) -> bool:
        """Whether the present token ends a product; a bar does where it closes one."""
        name = self.token
        return name in CLOSING or name.startswith(r"\end") or (bool(self.opened) and name == self.opened[-1])

    def expect(self, closing: str, opened: int) -> None:
        """Move past a closing bracket."""
        if self.token != closing:
            shown = visible(self.names[opened])
            comma = ", or write a comma between two arguments" if self.names[opened] in (BARS | NORMS) else ""
            hint = f"add `{visible(closing)}`{comma}"
            raise self.error("GC138", f"`{shown}` is never closed", opened, help=hint)
        self.opened.pop()
        self.at += 1

    @property
    def token(self) -> str:
        """The present token; empty at the end of the line."""
        return self.names[self.at]

    def take(self, token: str) -> bool:
        """Move past this token if it is the present one; whether it was."""
        matches = self.names[self.at] == token
        self.at += matches
        return matches

    def take_all(self, tokens: list[str]) -> bool:
        """Move past these tokens if they come next; whether they did."""
        matches = self.names[self.at : self.at + len(tokens)] == tokens
        self.at += len(tokens) if matches else 0
        return matches

    def is_letter(self, k: int) -> bool:
        """Whether token `k` is a letter, also a Greek one."""
        name = self.names[k]
        return re.fullmatch(r"[A-Za-zα-ωΑ-Ω]", name) is not None or name.removeprefix("\\") in GREEK

    def joined(self, first: int, end: int) -> str:
        """The text of tokens `first` up to `end` in the order in which they are read; a space only behind a command."""
        bounds = zip(self.starts[first:end], self.stops[first:end], strict=True)
        parts = " ".join([self.source.text[self.offset + start : self.offset + stop] for start, stop in bounds])
        return re.sub(r"(\\[A-Za-z]+ (?=[A-Za-z]))| ", r"\1", parts)

    def written(self, first: int, end: int) -> str:
        """The user's own text of tokens `first` up to `end`."""
        start, stop = min(self.starts[first:end]), max(self.stops[first:end])
        return self.source.text[self.offset + start : self.offset + stop]
