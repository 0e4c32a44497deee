"""The codes of types and shapes: data that `gradcli explain` prints; see the package for what a row says."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

SHAPES: dict[str, CodeDoc] = {
    "GC301": CodeDoc(
        "shapes do not fit",
        "Two arrays meet entry by entry, but an axis has two sizes and neither is 1.",
        "Axes are compared from the last; one of size 1 is repeated. Anything else has two meanings.",
        "a = [1, 2, 3]\nb = [1, 2]\na + b",
        "Slice one of them, or add an axis of size 1: a[:, None] + b.",
    ),
    "GC302": CodeDoc(
        "matrices do not fit",
        "The sizes that a product sums over differ, or an operand has no axis to sum over.",
        "Each entry of a product is a sum over one axis of both factors, so they must be equally long.",
        "[[1, 2], [3, 4]] @ [1, 2, 3]",
        "Transpose a factor with .T, or use * for entry by entry.",
    ),
    "GC303": CodeDoc(
        "no such axis",
        "The array does not have the axis, or the call names one axis twice.",
        "Axes count from 0, or from -1 backwards.",
        "sum([1, 2, 3], axis=1)",
        "Choose an axis from 0 up to the number of axes less one.",
    ),
    "GC304": CodeDoc(
        "entries do not fill the shape",
        "A reshape asks for a shape with another number of entries.",
        "A reshape keeps every entry, in C order.",
        "reshape([1, 2, 3], (2, 2))",
        "Choose sizes whose product is the number of entries; one of them may be -1.",
    ),
    "GC320": CodeDoc(
        "unknown option",
        "An option such as mode=, ord= or delta= has a value that the function does not know.",
        "Options choose between a few definitions; there is no nearest one.",
        'pad([1, 2], 1, mode="mirror")',
        "Choose one of the values that the message lists.",
    ),
    "GC321": CodeDoc(
        "matrix expected",
        "The function works on matrices, vectors or square matrices, and the array is none.",
        "Linear algebra reads the last two axes as rows and columns.",
        "inv([1, 2, 3])",
        "Give the array another axis with x[:, None], or reshape it.",
    ),
    "GC322": CodeDoc(
        "nothing to reduce",
        "A maximum, minimum, median or the like is taken over no entries.",
        "A sum of nothing is 0; these have no value for nothing.",
        "max([])",
        "Make sure that the axis has entries.",
    ),
    "GC323": CodeDoc(
        "einsum cannot be read",
        "The subscripts hold something else than letters, commas and an arrow, or do not fit the operands.",
        "Each letter names one axis, and an axis has one size.",
        'einsum("ij,jk->iz", [[1]], [[1]])',
        'Write one term per operand with one letter per axis, such as "ij,jk->ik".',
    ),
    "GC324": CodeDoc(
        "cannot be split",
        "The axis does not divide into so many equal parts.",
        "Equal parts need a size that the count divides.",
        "split([1, 2, 3], 2)",
        "Give the positions of the cuts, such as split(x, (1,)).",
    ),
    "GC331": CodeDoc(
        "value of the wrong shape",
        "A value given for a leaf does not end in the shape that the script gives the leaf.",
        "Axes in front of the leaf's own are read as a batch of points; the last ones must agree.",
        "w[2] = 0\nsum(w)  # with --at w=[1,2,3]",
        "Give it the shape that the message names.",
    ),
    "GC332": CodeDoc(
        "batches of different size",
        "Two values carry batch axes that do not broadcast together.",
        "One point takes one entry of every batch.",
        "x + y  # with --at x=[1,2],y=[1,2,3]",
        "Give all batched values the same number of points.",
    ),
    "GC333": CodeDoc(
        "value is no array of numbers",
        "A value given for a leaf is ragged, holds text, or is complex where real numbers are wanted.",
        "Values are numbers, in rows of equal length.",
        "x  # with --at x=[[1,2],[3]]",
        "Make the rows equally long; for complex values add --dtype complex128.",
    ),
}
