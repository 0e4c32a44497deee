"""Sums and products over an index, cases, and matrices written out in LaTeX."""

from __future__ import annotations

import re

from gradcli.language.latex.latex_functions import Functions
from gradcli.language.latex.latex_tokens import Part

MATRIX_ENVIRONMENTS = {"matrix": "", "pmatrix": "", "bmatrix": "", "vmatrix": "det"}


class Sums(Functions):
    """What has rows or an index."""

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
