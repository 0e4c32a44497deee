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
from collections.abc import Mapping

from gradcli.base.diagnostics import Diagnostic, GradcliError
from gradcli.language.source import LINE_END, Source

MATHEMATICS = re.compile(r"\\[A-Za-z,;:!|{}()\[\]%]|\^T ?@|\^T ?[A-Za-z]{1,2}(?![A-Za-z0-9_])|\$[^$]+\$|[\^_][ \t]*\{")
STRING = re.compile(r"\"[^\"\r\n]*\"|'[^'\r\n]*'")
ASSIGNED = re.compile(r"^[ \t]*(?:const[ \t]+)?([A-Za-z_]\w+)[ \t]*(?:\[[^\]\r\n]*\][ \t]*)?=(?!=)", re.MULTILINE)
DEFINED = re.compile(
    r"^[ \t$]*(?:def[ \t]+|\\begin\{\w+\*?\}\s*)?\\?([A-Za-z_]\w*)(?:_\{(\w+)\})?[ \t]*\([\w\s,;|\\]*\)[ \t]*&?[=:]",
    re.MULTILINE,
)
TWO_INDICES = re.compile(r"([A-Za-z]+)_\{\s*[a-z]\s*,?\s*[a-z]\s*\}")  # alpha in \alpha_{ij}
PROSE = re.compile(r"[A-Za-z]{2,}[ \t]+[A-Za-z]|[A-Za-z]{3,}[ \t]*\Z")  # words beside a formula between dollar signs
BEFORE = re.compile(r"[ \t]*(?:(?:assert|const|return)\b[ \t]*)?")  # what may stand in front of a formula

TEXT = "give the formula alone: what stands between the dollar signs"


def is_latex(line: str) -> bool:
    """Whether a line of a script is read as LaTeX."""
    return MATHEMATICS.search(STRING.sub("", line.partition("#")[0])) is not None


def translated(
    source: Source, about: Source | None = None, ranges: Mapping[str, str] | None = None, leaf: str = ""
) -> Source:
    r"""Return a source whose LaTeX lines are written in the language of scripts.

    A claim for a leaf is LaTeX and means what it means in the script that it is `about`; free indices have `ranges`.

    Raises GradcliError with the first problem of each line: GC138 for what the language does not have, GC139 for
    what has several readings, GC502 for brackets that are too deep.

    >>> translated(Source(r"\frac{1}{2} \|A x - b\|^2")).text
    '1/2*norm(A @ x - b)**2'
    """
    context = f"{about.text}\n{source.text}" if about else source.text
    words = frozenset(ASSIGNED.findall(context))
    functions = frozenset(f"{name}_{below}" if below else name for name, below in DEFINED.findall(context))
    problems: list[Diagnostic] = []
    lines = source.lines()
    offset, done = 0, 0
    mathematics: set[int] = set()
    for number, line in enumerate(source.lines()):
        if number >= done and (about or is_latex(line)):
            from gradcli.language.latex.latex_parser import statements  # most lines are no LaTeX: start-up time
            from gradcli.language.latex.latex_tokens import LatexTokens

            done = environment_end(lines, number)
            mathematics.add(number + 1)
            formula, mark, comment = "".join(lines[number:done]).partition("#")
            before = BEFORE.match(formula)
            start = before.end() if before else 0
            end = len(formula.rstrip())
            try:
                prose = start + len(formula[start:].partition("$")[0])
                if prose < end and PROSE.search(formula[start:prose]):
                    span = source.span(offset + start, offset + prose)
                    raise GradcliError(
                        Diagnostic("GC138", "there is text beside the formula", span, (), TEXT, source=source)
                    )
                tokens = LatexTokens(source, formula[start:end], offset + start, words, functions, context)
                tokens.matrices = frozenset(TWO_INDICES.findall(about.text)) if about else frozenset()
                tokens.outer = leaf[:1].isupper() or leaf in tokens.matrices
                tokens.ranges |= ranges or {}
                tokens.indices |= dict.fromkeys(tokens.ranges, -1)
                text = statements(tokens)
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
    if text == source.text:
        return source
    script = Source(text, source.name, source.path)
    script.mathematics = frozenset(mathematics)
    return script


def environment_end(lines: list[str], number: int) -> int:
    r"""The number of the line behind the environments that begin in a line: behind it, where none goes on."""
    text = lines[number].partition("#")[0]
    stop = number + 1
    while stop < len(lines) and text.count(r"\begin{") > text.count(r"\end{"):
        text += lines[stop]
        stop += 1
    return stop
