"""Names in LaTeX: letters and words, their alphabets, accents and subscripts, and calls of functions."""

from __future__ import annotations

import re

from gradcli.diagnostics import GradcliError, visible
from gradcli.language.latex.latex_commands import (
    ACCENTS,
    ALPHABETS,
    BOLD,
    CLOSING,
    ENTRYWISE,
    EXPECTED,
    FUNCTIONS,
    GREEK,
    INDEX_LETTERS,
    INDICATOR,
    MATRICES,
    MATRIX_VALUED,
    OFTEN_FUNCTIONS,
    PAIRS,
    RECIPROCALS,
    SEPARATORS,
    SEVERAL,
    SOMETIMES_FUNCTIONS,
    USUAL,
)
from gradcli.language.latex.latex_tokens import Part, Tokens

BACKSLASH = "\\"


NO_FACTOR = re.compile(
    r"\\(?:text|operatorname|math\w+)\{[^{}]*\}|\\[A-Za-z]+|_\{[^{}]*\}|_."
)  # of an exponent: words, subscripts
OWN_E = re.compile(r"^[ \t]*(?:const[ \t]+)?e[ \t]*(?:\[[^\]]*\][ \t]*)?(?:=(?!=)|in\b)", re.MULTILINE)  # e = 1.6e-19


class Letters(Tokens):
    """Names, with what is written on and below them, and calls of functions."""

    def bracket(self) -> Part:
        """A group in brackets, without the brackets."""
        closing = PAIRS[self.names[self.at]]
        opened = self.open(closing)
        part = self.comparison()
        self.expect(closing, opened)
        return part

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

    def arguments(self) -> list[Part]:
        """The values between brackets, separated by commas."""
        closing = PAIRS[self.names[self.at]]
        self.separate()
        opened = self.open(closing)
        values = [self.comparison()]
        while self.names[self.at] == ",":
            self.at += 1
            values.append(self.comparison())
        self.expect(closing, opened)
        return values

    def separate(self) -> None:
        r"""Turn the one bar, or the semicolon, between arguments into a comma: p(x | y), KL(p \| q), N(x; m)."""
        end, depth, bars = self.at, 0, []
        while self.names[end] and (depth or end == self.at):
            depth += (self.names[end] in PAIRS) - (self.names[end] in PAIRS.values())
            if depth == 1 and self.names[end] == ";":
                self.names[end] = ","
            elif depth == 1 and self.names[end] in SEPARATORS:
                bars.append(end)
            end += 1
        if len(bars) == 1:
            self.names[bars[0]] = ","

    def name(self) -> Part:
        """A letter, a Greek letter, a word in an alphabet or with an accent; with its subscript."""
        first = self.at
        name = self.names[first]
        command = name.removeprefix("\\") if name[:1] == "\\" else ""
        matrix = False
        if command in GREEK:
            text = command
            self.at += 1
            if command == "Delta" and re.fullmatch(r"[A-Za-z]|\\\w+", self.names[self.at]) and self.letter(self.at):
                text += f"_{self.names[self.at].removeprefix(BACKSLASH)}"  # a difference is one name
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
            if command in ALPHABETS and not self.alone:
                bracket = self.names[self.at]
                if text == "E" and bracket in ("[", "(") and text not in self.functions:
                    raise self.error("GC138", "an expected value is not supported", first, self.at, EXPECTED)
                if text in FUNCTIONS or text in RECIPROCALS or command == "operatorname":
                    self.at -= 1
                    return self.function(text)
                if bracket == "(":
                    return self.call(text)
        elif re.fullmatch(r"[A-Za-zα-ωΑ-Ω]\w*", name):
            self.run(first)
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
            if name == "e" and self.names[self.at] == "2" and not OWN_E.search(self.source.text):
                raise self.readings("`e^2`", first, self.at, r"\exp(2)", r"\mathrm{q}^2")
            end = self.end_of_group(self.at)
            if "i" not in self.indices and "i" in NO_FACTOR.sub("", self.joined(self.at, end)):
                hint = "complex numbers are not supported; write another letter for a number"
                raise self.error("GC139", "`i` in an exponent may be the imaginary unit", first, end - 1, hint)
            return Part(f"exp({self.argument().text})")
        if self.names[self.at] == "(" and text in self.functions:
            return self.call(text)
        if self.may_be_called(text):
            raise self.call_or_product(first, text)
        if name == "e" and not OWN_E.search(self.source.text):
            raise self.readings("`e` without an exponent", first, first, r"\exp(1)", r"\mathrm{q}")
        capital = text in MATRICES or (len(text) == 1 and text.isupper())
        column = matrix and text.islower()
        return Part(text, matrix=matrix or (capital and self.arrays), capital=capital, column=column)

    def run(self, first: int) -> None:
        """Refuse letters without spaces, from token `first` on, that are often one word or a differential."""
        if first and self.stops[first - 1] == self.starts[first] and self.names[first - 1].isalpha():
            return
        end = first + 1
        while self.names[end].isalpha() and self.starts[end] == self.stops[end - 1]:
            end += 1
        text = self.written(first, end)
        letters = f"`{' '.join(text)}`"
        if (len(text) > 3 and end - first == len(text)) or text in ("TP", "TN", "FP", "FN"):
            hint = rf"write `\mathrm{{{text}}}` or {letters}"
            raise self.error("GC139", f"`{text}` may be a word or a product", first, end - 1, hint)
        if end - first == 2 and text[0] == "d" and not self.alone:
            hint = f"write {letters} for a product, or a derivative such as \\frac{{dy}}{{dx}}"
            raise self.error("GC139", f"`{text}` may be a differential or a product", first, end - 1, hint)

    def letter(self, k: int) -> bool:
        """Whether token `k` is a letter."""
        name = self.names[k]
        return re.fullmatch(r"[A-Za-zα-ωΑ-Ω]", name) is not None or name.removeprefix("\\") in GREEK

    def may_be_called(self, name: str) -> bool:
        """Whether a letter in front of a bracket is often a function: f(x + 1); any letter in x(t), x(s, t)."""
        here = self.names[self.at : self.at + 3]
        if here[:1] == ["["] and name in ("E", "P"):  # an expected value, a probability
            return not self.alone
        if here[:1] != ["("] or self.alone:
            return False
        if name in OFTEN_FUNCTIONS:
            return True
        if not self.letter(self.at + 1):
            return False
        return here[2:] in ([")"], [","], ["|"], ["\\mid"]) or (here[2:] == ["_"] and name in SOMETIMES_FUNCTIONS)

    def call_or_product(self, first: int, name: str) -> GradcliError:
        """The error for a letter that is often a function, in front of a bracket."""
        shown = visible(self.written(first, self.at))
        if self.names[self.at] == "[":
            hint = f"{EXPECTED}; write `{shown} \\cdot (..)` for a product"
            return self.error("GC139", f"`{shown}[` may be an expected value or a product", first, self.at, hint)
        known = f", `\\mathrm{{{USUAL[name]}}}(..)` for the usual function" if name in USUAL else ""
        hint = f"write `{shown} \\cdot (..)` for a product{known}; define a function by a line {name}(x) = .."
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
            indicator = self.names[self.at] in ("_", "[", "(")
            ones = INDICATOR if indicator else r"write `\mathrm{ones}(n)` for a vector of ones"
            hint = ones if text == "1" else "a name is a letter, and letters, digits or _ behind it"
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
            if not self.names[end]:
                raise self.error("GC138", "`{` is never closed", first, help="add `}`")
        inner = [
            name
            for name in self.names[first + group : end]
            if name not in ("{", "}") and name.removeprefix("\\") not in ALPHABETS
        ]
        if text in ("delta", "epsilon", "varepsilon") and len(inner) > 1 and set(inner) <= INDEX_LETTERS:
            hint = "leave out the terms that are 0, or write \\mathrm{eye}(n) for the identity matrix"
            shown = self.written(first - 2, end + group)
            raise self.error("GC138", f"`{shown}` is not supported", first - 2, end, hint)
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
            if suffix.isdigit() or len(suffix) == 1 or set(suffix) <= INDEX_LETTERS:
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

    def marked(self, start: int) -> None:
        """Refuse exponents of what begins at `start` that are marks: x^{(i)}, a^{[l]}, x^*."""
        first = self.at
        group = self.names[first] == "{"
        if group and self.names[first + 1] in ("(", "["):
            end = first
            while self.names[end] not in ("}", ""):
                end += 1
            inner = "".join(self.names[first + 2 : end - 1]).replace("\\", "")
            one = inner if re.fullmatch(r"\w+", inner) else "1"
            base = self.joined(start, first - 1)
            raise self.readings("a superscript in brackets", first - 1, end, f"{base}_{one}", f"{base}^{{{inner}}}")
        if self.names[first + group] in ("+", "-") and self.names[first + group + 1] in ("}", *CLOSING):
            hint = "write a name such as `\\mathrm{H_plus}`"
            raise self.error("GC138", "a name has no sign", first - 1, first + group, hint)
        if self.names[first + group] in ("*", "\\ast", "\\star"):
            hint = "write a name such as `\\mathrm{x_star}`"
            raise self.error("GC138", "a name has no star", first - 1, first + group, hint)


def less(index: str, shift: int) -> str:
    """The text of an index minus a number: of i + 1 and 1 it is i."""
    plain = index.removesuffix(f" + {shift}")
    return plain if plain != index else f"{index} - {shift}" if shift else index
