"""Einstein's notation and tensors go in, the sums of products come out, through permutations and one bmm per pair."""

from __future__ import annotations

import math
from typing import Any

from gradcli.eager.arranging import diagonal
from gradcli.eager.matrices import bmm
from gradcli.eager.movement import permute, reshape, unsqueeze, view
from gradcli.eager.reductions import sum as summed
from gradcli.eager.tensor import Tensor


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
        held = [letter for letter in order if letter in letters]
        for letter in order:
            if letter not in letters:
                x = unsqueeze(x, x.ndim)
                letters = [*letters, letter]
        x = permute(x, [letters.index(letter) for letter in order])
        aligned.append((x, set(held)))
    total, known = aligned[0]
    rank = len(output)
    if len(aligned) == 1:
        axes = tuple(range(rank, len(order)))
        return summed(total, axes) if axes else total
    for i, (other, held_by_other) in enumerate(aligned[1:], 2):
        later = {letter for _, rest in aligned[i:] for letter in rest}
        out = [at for at, letter in enumerate(order) if at >= rank and letter not in later]
        total = _pair(total, other, out)
        known |= held_by_other
    return reshape(total, tuple(total.shape[:rank])) if total.ndim != rank else total


def _parsed(equation: str, xs: list[Tensor]) -> tuple[list[list[str]], list[str]]:
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise RuntimeError(f"einsum(): {len(terms)} subscripts for {len(xs)} operands")
    dots = max(
        [x.ndim - len(term.replace("...", "")) for term, x in zip(terms, xs, strict=True) if "..." in term] or [0]
    )
    inputs = []
    for term, x in zip(terms, xs, strict=True):
        count = x.ndim - len(term.replace("...", "")) if "..." in term else 0
        names = [f".{dots - count + i}" for i in range(count)]
        head, _, tail = term.partition("...")
        letters = [*head, *names, *tail]
        if len(letters) != x.ndim:
            raise RuntimeError(f"einsum(): the subscript {term} does not fit an operand of {x.ndim} dimensions")
        inputs.append(letters)
    ellipsis = [f".{i}" for i in range(dots)]
    if arrow:
        head, _, tail = right.partition("...")
        output = [*head, *(ellipsis if "..." in right else []), *tail]
    else:
        flat = [letter for letters in inputs for letter in letters if letter[0] != "."]
        output = [*ellipsis, *sorted(letter for letter in set(flat) if flat.count(letter) == 1)]
    known = {letter for letters in inputs for letter in letters}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise RuntimeError(f"einsum(): the output {right} repeats a subscript, or names one that no operand has")
    return inputs, output


def _diagonals(x: Tensor, letters: list[str]) -> tuple[Tensor, list[str]]:
    """The diagonal where a subscript occurs twice in one operand."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            letters = [*[one for i, one in enumerate(letters) if i not in (first, second)], letter]
    return x, letters


def _pair(left: Tensor, right: Tensor, out: list[int]) -> Tensor:
    """The sum of the products of two aligned operands over some axes, which keep size 1: through one bmm."""
    rank = left.ndim
    both, only_left, only_right = [], [], []
    for i in range(rank):
        a, b = left.shape[i] != 1, right.shape[i] != 1
        if i in out:
            if a and not b:
                left = summed(left, i, True)
            elif b and not a:
                right = summed(right, i, True)
        elif a and b:
            both.append(i)
        elif a:
            only_left.append(i)
        elif b:
            only_right.append(i)
        else:
            both.append(i)
    over = list(out)
    lead = math.prod(left.shape[i] for i in both)
    rows = math.prod(left.shape[i] for i in only_left)
    inner_size = math.prod(left.shape[i] for i in over)
    columns = math.prod(right.shape[i] for i in only_right)
    one = reshape(permute(left, [*both, *only_left, *over, *only_right]), (lead, rows, inner_size))
    other = reshape(permute(right, [*both, *over, *only_right, *only_left]), (lead, inner_size, columns))
    shape = [
        *[left.shape[i] for i in both],
        *[left.shape[i] for i in only_left],
        *[1 for _ in over],
        *[right.shape[i] for i in only_right],
    ]
    order = [*both, *only_left, *over, *only_right]
    product = view(bmm(one, other), tuple(shape))
    return permute(product, [order.index(i) for i in range(rank)])


TABLE = {"einsum": einsum}
