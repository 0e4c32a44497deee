"""The lexer: splits a Source into tokens, and collects errors of single characters.

Tokens are parallel lists, with line and column. Line ends inside brackets are dropped, and indentation becomes tokens.
A line with a bad character is `broken`: the parser continues, but reports no other error in it.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import Diagnostic, Span
from gradcli.language.characters import FORBIDDEN, GREEK, OPERATORS, POWERS, SUBSCRIPTS, is_superscript, stray
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.source import LINE_END, text_too_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source

# kinds of token; every operator and reserved word is its own kind
NAME, NUMBER, STRING = "name", "number", "string"
NEWLINE, INDENT, DEDENT, END, BROKEN = "newline", "indent", "dedent", "end", "broken"

LANGUAGE_WORDS = (
    *("const", "def", "return", "for", "in", "if", "elif", "else", "assert"),
    *("and", "or", "not", "None", "True", "False"),
)
PYTHON_WORDS = (
    *("as", "async", "await", "break", "class", "continue", "del", "except", "finally", "from", "global"),
    *("import", "is", "lambda", "nonlocal", "pass", "raise", "try", "while", "with", "yield"),
)
PAIRED = frozenset("∂∇∑∏∫⟨⌊⌈⁻`")  # signs that seldom stand alone
STRING_PREFIXES = ("b", "br", "f", "fr", "r", "rb", "u")  # of Python
RESERVED = {word: word for word in (*LANGUAGE_WORDS, *PYTHON_WORDS)}

DIGITS = r"[0-9]+(?:_[0-9]+)*"
WORD = rf"[A-Za-z_{GREEK}][A-Za-z0-9_{GREEK}]*"
TOKEN = re.compile(
    rf"""[ \t]*+(?:
      ({WORD})
    | ((?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})(?:[eE][+−-]?{DIGITS})?)
    | (\*\*=?|===?|!==?|<=|>=|<>|<<|>>|=>|=<|\+=|-=|\*=|//=?|/=|@=|\^=|%=|&=|\|=|&&|\|\||->|:=|\.\.\.
       |[-+*/@^=<>()\[\],:;.%&|~!])
    | (\r\n|\n|\r)
    | (\#[^\r\n]*)
    | ("[^"\r\n]*"|'[^'\r\n]*')
    | ([^ \t])
    | (\Z)
    )""",
    re.VERBOSE,
)
IS_WORD, IS_NUMBER, IS_OPERATOR, IS_LINE_END, IS_COMMENT, IS_STRING, IS_STRAY, IS_END = range(1, 9)

# a line that cannot stand inside brackets, so one was forgotten before it (compiled when first needed)
STATEMENT = r"[ \t]*(?:def|assert|const|return|import|from|class|while)\b"
HEADER = r"[ \t]*(?:for|if|elif|else)\b[^\r\n#]*"
# what a root sign without parentheses covers: a name or a number, if nothing follows that could belong to it
FURTHER = f"[(.'′ᵀ{''.join(POWERS)}{''.join(SUBSCRIPTS)}\\[^]|\\*\\*"
RADICAND = rf"[ \t]*(?:((?>{WORD}))|((?>{DIGITS}(?:\.{DIGITS})?))(?![ \t]*[A-Za-z_{GREEK}]))(?![ \t]*(?:{FURTHER}))"
ASSIGNMENT = rf"[ \t]*{WORD}[ \t]*(?:\[[^\]\r\n]*\][ \t]*)?(?:[-+*/@^]|\*\*)?=(?!=)"


class Tokens:
    """The tokens of a text as parallel lists, ended by a NEWLINE and an END.

    `remarks` maps the index of the token after a comment to the line, column and text of the comment, if that may say
    `rtol=` or `expect:`; a comment on a line of its own has index -line instead. `broken` has the lines with bad
    characters. `directives` are comments with `gradcli:` and those that begin with #>, as line, column, text, and
    whether they are alone on their line.
    """

    __slots__ = ("broken", "columns", "diagnostics", "directives", "kinds", "lines", "remarks", "texts")

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.columns: list[int] = []
        self.diagnostics: list[Diagnostic] = []
        self.broken: set[int] = set()
        self.remarks: dict[int, tuple[int, int, str]] = {}
        self.directives: list[tuple[int, int, str, bool]] = []


def tokenise(source: Source, limits: Limits = DEFAULT_LIMITS, start: int = 0, end: int | None = None) -> Tokens:
    """Return the tokens of `source`, or of the part of it from offset `start` to `end`.

    Raises GC501 when the text is too long; all other errors are in the result.
    """
    text = source.text
    if len(text) > limits.text or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > limits.text):
        raise text_too_long(source.name, limits)
    tokens = Tokens()
    if end is None:
        end = len(text)
    line, line_start = 1, 0
    if start:
        place = source.span(start, start)
        line, line_start = place.line, start - place.column + 1
    if FORBIDDEN.search(text, start, end):
        text = without_forbidden(source, tokens, start, end)
    Lexer(text, end, tokens).run(start, line, line_start)
    if "π" in text:
        refuse_names_with_pi(tokens)
    return tokens


def refuse_names_with_pi(tokens: Tokens) -> None:
    """Report names such as the πr of 2πr²: a product is meant."""
    for kind, text, line, column in zip(tokens.kinds, tokens.texts, tokens.lines, tokens.columns, strict=True):
        if kind == NAME and "π" in text and text != "π" and text.isalpha() and line not in tokens.broken:
            product = "*".join(part for part in text.replace("π", " π ").split())
            span = Span(line, column, line, column + len(text))
            message = f"`{text}` may be one name or a product"
            tokens.diagnostics.append(Diagnostic("GC139", message, span, (), f"write {product} for the product"))
            tokens.broken.add(line)


def without_forbidden(source: Source, tokens: Tokens, start: int, end: int) -> str:
    """Report every run of one forbidden character, and return the text with `_` in their places."""
    text, last = source.text, -2
    for match in FORBIDDEN.finditer(text, start, end):
        at = match.start()
        if at == last + 1 and text[at] == text[last]:
            last = at
            continue
        last = at
        span = source.span(at, at + 1)
        tokens.broken.add(span.line)
        tokens.diagnostics.append(stray(text, at, span))
    return FORBIDDEN.sub("_", text)


class Lexer:
    """The state of one pass over a text: open brackets, open indentations, and braces that were reported."""

    __slots__ = ("braces", "end", "indents", "opens", "text", "tokens")

    def __init__(self, text: str, end: int, tokens: Tokens) -> None:
        self.text = text
        self.end = end
        self.tokens = tokens
        self.opens: list[int] = []
        self.indents: list[str] = []
        self.braces = 0

    def run(self, start: int, line: int, line_start: int) -> None:
        """Fill the token lists from offset `start`, in line `line`, which begins at offset `line_start`."""
        text, tokens, opens = self.text, self.tokens, self.opens
        kinds, texts, lines, columns = tokens.kinds, tokens.texts, tokens.lines, tokens.columns
        reserved = RESERVED.get
        fresh = True
        position = start
        while True:
            for match in TOKEN.finditer(text, position, self.end):
                group = match.lastindex or IS_END
                at = match.start(group)
                if group <= IS_OPERATOR:
                    if fresh:
                        self.indent(line, line_start, at)
                        fresh = False
                    word = match[group]
                    if group == IS_WORD:
                        kinds.append(reserved(word, NAME))
                    elif group == IS_NUMBER:
                        kinds.append(NUMBER)
                        if "_" in word and kinds[-2:-1] == ["^"]:
                            self.index_behind_power(word, line, at - line_start + 1)
                        word = word.replace("−", "-")  # 1e−3
                    else:
                        kinds.append(word)
                        if word in "([":
                            opens.append(len(texts))
                        elif opens and word in ")]":
                            opens.pop()
                    texts.append(word)
                    lines.append(line)
                    columns.append(at - line_start + 1)
                elif group == IS_LINE_END:
                    if not fresh and (not opens or self.forgotten(match.end())):
                        self.add(NEWLINE, "", line, at - line_start + 1)
                        opens.clear()
                        fresh = True
                    line += 1
                    line_start = match.end()
                elif group == IS_COMMENT:
                    comment = match[group]
                    if "rtol" in comment or "expect" in comment:
                        # a comment on a line of its own belongs to no statement: index -line
                        index = -line if fresh else len(kinds)
                        tokens.remarks[index] = (line, at - line_start + 1, comment)
                    if "gradcli" in comment or comment.startswith("#>"):
                        alone = not text[line_start:at].strip()
                        tokens.directives.append((line, at - line_start + 1, comment, alone))
                elif group == IS_END:
                    if not fresh:
                        self.add(NEWLINE, "", line, at - line_start + 1)
                    for _ in self.indents[1:]:
                        self.add(DEDENT, "", line, at - line_start + 1)
                    self.add(END, "", line, at - line_start + 1)
                    return
                else:
                    if fresh:
                        self.indent(line, line_start, at)
                        fresh = False
                    position = self.string_or_stray(group, at, match.end(), line, line_start)
                    if position != match.end():
                        for extra in LINE_END.finditer(text, match.end(), position):
                            line, line_start = line + 1, extra.end()
                        break

    def add(self, kind: str, text: str, line: int, column: int) -> None:
        """Append one token."""
        tokens = self.tokens
        tokens.kinds.append(kind)
        tokens.texts.append(text)
        tokens.lines.append(line)
        tokens.columns.append(column)

    def report(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        """Report an error of the characters; no other error of its line will be reported."""
        self.tokens.diagnostics.append(Diagnostic(code, message, span, (), help))
        self.tokens.broken.add(span.line)

    def index_behind_power(self, word: str, line: int, column: int) -> None:
        """Report `^2_2`, which is no power of 22 where papers write the square of norm 2."""
        hint = f"write ^{word.replace('_', '')} for the number, or norm(x, p)^2 for the square of a norm"
        span = Span(line, column - 1, line, column + len(word))
        self.report("GC139", f"`^{word}` has more than one reading", span, hint)

    def indent(self, line: int, line_start: int, at: int) -> None:
        """Iteration the white space before a line's first token into INDENT and DEDENT tokens."""
        space, indents = self.text[line_start:at], self.indents
        if not indents:  # the first line may be indented: all others are then measured from it
            indents.append(space)
            return
        if space == indents[-1]:
            return
        column = at - line_start + 1
        if space.startswith(indents[-1]):
            indents.append(space)
            self.add(INDENT, "", line, column)
            return
        span = Span(line, 1, line, max(column, 2))
        if not indents[-1].startswith(space):
            self.report("GC111", "the indentation mixes tabs and spaces", span, "indent every line with spaces")
            return
        while len(indents) > 1 and len(indents[-1]) > len(space):
            indents.pop()
            self.add(DEDENT, "", line, column)
        if indents[-1] != space:
            size = f"{len(indents[-1])} character{'s' * (len(indents[-1]) != 1)}"
            hint = f"indent it by {size}, like the block that it belongs to"
            self.report("GC111", "the indentation fits no block above", span, hint)

    def forgotten(self, next_line: int) -> bool:
        """Return whether the line at offset `next_line` shows that the open bracket before it was forgotten."""
        if re.compile(STATEMENT).match(self.text, next_line):
            return True
        if header := re.compile(HEADER).match(self.text, next_line):
            _, colon, rest = header[0].rpartition(":")
            return bool(colon) and ")" not in rest and "]" not in rest
        if not re.compile(ASSIGNMENT).match(self.text, next_line):
            return False
        kinds, opened = self.tokens.kinds, self.opens[-1]
        if kinds[-1] in (NAME, NUMBER, STRING, ")", "]"):
            return True  # a value in front of NAME = : no comma, so no further argument
        return kinds[opened] == "[" or opened == 0 or kinds[opened - 1] != NAME  # no call, so no keyword

    def sign(self, at: int, end: int, line: int, column: int) -> int:
        """Add the tokens of a mathematical symbol such as `≤` or `²`; return the offset after it, or `at`."""
        text, char = self.text, self.text[at]
        if char in OPERATORS:
            self.add(OPERATORS[char], char, line, column)
        elif char in POWERS:
            while end < self.end and text[end] in POWERS and "ⁿ" not in text[at : end + 1]:
                end += 1
            self.add("**", "**", line, column)
            exponent = "".join(POWERS[digit] for digit in text[at:end])
            self.add(NAME if char == "ⁿ" else NUMBER, exponent, line, column)
        elif char in SUBSCRIPTS and self.tokens.kinds[-1:] == [NAME] and not text[at - 1].isspace():
            while end < self.end and text[end] in SUBSCRIPTS:
                end += 1
            below = "".join(SUBSCRIPTS[digit] for digit in text[at:end])
            self.tokens.texts[-1] += below if self.tokens.texts[-1] == "log" else f"_{below}"
        elif char == "ᵀ":
            self.add(".", ".", line, column)
            self.add(NAME, "T", line, column)
        elif char == "√" and text[end : end + 1] == "(":
            self.add(NAME, "sqrt", line, column)
        elif char == "√" and (match := re.compile(RADICAND).match(text, end, self.end)):
            operand = match[1] or match[2]
            start, stop = (column + place - at for place in (match.end() - len(operand), match.end()))
            self.add(NAME, "sqrt", line, column)
            self.add("(", "", line, start)
            self.add(NAME if match[1] else NUMBER, operand, line, start)
            self.add(")", "", line, stop)
            return match.end()
        else:
            return at
        return end

    def is_prime(self, at: int, closed: bool) -> bool:
        """Whether a quotation mark directly follows a value, as in x'*A*x and f'(x); f'a' is a string."""
        text, kinds, texts = self.text, self.tokens.kinds, self.tokens.texts
        if text[at] not in "'′" or not kinds or text[at - 1].isspace() or kinds[-1] not in (NAME, ")", "]"):
            return False
        empty = text.startswith("''(", at)  # f''(x)
        return empty or not (closed and texts[-1].lower() in STRING_PREFIXES)

    def string_or_stray(self, group: int, at: int, end: int, line: int, line_start: int) -> int:
        """Add a string, or report a character that starts no token; return the offset to continue from."""
        text, column = self.text, at - line_start + 1
        if self.is_prime(at, closed=group == IS_STRING):
            if line not in self.tokens.broken:
                hint = "write .T for a transpose; `gradcli derive` finds derivatives"
                self.report("GC139", "a prime has more than one reading", Span(line, column, line, column + 1), hint)
            return at + 1
        span = Span(line, column, line, end - line_start + 1)
        if group == IS_STRING:
            quotes = text[at] * 3
            if text.startswith(quotes, at):
                self.report("GC109", "triple-quoted strings are not supported", span, "write a comment: # ...")
                self.add(BROKEN, "", line, column)
                closing = text.find(quotes, at + 3, self.end)
                return self.end if closing < 0 else closing + 3
            if "\\" in text[at:end]:
                self.report("GC109", "a string has no backslash", span, "write / between folders")
            self.add(STRING, text[at:end], line, column)
            return end
        if (read := self.sign(at, end, line, column)) > at:
            return read
        self.add(BROKEN, "", line, column)
        if text[at] in "\"'":
            stop = LINE_END.search(text, at, self.end)
            end = self.end if stop is None else stop.start()
            span = Span(line, column, line, end - line_start + 1)
            self.report("GC109", "the string is never closed", span, f"add {text[at]} at its end")
            return end
        superscript = is_superscript(text[at])
        while end < self.end and (text[end] == text[at] or (superscript and is_superscript(text[end]))):
            end += 1  # a run of the same character is one error, and so is e⁻ˣ
        if text[at] == "}" and self.braces:  # the error is the brace that it closes
            self.braces = max(0, self.braces - (end - at))
            return end
        self.braces += end - at if text[at] == "{" else 0
        before = text[at - column + 1 : at]
        if line not in self.tokens.broken or not PAIRED.intersection(before):  # ∂f/∂x, ∑ᵢ xᵢ, ⌊x⌋ are one error each
            self.tokens.diagnostics.append(stray(text, at, span))
        self.tokens.broken.add(line)
        return end
