"""Formulas as a C function on arrays in row-major order: loops over entries, with a buffer for each product and sum.

An array is represented by its sizes and a function that writes its entry at given indices, so entry-by-entry operations
become one expression and need no buffer.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

from gradcli.base.diagnostics import error, visible
from gradcli.language.notation import SCRIPT, SIGN
from gradcli.language.substitution import expression_of
from gradcli.language.syntax import (
    Binary,
    Call,
    Compare,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    Subscript,
    Transpose,
    Tuple,
    Unary,
    is_reversal,
    is_whole,
    whole_number,
)
from gradcli.language.unparse import unparse
from gradcli.primitives import functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.base.results.calculations import SelfContained
    from gradcli.graph.primitive import Primitive
    from gradcli.language.syntax import Syntax

    Sizes = tuple[str, ...]

ROWS = ("softmax", "log_softmax", "logsumexp")
HELPERS = {
    "inverse": """\
/* The inverse of a matrix, into `to`, and its determinant: elimination with row pivots. */
static double inverse(size_t n, const double *from, double *to)
{
    double det = 1, *a = calloc(n*n, sizeof *a);
    for (size_t i = 0; i < n*n; i++) { a[i] = from[i]; to[i] = i/n == i%n; }
    for (size_t k = 0; k < n; k++) {
        size_t p = k;
        for (size_t i = k; i < n; i++) if (fabs(a[i*n + k]) > fabs(a[p*n + k])) p = i;
        for (size_t j = 0; p != k && j < n; j++) {
            double t = a[k*n + j]; a[k*n + j] = a[p*n + j]; a[p*n + j] = t;
            t = to[k*n + j]; to[k*n + j] = to[p*n + j]; to[p*n + j] = t;
        }
        double pivot = a[k*n + k];
        det *= p != k ? -pivot : pivot;
        for (size_t j = 0; j < n; j++) { a[k*n + j] /= pivot; to[k*n + j] /= pivot; }
        for (size_t i = 0; i < n; i++) {
            double factor = a[i*n + k];
            for (size_t j = 0; i != k && j < n; j++) {
                a[i*n + j] -= factor*a[k*n + j]; to[i*n + j] -= factor*to[k*n + j];
            }
        }
    }
    free(a);
    return det;
}""",
}
C_WORDS = frozenset(
    [
        *HELPERS, "value", "value_and_gradient", "main", "differs", "wrong", "pow", "calloc",
        "free", "puts", "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
        "short", "signed", "size_t", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
        "volatile", "while",
        # keywords of C23 and of compilers, and macros in small letters
        "alignas", "alignof", "asm", "bool", "constexpr", "false", "nullptr", "static_assert", "thread_local", "true",
        "typeof", "typeof_unqual", "assert", "complex", "errno", "far", "huge", "i386", "linux", "max", "min", "near",
        "small", "stderr", "stdin", "stdout", "unix", "L_ctermid", "L_cuserid", "L_tmpnam", "P_tmpdir",
    ]
)  # fmt: skip
CONSTANTS = {"pi": "3.14159265358979323846", "e": "2.71828182845904523536", "inf": "INFINITY", "nan": "NAN"}
LOGIC = {"and": "&&", "or": "||"}


def is_c_word(name: str) -> bool:
    """Whether a name is a word of C, of the headers or of the file, or may be a macro: capitals, or a `_` in front.

    >>> [is_c_word(name) for name in ("NAN", "M_E", "linux", "_x", "x", "A", "AB", "W1", "NAN_")]
    [True, True, True, True, False, False, False, False, False]
    """
    capitals = name.isupper() and sum(map(str.isalpha, name)) > 1 and len(name) > 2 and not name.endswith("_")
    return name in C_WORDS or name in functions_of_c() or name.startswith("_") or capitals


@cache
def functions_of_c() -> frozenset[str]:
    """The functions of math.h that operations of ours are, and those that a file may define."""
    known = functions().values()
    return frozenset([c_name(each) or each.name for each in known if c_name(each) or each.steady or each.elementary])


def c_name(primitive: Primitive) -> str | None:
    """What math.h calls an operation."""
    address = primitive.called("c")
    return None if address is None else address.removeprefix("c.")


class CArray(NamedTuple):
    """The sizes of an array, and the function that writes its entry at given indices.

    `name` is that of an array in memory, and `stored` says of one that its entries are read there, in whatever order.
    """

    sizes: Sizes
    at: Callable[..., str]
    name: str = ""
    stored: bool = False


class CCode:
    """Writes trees as statements, and the entries of arrays as expressions."""

    def __init__(self, function: SelfContained) -> None:
        self.known = {name: leaf_array(name, tuple(map(str, axes))) for name, axes in function.leaves.items()}
        self.numbers = set(function.sizes)
        self.taken = {*self.known, *self.numbers, *function.parts, "value"}
        self.outputs = {leaf: self.beside("grad", leaf) for leaf in function.gradient}
        self.lines: list[str] = []
        self.buffers: list[str] = []
        self.helpers: dict[str, str] = {}
        self.count = 0

    def fresh(self, stem: str) -> str:
        """A new name."""
        while True:
            self.count += 1
            name = f"{stem}{self.count}"
            if name not in self.taken:
                return name

    def beside(self, word: str, leaf: str) -> str:
        """A new name for an array of the shape of a leaf."""
        name = f"{word}_{leaf}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def helper(self, name: str) -> str:
        """The name of a helper, which the file defines."""
        self.helpers[name] = HELPERS[name]
        return name

    def written(self, primitive: Primitive) -> str | None:
        """The name of a function that the file defines for an operation that has a text in simpler ones, else None."""
        text, name = primitive.steady or primitive.elementary, primitive.name
        if text and name not in self.helpers:
            before = self.known, self.lines
            arguments = primitive.argument_names()
            self.known, self.lines = {argument: leaf_array(argument, ()) for argument in arguments}, []
            value = self.array(expression_of(text)).at()
            body = " ".join([*self.lines, f"return {value};"])
            self.known, self.lines = before
            declared = ", ".join([f"double {argument}" for argument in arguments])
            self.helpers[name] = f"static double {name}({declared}) {{ {body} }}"
        return name if text else None

    # --- statements -----------------------------------------------------------------------------------------------

    def loops(self, sizes: Sizes, body: Callable[..., list[str]]) -> None:
        """A statement for all indices of an array."""
        indices = [self.fresh("i") for _ in sizes]
        for depth, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            self.lines.append(f"{'    ' * depth}for (size_t {index} = 0; {index} < {size}; {index}++) {{")
        inner = "    " * len(sizes)
        self.lines += [inner + line for line in body(*indices)]
        self.lines += ["    " * depth + "}" for depth in reversed(range(len(sizes)))]

    def buffer(self, array: CArray, name: str | None = None) -> CArray:
        """A buffer for an array, so that its entries are computed only once."""
        name = name or self.fresh("t")
        if not array.sizes:
            self.lines.append(f"double {name} = {array.at()};")
            return CArray((), lambda: name)
        self.buffers.append(name)
        self.lines.append(f"double *{name} = calloc({'*'.join(array.sizes)}, sizeof *{name});")
        kept = leaf_array(name, array.sizes)
        self.loops(array.sizes, lambda *at: [f"{kept.at(*at)} = {array.at(*at)};"])
        return kept

    def store(self, to: CArray, array: CArray) -> None:
        """Statements that put an array into memory; it may broadcast."""
        whole = spread([to, array], lambda at: at(array))
        self.loops(to.sizes, lambda *at: [f"{to.at(*at)} = {whole.at(*at)};"])

    def total(self, size: str, entry: Callable[[str], str], start: str = "0", join: str = "+=") -> str:
        """The name of a number that a loop computes."""
        name, index = self.fresh("s"), self.fresh("i")
        step = f"{name} += {entry(index)};" if join == "+=" else f"{name} = {join}({name}, {entry(index)});"
        step = f"{name} *= {entry(index)};" if join == "*=" else step
        self.lines += [f"double {name} = {start};", f"for (size_t {index} = 0; {index} < {size}; {index}++) {step}"]
        return name

    def reduced(self, array: CArray, start: str = "0", join: str = "+=") -> CArray:
        """All entries of an array reduced to one number."""
        if not array.sizes:
            return array
        kept = self.buffer(array)
        count = "*".join(array.sizes)
        flat = leaf_array(kept.name, (f"({count})",))
        name = self.total(count, flat.at, start, join)
        return CArray((), lambda: name)

    # --- expressions ----------------------------------------------------------------------------------------------

    def array(self, node: Syntax) -> CArray:
        """The array for a syntax tree."""
        if isinstance(node, Number):
            text = {"True": "1.0", "False": "0.0"}.get(node.text, node.text)
            text = text if "." in text or "e" in text else f"{text}.0"
            return CArray((), lambda: text)
        if isinstance(node, Name):
            if node.id in self.known:
                return self.known[node.id]
            text = f"(double){node.id}" if node.id in self.numbers else CONSTANTS.get(node.id, "")
            if text:
                return CArray((), lambda: text)
        if isinstance(node, Unary):
            inner = self.array(node.operand)
            sign = "(double)!" if node.op == "not" else node.op
            return CArray(inner.sizes, lambda *at: f"({sign}{inner.at(*at)})")
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Transpose):
            inner = self.array(node.value)
            return CArray(inner.sizes[::-1], lambda *at: inner.at(*at[::-1]), stored=inner.stored)
        if isinstance(node, Compare):
            parts = [self.array(operand) for operand in node.operands]
            pairs = list(zip(parts, node.ops, parts[1:], strict=False))

            def compared(at: Callable[[CArray], str]) -> str:
                return f"(double)({' && '.join(f'{at(a)} {sign} {at(b)}' for a, sign, b in pairs)})"

            return spread(parts, compared)
        if isinstance(node, List):
            return self.listed(node)
        if isinstance(node, Subscript):
            return self.subscript(node)
        if isinstance(node, Call):
            return self.call(node)
        raise lacks(unparse(node))

    def binary(self, node: Binary) -> CArray:
        """An operator between two operands."""
        left, right = self.array(node.left), self.array(node.right)
        if node.op == "@":
            return self.product(left, right)
        if node.op == "**":
            power = node.right
            if isinstance(power, Number) and power.text == "2":
                kept = left if isinstance(node.left, Name) else self.buffer(left)
                return CArray(kept.sizes, lambda *at: f"({kept.at(*at)}*{kept.at(*at)})")
            return spread([left, right], lambda at: f"pow({at(left)}, {at(right)})")
        if node.op in LOGIC:
            return spread([left, right], lambda at: f"(double)({at(left)} {LOGIC[node.op]} {at(right)})")
        sign = node.op
        return spread([left, right], lambda at: f"({at(left)} {sign} {at(right)})")

    def product(self, left: CArray, right: CArray) -> CArray:
        """A product of matrices and vectors."""
        left, right = self.stored(left), self.stored(right)
        sizes = (*left.sizes[:-1], *right.sizes[1:])
        size = left.sizes[-1]
        rows = len(left.sizes) - 1
        if not sizes:
            name = self.total(size, lambda k: f"{left.at(k)}*{right.at(k)}")
            return CArray((), lambda: name)
        name = self.fresh("t")
        self.buffers.append(name)
        self.lines.append(f"double *{name} = calloc({'*'.join(sizes)}, sizeof *{name});")
        kept = leaf_array(name, sizes)

        def entry(*at: str) -> list[str]:
            k, entry = self.fresh("i"), kept.at(*at)
            a, b = left.at(*at[:rows], k), right.at(k, *at[rows:])
            return [f"{entry} = 0;", f"for (size_t {k} = 0; {k} < {size}; {k}++) {entry} += {a}*{b};"]

        self.loops(sizes, entry)
        return kept

    def stored(self, array: CArray) -> CArray:
        """An array whose entries are cheap to read, buffered if necessary."""
        return array if array.stored else self.buffer(array)

    def listed(self, node: List) -> CArray:
        """A list of entries as a buffer."""
        rows = [row.items if isinstance(row, List) else (row,) for row in node.items]
        entries = [self.array(item).at() for row in rows for item in row]
        name = self.fresh("t")
        self.lines.append(f"double {name}[] = {{{', '.join(entries)}}};")
        deep = isinstance(node.items[0], List)
        return leaf_array(name, (str(len(rows)), str(len(rows[0]))) if deep else (str(len(entries)),))

    def subscript(self, node: Subscript) -> CArray:
        """Entries, rows and slices of an array, and sizes."""
        if isinstance(node.value, Call) and node.value.function.id == "shape":
            size = self.size(node)
            return CArray((), lambda: f"(double){size}")
        if any(isinstance(item, NewAxis) for item in node.items):
            if len(node.items) != 2 or not isinstance(node.items[0], Slice):
                raise lacks(unparse(node))
            part = self.subscript(Subscript(node.value, node.items[:1], node.span))
            if len(part.sizes) != 1:  # not a column
                raise lacks(unparse(node))
            return CArray((*part.sizes, "1"), lambda i, j: part.at(i), stored=part.stored)
        inner = self.array(node.value)
        sizes: list[str] = []
        places: list[tuple[str, str, str]] = []  # before the next index, and behind it, or a fixed position
        items = [*node.items, *[None] * (len(inner.sizes) - len(node.items))]
        for item, size in zip(items, inner.sizes, strict=True):
            if item is None or isinstance(item, Slice):
                start, step = self.stretch(item, size)
                sizes.append(size if item is None or item.lower is item.upper is None else self.length(item, size))
                places.append((f"({start} {step} ", ")", "") if start else ("", "", ""))
            elif isinstance(item, Name) and self.known[item.id].sizes and len(node.items) == 1:
                labels = self.known[item.id]
                sizes += labels.sizes
                places.append((f"(size_t){item.id}[", "]", ""))
            else:
                before_end = from_end(item)
                places.append(("", "", unparse(item) if before_end is None else f"({size} - {before_end})"))

        def at(*indices: str) -> str:
            left = list(indices)
            return inner.at(*[fixed or f"{before}{left.pop(0)}{behind}" for before, behind, fixed in places])

        labelled = any(behind == "]" for _, behind, _ in places)
        return CArray(tuple(sizes), at, stored=inner.stored and not labelled)

    def stretch(self, item: Slice | None, size: str) -> tuple[str, str]:
        """The start of a slice, empty for a whole axis, and its direction: + or -."""
        if item is None or is_whole(item):
            return "", "+"
        if is_reversal(item):
            return f"{size} - 1", "-"
        if item.step is None or whole_number(item.step) == 1:
            return "0" if item.lower is None else unparse(item.lower), "+"
        raise lacks(unparse(item))

    def length(self, item: Slice, size: str) -> str:
        """The length of a slice."""
        if from_end(item.lower) is not None:
            raise lacks(unparse(item))
        low = "0" if item.lower is None else unparse(item.lower)
        before_end = from_end(item.upper)
        if before_end is not None:
            return f"({size} - {before_end} - {low})"
        return f"({size if item.upper is None else unparse(item.upper)} - {low})"

    def call(self, node: Call) -> CArray:
        """A call of a function."""
        name = node.function.id
        if node.keywords and not (name in (*ROWS, "sum", "max", "min") and len(node.keywords) == 1):
            raise lacks(unparse(node))
        if name in ("ones", "zeros", "eye"):
            sizes = tuple(map(self.size, node.args)) * (2 if name == "eye" and len(node.args) == 1 else 1)
            if name == "eye":
                return CArray(sizes, lambda i, j: f"(double)({i} == {j})")
            return CArray(sizes, lambda *_: "1.0" if name == "ones" else "0.0")
        if name == "reshape":
            return self.column(node)
        if name == "pad" and len(node.args) == 2 and isinstance(node.args[1], Tuple):
            return self.padded(self.array(node.args[0]), node.args[1])
        args = [self.array(arg) for arg in node.args]
        primitive = functions().get(name)
        own = None if primitive is None else c_name(primitive) or self.written(primitive)
        if primitive is not None and own is not None:
            if len(args) != primitive.arity:
                raise lacks(unparse(node))
            return spread(args, lambda at: f"{own}({', '.join(map(at, args))})")
        if name == "where":
            test, yes, no = args
            return spread(args, lambda at: f"({at(test)} ? {at(yes)} : {at(no)})")
        if name == "len":
            return CArray((), lambda: f"(double){args[0].sizes[0]}")
        if name == "outer":
            left, right = args
            return CArray((*left.sizes, *right.sizes), lambda i, j: f"({left.at(i)}*{right.at(j)})")
        if name == "diag" and len(args[0].sizes) == 1:
            return CArray(args[0].sizes * 2, lambda i, j: f"({i} == {j} ? {args[0].at(i)} : 0.0)")
        k = whole_number(node.args[1]) if len(args) == 2 else 0
        if name in ("tril", "triu") and len(args[0].sizes) == 2 and k is not None:
            side = f"+ {k} {'<=' if name == 'triu' else '>='}"
            return CArray(args[0].sizes, lambda i, j: f"((long)({i}) {side} (long)({j}) ? {args[0].at(i, j)} : 0.0)")
        if name in ("inv", "det"):
            return self.inverse(args[0], name)
        if name == "logdet":
            det = self.inverse(args[0], "det").at()
            return CArray((), lambda: f"log({det})")
        return self.reduction(node, name, args)

    def size(self, node: Syntax) -> str:
        """The size of an axis."""
        whole = node.value if isinstance(node, Subscript) else node
        if isinstance(whole, Call) and whole.function.id in ("len", "shape"):
            axis = whole_number(node.items[0]) if isinstance(node, Subscript) else 0
            if axis is None:
                raise lacks(unparse(node))
            return self.array(whole.args[0]).sizes[axis]
        if isinstance(node, (Name, Number)):
            return unparse(node)
        raise lacks(unparse(node))

    def padded(self, inner: CArray, widths: Tuple) -> CArray:
        """An array in a border of zeros."""
        pairs = [pair.items for pair in widths.items if isinstance(pair, Tuple)] or [widths.items]
        if len(pairs) != len(inner.sizes) or any(len(pair) != 2 for pair in pairs):
            raise lacks(unparse(widths))
        before = [unparse(pair[0]) for pair in pairs]
        sizes = [
            f"({size} + {unparse(low)} + {unparse(high)})" for size, (low, high) in zip(inner.sizes, pairs, strict=True)
        ]

        def at(*indices: str) -> str:
            places = [f"({i} - {low})" for i, low in zip(indices, before, strict=True)]
            inside = [f"{place} < {size}" for place, size in zip(places, inner.sizes, strict=True)]  # unsigned
            return f"({' && '.join(inside)} ? {inner.at(*places)} : 0.0)"

        return CArray(tuple(sizes), at)

    def column(self, node: Call) -> CArray:
        """A vector as a column or a row."""
        inner = self.array(node.args[0])
        sizes = node.args[1].items if hasattr(node.args[1], "items") else node.args[1:]
        shape = tuple(map(self.size, sizes))
        if len(inner.sizes) == 1 and len(shape) == 2 and "1" in shape:
            return CArray(shape, lambda i, j: inner.at(i if shape[1] == "1" else j), stored=inner.stored)
        raise lacks(unparse(node))

    def reduction(self, node: Call, name: str, args: Sequence[CArray]) -> CArray:
        """A reduction of all entries such as a sum, mean or norm, or a function of a whole vector."""
        array = args[0]
        last = not node.keywords or whole_number(node.keywords[0].value) in (-1, len(array.sizes) - 1)
        whole = len(array.sizes) == 1 or (name != "logsumexp" or node.keywords)
        if name in ROWS and array.sizes and last and whole:
            return self.exponentials(name, array)
        if node.keywords:
            key, value = node.keywords[0].name, whole_number(node.keywords[0].value)
            if key != "axis" or (len(array.sizes) > 1 and name not in ("sum",)):
                raise lacks(unparse(node))
            if len(array.sizes) == 2:
                rows = value in (-1, 1)
                ones = CArray((array.sizes[1 if rows else 0],), lambda *_: "1.0")
                return self.product(array, ones) if rows else self.product(ones, array)
        count = CArray((), lambda: f"(double)({'*'.join(array.sizes) or '1'})")
        if name == "sum":
            return self.reduced(array)
        if name == "mean":
            return divided(self.reduced(array), count)
        if name == "prod":
            return self.reduced(array, "1", "*=")
        if name in ("max", "min") and len(args) == 1:
            kind = "fmax" if name == "max" else "fmin"
            return self.buffer(self.reduced(array, "-INFINITY" if name == "max" else "INFINITY", kind))
        if name == "trace" and len(array.sizes) == 2:
            kept = self.stored(array)
            text = self.total(array.sizes[0], lambda i: kept.at(i, i))
            return CArray((), lambda: text)
        if name == "norm" and (len(args) == 1 or whole_number(node.args[1]) in (1, 2)):
            kept = self.stored(array)
            if len(args) == 2 and whole_number(node.args[1]) == 1:
                return self.reduced(CArray(array.sizes, lambda *at: f"fabs({kept.at(*at)})"))
            squares = self.reduced(CArray(array.sizes, lambda *at: f"{kept.at(*at)}*{kept.at(*at)}"))
            return CArray((), lambda: f"sqrt({squares.at()})")
        if name in ("var", "std") and len(args) == 1:
            kept = self.stored(array)
            mean = self.buffer(divided(self.reduced(kept), count))
            squares = self.reduced(CArray(array.sizes, lambda *at: f"pow({kept.at(*at)} - {mean.at()}, 2)"))
            text = f"({squares.at()}/{count.at()})"
            return CArray((), lambda: text if name == "var" else f"sqrt({text})")
        if name == "cumsum" and len(array.sizes) == 1:
            kept = self.stored(array)
            sums = self.buffer(CArray(array.sizes, kept.at))
            self.lines += [f"for (size_t i = 1; i < {array.sizes[0]}; i++) {sums.at('i')} += {sums.at('i - 1')};"]
            return sums
        raise lacks(unparse(node))

    def along_rows(self, array: CArray, start: str, join: str) -> CArray:
        """The entries along the last axis reduced to one number."""
        *outer, last = array.sizes
        kept = self.buffer(CArray(tuple(outer), lambda *at: start))

        def entry(*at: str) -> list[str]:
            k, place = self.fresh("i"), kept.at(*at)
            value = array.at(*at, k)
            step = f"{place} += {value};" if join == "+=" else f"{place} = {join}({place}, {value});"
            return [f"for (size_t {k} = 0; {k} < {last}; {k}++) {step}"]

        self.loops(kept.sizes, entry)
        return kept

    def exponentials(self, name: str, array: CArray) -> CArray:
        """softmax, log_softmax or logsumexp along the last axis."""
        kept = self.stored(array)
        most = self.along_rows(kept, "-INFINITY", "fmax")
        powers = CArray(kept.sizes, lambda *at: f"exp({kept.at(*at)} - {most.at(*at[:-1])})")
        powers = self.buffer(powers) if name == "softmax" else powers
        total = self.along_rows(powers, "0", "+=")
        if name == "softmax":
            return CArray(kept.sizes, lambda *at: f"({powers.at(*at)}/{total.at(*at[:-1])})")
        if name == "log_softmax":
            return CArray(kept.sizes, lambda *at: f"({kept.at(*at)} - {most.at(*at[:-1])} - log({total.at(*at[:-1])}))")
        return CArray(most.sizes, lambda *at: f"({most.at(*at)} + log({total.at(*at)}))")

    def inverse(self, array: CArray, name: str) -> CArray:
        """The inverse or the determinant of a matrix."""
        kept = self.buffer(array)
        to, det, size = self.fresh("t"), self.fresh("s"), array.sizes[0]
        self.buffers.append(to)
        self.lines.append(f"double *{to} = calloc({size}*{size}, sizeof *{to});")
        self.lines.append(f"double {det} = {self.helper('inverse')}({size}, {kept.name}, {to});")
        self.lines += [f"(void){det};"]
        return leaf_array(to, array.sizes) if name == "inv" else CArray((), lambda: det)


def leaf_array(name: str, sizes: Sizes) -> CArray:
    """An array in memory; a number is a variable."""

    def at(*indices: str) -> str:
        if not indices:
            return name
        place = indices[0]
        for index, size in zip(indices[1:], sizes[1:], strict=True):
            place = (
                f"{place}*{size} + {index}"
                if place.isidentifier() or place.isdigit()
                else f"({place})*{size} + {index}"
            )
        return f"{name}[{place}]"

    return CArray(sizes, at, name, stored=bool(sizes))


def from_end(position: Syntax | None) -> str | None:
    """How far a negative position is from the end of an axis; None for one that counts from the start."""
    if isinstance(position, Unary) and position.op == "-":
        return SCRIPT.text(position.operand, SIGN)
    return None


def divided(left: CArray, right: CArray) -> CArray:
    """A number divided by another."""
    return CArray((), lambda: f"({left.at()}/{right.at()})")


def spread(arrays: Sequence[CArray], entry: Callable[[Callable[[CArray], str]], str]) -> CArray:
    """An operation entry by entry on arrays that broadcast."""
    rank = max(len(array.sizes) for array in arrays)
    padded = [("1",) * (rank - len(array.sizes)) + array.sizes for array in arrays]
    sizes = tuple([next((size for size in axis if size != "1"), "1") for axis in zip(*padded, strict=True)])

    def at(*indices: str) -> str:
        def of(array: CArray) -> str:
            last = indices[rank - len(array.sizes) :]
            return array.at(*["0" if size == "1" else i for size, i in zip(array.sizes, last, strict=True)])

        return entry(of)

    return CArray(sizes, at)


def lacks(text: str) -> Exception:
    """The error for a function without C code."""
    return error("GC512", f"--emit c has no counterpart for `{visible(text)}`", help="--emit numpy has more functions")


def c_file(function: SelfContained) -> str:
    """A file with the function, and a `main` that tests its values."""
    code = CCode(function)
    for name, text in function.parts.items():
        code.known[name] = code.buffer(code.array(expression_of(text)), name)
    value = code.array(expression_of(function.value))
    code.lines.append(f"double value = {value.at()};")
    for leaf, text in function.gradient.items():
        partial = code.array(expression_of(text))
        axes = tuple(map(str, function.leaves[leaf]))
        if not axes:
            code.lines.append(f"*{code.outputs[leaf]} = {partial.at()};")
            continue
        code.store(leaf_array(code.outputs[leaf], axes), partial)
    sizes = [f"size_t {name}" for name in function.sizes]
    inputs = [f"const double *{name}" if axes else f"double {name}" for name, axes in function.leaves.items()]
    outputs = [f"double *{name}" for name in code.outputs.values()]
    frees = [f"free({name});" for name in code.buffers]
    counts = Counter(re.findall(r"\w+", "\n".join(code.lines)))
    unread = [f"(void){name};" for name in (*function.sizes, *function.leaves) if not counts[name]]
    unread += [f"(void){name};" for name in function.parts if counts[name] == 1]  # it is defined
    shapes = ", ".join(f"{name}: {' x '.join(map(str, axes)) or 'number'}" for name, axes in function.leaves.items())
    script = function.expression.replace("*/", "* /")
    helpers = [line for text in code.helpers.values() for line in (*text.split("\n"), "")]
    return "\n".join(
        [
            "/* The value and the gradient of", *(f"     {line}" for line in script.splitlines()),
            f"   Shapes: {shapes}; arrays are in row-major order. Made by gradcli derive --emit c.",
            *(f"   {line}" for line in function.conditions), "*/", "",
            "#include <math.h>", "#include <stddef.h>", "#include <stdio.h>", "#include <stdlib.h>", "", *helpers,
            "/* The value; the gradient goes to the arrays at the end, which have the shapes of the leaves. */",
            f"double value_and_gradient({', '.join([*sizes, *inputs, *outputs])})", "{",
            *(f"    {line}" for line in [*code.lines, *unread, *frees]), "    return value;", "}", "",
            *test_lines(function, code),
        ]
    )  # fmt: skip


def test_lines(function: SelfContained, code: CCode) -> list[str]:
    """A `main` that compares the function at one point with gradcli's numbers."""
    lines = [
        "#ifndef WITHOUT_TEST",
        "static int differs(double a, double b) { return fabs(a - b) > 1e-9*fabs(b) + 1e-12; }", "",
        "int main(void)", "{", "    int wrong = 0;",
    ]  # fmt: skip
    for name in function.leaves:
        lines.append(f"    double {declared(name, function.at[name])};")
    right = {leaf: code.beside("right", leaf) for leaf in function.numbers}
    for leaf, value in function.numbers.items():
        lines += [
            f"    double {code.outputs[leaf]}[{len(flat(value))}];",
            f"    double {declared(right[leaf], [value])};",
        ]
    sizes = [str(function.shape_of(name)) for name in function.sizes]
    arguments = ", ".join([*sizes, *function.leaves, *code.outputs.values()])
    lines.append(f"    wrong |= differs(value_and_gradient({arguments}), {function.number!r});")
    for leaf, value in function.numbers.items():
        entries = f"{code.outputs[leaf]}[i], {right[leaf]}[i]"
        lines.append(f"    for (size_t i = 0; i < {len(flat(value))}; i++) wrong |= differs({entries});")
    said = 'wrong ? "the values are wrong" : "value and gradient are right at the point of the test"'
    return [*lines, f"    puts({said});", "    return wrong;", "}", "#endif", ""]


def declared(name: str, value: object) -> str:
    """A variable with its value: a number, or the entries of an array in order."""
    if not isinstance(value, list):
        return f"{name} = {value!r}"
    return f"{name}[] = {{{', '.join(map(repr, flat(value)))}}}"


def flat(value: object) -> list[float]:
    """The entries of nested lists in order."""
    return [entry for item in value for entry in flat(item)] if isinstance(value, list) else [value]  # type: ignore[list-item]
