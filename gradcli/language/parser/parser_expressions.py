"""Parses expressions: a Pratt parser with an explicit stack.

Nothing recurses: pending operators and open brackets lie on lists, so depth is bounded by the limit `nesting`
alone. From loose to tight (`notation.BINDS`), left-associative unless said:

    or · and · not · == != < <= > >= (chained) · + - · * / @ and products without sign · unary + - · ** and ^ (right)
    · calls, subscripts, .T and methods

A number or `)` in front of a name or `(` multiplies; a name in front of `(` calls.
"""

from __future__ import annotations

from gradcli.base.diagnostics import Span
from gradcli.language.lexer import NAME, NUMBER
from gradcli.language.notation import BINDS, COMPARISON, NOT, POWER, PREFIXES, SIGN
from gradcli.language.parser.parser_brackets import DONE, OPERAND, BracketParser
from gradcli.language.parser.parser_errors import BARS, CALL, GROUP, INDEX, LIST, ROOT, Frame
from gradcli.language.syntax import Binary, Compare, Expression, Name, Unary

# operator -> the least power that it takes from the stack, its own power, its name in the tree
INFIX = {op: (power + (power in (COMPARISON, POWER)), power, op) for op, power in BINDS.items()}
INFIX["^"] = INFIX["**"]
IMPLICIT = INFIX["*"]
STOP = (1, 0, "")
SIGNS = (SIGN, NOT)


class ExpressionParser(BracketParser):
    """The tokens of one text and the place in them, with the loop that reads an expression."""

    def expression(self, i: int, commas: bool = False) -> Expression:
        """Return the expression that starts at token `i`; self.position is then the token after it.

        With `commas`, `a, b` is a Tuple. Raises Stop at the first thing that is not an expression.
        """
        kinds, texts, lines, columns = self.kinds, self.texts, self.lines, self.columns
        make, most = tuple.__new__, self.limits.nesting
        values: list[Expression] = []  # complete operands ...
        starts: list[int] = []  # ... and the index of the first token of each, brackets included
        powers = [0]  # binding powers of pending operators; 0 for an open bracket
        pending: list[tuple[str, int]] = [("", 0)]  # their names, with 1 for implicit or the index of a prefix
        chains: list[list[str]] = []  # the operators of pending comparisons
        root = Frame(ROOT, "", i - 1, i)
        root.comma = commas
        frames = [root]
        depth = self.depth
        while True:
            # an operand is due -----------------------------------------------------------------------------
            kind = kinds[i]
            if kind == NAME:
                text = texts[i]
                if kinds[i + 1] == "=" and powers[-1] == 0 and frames[-1].kind == CALL:
                    self.keyword(frames[-1], i)
                    i += 2
                    continue
                line, column = lines[i], columns[i]
                values.append(Name(text, make(Span, (line, column, line, column + len(text)))))
                starts.append(i)
                i += 1
            elif kind == NUMBER:
                number = self.number(i)
                values.append(number)
                starts.append(i)
                i += 2 if number.imaginary else 1
            elif (power := PREFIXES.get(kind, 0)) and (power == SIGN or powers[-1] <= power):
                depth += 1
                if depth > most:
                    raise self.too_deep(i)
                powers.append(power)
                pending.append((kind, i))
                i += 1
                continue
            elif kind == "(" or kind == "[":
                depth += 1
                if depth > most:
                    raise self.too_deep(i)
                frames.append(Frame(GROUP, ")", i, i) if kind == "(" else Frame(LIST, "]", i, i))
                powers.append(0)
                pending.append(("", 0))
                i += 1
                continue
            elif kind == "|" or kind == "||":
                depth += 1
                if depth > most:
                    raise self.too_deep(i)
                frames.append(Frame(BARS, kind, i, i))
                powers.append(0)
                pending.append(("", 0))
                i += 1
                continue
            else:
                operand = self.rare_operand(i, frames[-1], powers[-1])
                if operand is not None:
                    values.append(operand)
                    starts.append(i)
                    i += 1
                else:
                    if powers[-1]:
                        raise self.no_operand(i, frames)
                    self.position = i
                    state = self.delimit(kind, False, values, starts, frames)
                    i = self.position
                    if state == DONE:
                        return values[0]
                    if state == OPERAND:
                        continue
                    powers.pop()
                    pending.pop()
                    depth -= 1
            # an operator is due ----------------------------------------------------------------------------
            while True:
                kind = kinds[i]
                entry = INFIX.get(kind, STOP)
                implicit = 0
                if entry is STOP:
                    frame = None
                    if kind == "(" and kinds[i - 1] == NAME and type(values[-1]) is Name:
                        if texts[i - 1][0] == "_":
                            self.dunder(i - 1)
                        frame = Frame(CALL, ")", i, starts.pop(), values.pop())
                    elif kind == "[" and kinds[i - 1] != NUMBER:
                        frame = Frame(INDEX, "]", i, starts.pop(), values.pop())
                    elif kind == ".":
                        self.position = i
                        frame = self.dot(values, starts, frames[-1], powers[-1])
                        if frame is None:
                            i = self.position
                            continue
                    elif (kind == NAME or kind == "(") and (kinds[i - 1] == ")" or kinds[i - 1] == NUMBER):
                        if kinds[i - 1] == NUMBER:
                            if kind == NAME:
                                self.check_number(i - 1)
                            if kinds[i - 2] in ("**", "^", "-"):
                                self.no_power_of_function(i)
                        entry, implicit = IMPLICIT, 1
                    if frame is not None:
                        depth += 1
                        if depth > most:
                            raise self.too_deep(frame.open)
                        frames.append(frame)
                        powers.append(0)
                        pending.append(("", 0))
                        i = frame.open + 1
                        break
                threshold, power, op = entry
                while (top := powers[-1]) >= threshold:
                    # the pending operator binds tighter: its operands are complete
                    powers.pop()
                    name, mark = pending.pop()
                    last = i - 1
                    right = values.pop()
                    start = starts.pop()
                    if top in SIGNS:
                        depth -= 1
                        start = mark
                    elif top != COMPARISON:
                        if top == POWER:
                            depth -= 1
                        left = values.pop()
                        start = starts.pop()
                    else:
                        ops = chains.pop()
                        first = len(values) - len(ops)
                        operands = (*values[first:], right)
                        start = starts[first]
                        del values[first:], starts[first:]
                    span = make(Span, (lines[start], columns[start], lines[last], columns[last] + len(texts[last])))
                    if top in SIGNS:
                        values.append(Unary(name, right, span))
                    elif top != COMPARISON:
                        values.append(Binary(name, left, right, mark == 1, span))
                    else:
                        values.append(Compare(operands, tuple(ops), span))
                    starts.append(start)
                if power == COMPARISON:
                    if top == COMPARISON:
                        chains[-1].append(op)
                    else:
                        chains.append([op])
                        powers.append(COMPARISON)
                        pending.append((op, 0))
                    i += 1
                    break
                if power:
                    if power == POWER:
                        depth += 1
                        if depth > most:
                            raise self.too_deep(i)
                    powers.append(power)
                    pending.append((op, implicit))
                    i += 1 - implicit
                    break
                self.position = i
                state = self.delimit(kind, True, values, starts, frames)
                i = self.position
                if state == DONE:
                    return values[0]
                if state == OPERAND:
                    break
                powers.pop()
                pending.pop()
                depth -= 1
