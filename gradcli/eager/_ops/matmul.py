"""Products of vectors, matrices and stacks of them: `matmul`, `addmm`, `einsum` and the like."""

from __future__ import annotations

import math
from string import ascii_letters
from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import need_kind
from gradcli.eager._engine.fastpath import again
from gradcli.eager._engine.record import declared, operation, record
from gradcli.eager._engine.rule_node import renamed
from gradcli.eager._ops.complex_tensors import conj
from gradcli.eager._ops.elementwise import mul
from gradcli.eager._ops.table import FUNCTION, formula, op
from gradcli.eager._ops.tensor_joining import diagonal
from gradcli.eager._ops.tensor_reductions import graph_norm
from gradcli.eager._ops.tensor_reductions import sum as summed
from gradcli.eager._ops.views import axis_of, expand, permute, reshape, squeeze, unsafe_view, unsqueeze, view
from gradcli.primitives import catalogue
from gradcli.primitives.broadcasting import stretch


def _product(function: Any, ranks: tuple[int, int], what: str, left: Tensor, right: Tensor) -> Tensor:
    """The product of operands of these ranks, recorded under the node of a function."""
    name = function.row.name
    _tensors(name, left, right)
    if (left.ndim, right.ndim) != ranks:
        raise RuntimeError(f"{name}() needs {what}")
    if left.dtype is not right.dtype:
        raise RuntimeError(f"matrix products need one dtype, not {left.dtype} and {right.dtype}")
    need_kind(name, (left, right), 1)
    _need_fit(left, right)
    return record(operation("matmul"), (left, right), {}, function.node, keep_integer=True)


def _need_fit(left: Tensor, right: Tensor) -> None:
    """RuntimeError for two matrices whose sizes do not fit."""
    if left.ndim == right.ndim == 2 and left.shape[1] != right.shape[0]:
        sizes = " and ".join(f"{rows}x{columns}" for rows, columns in (left.shape, right.shape))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes})")


def _tensors(name: str, left: Any, right: Any) -> None:
    for x in (left, right):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}() needs two tensors, not {type(x).__name__}")


@op(node="MmBackward0", fast=True)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    known = again(_MM, input, mat2)
    return _product(mm, (2, 2), "two matrices", input, mat2) if known is None else known


_MM = (operation("matmul"), mm.node, None, False)


@op(node="MvBackward0", fast=True)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    return _product(mv, (2, 1), "a matrix and a vector", input, vec)


@op(node="DotBackward0", fast=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    return _product(dot, (1, 1), "two vectors: 1D tensors expected", input, tensor)


@op(node="VdotBackward0", fast=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors, the first conjugated."""
    return renamed(dot(conj(input), other), vdot.node)


@op(node="BmmBackward0", fast=True)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two stacks of matrices."""
    return _product(bmm, (3, 3), "two stacks of matrices", input, mat2)


@op(node="SqueezeBackward4", fast=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, built from the same nodes as PyTorch builds it from."""
    known = again(_MM, input, other)
    if known is not None:
        return known
    _tensors("matmul", input, other)
    ranks = (input.ndim, other.ndim)
    if 0 in ranks:
        raise RuntimeError("both arguments of matmul need to be at least 1D")
    if ranks == (1, 1):
        return dot(input, other)
    if ranks == (2, 1):
        return mv(input, other)
    if ranks == (1, 2):
        return renamed(squeeze(mm(unsqueeze(input, 0), other), 0), matmul.node)
    if ranks == (2, 2):
        return mm(input, other)
    if ranks[0] == 1:
        return squeeze(matmul(unsqueeze(input, 0), other), -2)
    if ranks[1] == 1:
        return squeeze(matmul(input, unsqueeze(other, 1)), -1)
    if ranks[1] == 2:
        lead = tuple(input.shape[:-1])
        rows = reshape(input, (math.prod(lead), input.shape[-1]))
        return unsafe_view(mm(rows, other), (*lead, other.shape[-1]))
    stacks = np.broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    count = math.prod(stacks)
    left = reshape(expand(input, (*stacks, *input.shape[-2:])), (count, *input.shape[-2:]))
    right = reshape(expand(other, (*stacks, *other.shape[-2:])), (count, *other.shape[-2:]))
    return unsafe_view(bmm(left, right), (*stacks, input.shape[-2], other.shape[-1]))


def _times(x: Any, factor: float) -> Any:
    return x if factor == 1 else x * factor


def added_product(x: Any, left: Any, right: Any, *, beta: float, alpha: float) -> Any:
    """The formula of `addmm`."""
    product = _times(declared("matmul", left, right), alpha)
    return product if beta == 0 else _times(stretch(x, tuple(product.shape)), beta) + product


def _added(function: Any, ranks: tuple[int, int], xs: tuple[Tensor, Tensor, Tensor], **factors: float) -> Tensor:
    name, (input, left, right) = function.row.name, xs
    if (left.ndim, right.ndim) != ranks:
        raise RuntimeError(f"{name}() needs tensors of {ranks[0]} and {ranks[1]} dimensions after the first")
    if left.dtype is not right.dtype or input.dtype is not left.dtype:
        raise RuntimeError(f"{name}() needs one dtype, not {input.dtype}, {left.dtype} and {right.dtype}")
    _need_fit(left, right)
    return record(added_product, xs, factors, function.node, keep_integer=True)


@op(node="AddmmBackward0", inplace=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (the product of two matrices)."""
    return _added(addmm, (2, 2), (input, mat1, mat2), beta=beta, alpha=alpha)


@op(node="BaddbmmBackward0", inplace=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (the products of two stacks of matrices)."""
    return _added(baddbmm, (3, 3), (input, batch1, batch2), beta=beta, alpha=alpha)


@op("ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The product of every entry of one vector with every entry of another."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError("outer() needs two vectors: 1D tensors expected")
    return mul(view(input, (input.shape[0], 1)), vec2)  # type: ignore[no-any-return]


@op()
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of the products along the last axes."""
    if not input.ndim or not other.ndim:
        return mul(input, other)  # type: ignore[no-any-return]
    return tensordot(input, other, ([-1], [-1]))


@op(only=FUNCTION)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sums of products over some axes of each."""
    if isinstance(dims, int):
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left, right = ([axis_of(d, x.ndim) + x.ndim for d in ds] for x, ds in zip((a, b), dims, strict=True))
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise RuntimeError("tensordot() needs equal sizes in the contracted dimensions")
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [i for i in range(b.ndim) if i not in right]
    shape = (*[a.shape[i] for i in free_a], *[b.shape[i] for i in free_b])
    count = math.prod(a.shape[i] for i in left)
    first, second = permute(a, (*free_a, *left)), permute(b, (*right, *free_b))
    if not free_a and not free_b:
        rows = [x if x.ndim == 1 else reshape(x, (count,)) for x in (first, second)]
        return reshape(dot(*rows), ())
    return reshape(mm(reshape(first, (-1, count)), reshape(second, (count, -1))), shape)


@op()
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product."""
    rank = max(input.ndim, other.ndim)
    shape1 = (1,) * (rank - input.ndim) + tuple(input.shape)
    shape2 = (1,) * (rank - other.ndim) + tuple(other.shape)
    left = unsafe_view(input, tuple(n for i in shape1 for n in (i, 1)))
    right = unsafe_view(other, tuple(n for j in shape2 for n in (1, j)))
    shape = tuple(i * j for i, j in zip(shape1, shape2, strict=True))
    return unsafe_view(mul(left, right), shape)


@formula(pointwise=False, whole=True, node="LinalgCrossBackward0", least=1)
def cross(input: Tensor, other: Tensor, dim: int = -1) -> Any:
    """The cross product of vectors of three entries."""
    axis = axis_of(dim, len(input.shape))
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3")

    def rolled(v: Any, by: int) -> Any:
        return declared("roll", v, shift=-by, axis=axis)

    return rolled(input, 1) * rolled(other, 2) - rolled(input, 2) * rolled(other, 1)


@formula(pointwise=False, only=FUNCTION)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Any:
    """The distances between the rows of two matrices."""
    reshape = catalogue()["reshape"]
    *lead, rows, size = x1.shape
    *other, columns, _ = x2.shape
    shape = (*np.broadcast_shapes(tuple(lead), tuple(other)), rows, columns, size)
    first, second = reshape(x1, shape=(*lead, rows, 1, size)), reshape(x2, shape=(*other, 1, columns, size))
    return graph_norm(stretch(first, shape) - stretch(second, shape), ord=p, axis=-1, keepdims=False)


@op(only=FUNCTION)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products in Einstein's notation: `ij,jk->ik`. Raises RuntimeError where the equation does not fit."""
    if not isinstance(equation, str):
        kind = ValueError if not operands else TypeError
        raise kind("einsum() takes an equation in letters, and at least one operand after it")
    xs = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    inputs, output = _parsed(equation, xs)
    order = [*output, *sorted({letter for letters in inputs for letter in letters} - set(output))]
    sizes: dict[str, int] = {}
    aligned = []
    for x, letters in zip(xs, inputs, strict=True):
        x, letters = _diagonals(x, letters)
        for letter, n in zip(letters, x.shape, strict=True):
            if sizes.setdefault(letter, n) != n and 1 not in (n, sizes[letter]):
                raise RuntimeError(f"einsum(): operands do not broadcast: {letter} has sizes {sizes[letter]} and {n}")
            sizes[letter] = max(sizes[letter], n)
        full = letters
        for letter in order:
            if letter not in letters:
                x = unsqueeze(x, x.ndim)
                full += letter
        aligned.append((permute(x, [full.index(letter) for letter in order]), set(letters)))
    (total, _), rank = aligned[0], len(output)
    if len(aligned) == 1:
        axes = tuple(range(rank, len(order)))
        return summed(total, axes) if axes else total
    for i, (other, _) in enumerate(aligned[1:], 2):
        later = {letter for _, letters in aligned[i:] for letter in letters}
        total = _pair(total, other, [at for at in range(rank, len(order)) if order[at] not in later])
    return reshape(total, tuple(total.shape[:rank])) if total.ndim != rank else total


def _parsed(equation: str, xs: list[Tensor]) -> tuple[list[str], str]:
    """The letters of each operand and of the output, with letters that stand for `...`; RuntimeError for others."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(xs):
        raise RuntimeError(f"einsum(): {len(terms)} subscripts for {len(xs)} operands")
    free = [letter for letter in ascii_letters if letter not in inputs]
    counts = [x.ndim - len(term.replace("...", "")) for term, x in zip(terms, xs, strict=True)]
    dots = max([count for term, count in zip(terms, counts, strict=True) if "..." in term], default=0)
    if not arrow:
        plain = inputs.replace(",", "").replace("...", "")
        output = "..." + "".join(sorted(letter for letter in set(plain) if plain.count(letter) == 1))
    full = []
    for term, count, x in zip(terms, counts, xs, strict=True):
        full.append(term.replace("...", "".join(free[dots - count : dots])) if count >= 0 else term)
        if len(full[-1]) != x.ndim:
            raise RuntimeError(f"einsum(): the subscript {term} does not fit an operand of {x.ndim} dimensions")
    output = output.replace("...", "".join(free[:dots]))
    if len(set(output)) != len(output) or not set(output) <= set("".join(full)):
        raise RuntimeError(f"einsum(): the output {output} repeats a subscript, or names one that no operand has")
    return full, output


def _diagonals(x: Tensor, letters: str) -> tuple[Tensor, str]:
    """The diagonal where a subscript occurs twice in one operand."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    return x, letters


def _pair(left: Tensor, right: Tensor, out: list[int]) -> Tensor:
    """The sum of the products of two aligned operands over some axes, which keep size 1: through one bmm."""
    rank, alone = left.ndim, [(left.shape[i] != 1) - (right.shape[i] != 1) for i in range(left.ndim)]
    for i in out:
        left, right = summed(left, i, True) if alone[i] > 0 else left, summed(right, i, True) if alone[i] < 0 else right
    both, only_left, only_right = ([i for i in range(rank) if i not in out and alone[i] == k] for k in (0, 1, -1))
    groups = (both, only_left, out, only_right)
    lead, rows, size, columns = (math.prod(max(left.shape[i], right.shape[i]) for i in axes) for axes in groups)
    first = reshape(permute(left, [*both, *only_left, *out, *only_right]), (lead, rows, size))
    second = reshape(permute(right, [*both, *out, *only_right, *only_left]), (lead, size, columns))
    order = [*both, *only_left, *out, *only_right]
    shape = [1 if i in out else max(left.shape[i], right.shape[i]) for i in order]
    return permute(view(bmm(first, second), tuple(shape)), [order.index(i) for i in range(rank)])
