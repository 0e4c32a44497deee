"""Calls of functions on arrays beside what NumPy or SciPy gives: a script, a reference, the shapes of x, y and z.

Values are drawn by the shapes; a case may name data i and j (positions) that is not differentiated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.special

if TYPE_CHECKING:
    from collections.abc import Callable

Arrays = dict[str, np.ndarray]


class Call(NamedTuple):
    """A script on leaves x, y, z and data i, j; what it should give; how to draw the leaves."""

    script: str
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    data: tuple[Any, ...] = ()
    shift: str = ""  # "dominant": a multiple of I is added; "definite": the matrix times its transpose, plus I

    def values(self) -> Arrays:
        """Numbers between -1.5 and 1.5, no two of them close, none close to 0."""
        random = np.random.default_rng(len(self.script) + sum(map(len, self.shapes)))
        found = {}
        for name, shape in zip("xyz", self.shapes, strict=False):
            size = int(np.prod(shape))
            places = random.permutation(size) - size // 2 + random.uniform(0.25, 0.75, size)
            value = (places * 3 / size).reshape(shape)
            if self.shift and name == "x":
                unit = np.eye(shape[-1])
                value = value @ value.swapaxes(-1, -2) + unit if self.shift == "definite" else value + 4 * unit
            found[name] = value
        return found

    def constants(self) -> Arrays:
        return {name: np.asarray(value, dtype=float) for name, value in zip("ij", self.data, strict=False)}


A, T, V = (2, 3), (2, 3, 4), (3,)
S, B = (3, 3), (2, 3, 3)


def _sym(x: Any) -> Any:
    return (x + x.swapaxes(-1, -2)) / 2


def _whole(i: Any) -> Any:
    return i.astype(int)


SHAPES = [
    Call("reshape(x, 3, -1)", lambda x: x.reshape(3, -1), (A,)),
    Call("transpose(x)", lambda x: x.T, (T,)),
    Call("transpose(x, (1, -1, 0))", lambda x: x.transpose(1, -1, 0), (T,)),
    Call("swapaxes(x, 0, -1)", lambda x: x.swapaxes(0, -1), (T,)),
    Call("squeeze(x)", np.squeeze, ((1, 3, 1),)),
    Call("squeeze(x, -1)", lambda x: np.squeeze(x, -1), ((1, 3, 1),)),
    Call("expand_dims(x, (0, -1))", lambda x: np.expand_dims(x, (0, -1)), (A,)),
    Call("broadcast_to(x, (4, 2, 3))", lambda x: np.broadcast_to(x, (4, 2, 3)), (A,)),
    Call("flatten(x)", np.ravel, (T,)),
    Call("flip(x, 1)", lambda x: np.flip(x, 1), (A,)),
    Call("roll(x, -1)", lambda x: np.roll(x, -1), (A,)),
    Call("roll(x, (1, -2), (0, 1))", lambda x: np.roll(x, (1, -2), (0, 1)), (A,)),
    Call("concatenate((x, y), axis=-1)", lambda x, y: np.concatenate((x, y), -1), (A, (2, 2))),
    Call("concatenate(x, axis=1)", lambda x: np.concatenate(x, 1), (T,)),
    Call("concatenate((x, y), axis=None)", lambda x, y: np.concatenate((x, y), None), (A, V)),
    Call("stack((x, y), axis=1)", lambda x, y: np.stack((x, y), 1), (A, A)),
    Call("split(x, (1, -1), 1)[1]", lambda x: np.split(x, (1, -1), 1)[1], ((2, 4),)),
    Call("tile(x, (2, 1, 3))", lambda x: np.tile(x, (2, 1, 3)), (A,)),
    Call("repeat(x, 3, axis=1)", lambda x: np.repeat(x, 3, 1), (T,)),
    Call("repeat(x, (2, 0, 1), axis=1)", lambda x: np.repeat(x, (2, 0, 1), 1), (A,)),
    Call("pad(x, ((1, 2), (0, 3)))", lambda x: np.pad(x, ((1, 2), (0, 3))), (A,)),
    Call("pad(x, 1, constant_values=y)", lambda x, y: np.pad(x, 1, constant_values=y), (A, ())),
    *(
        Call(f'pad(x, ((1, 2), (5, 0)), mode="{mode}")', lambda x, m=mode: np.pad(x, ((1, 2), (5, 0)), m), (A,))
        for mode in ("edge", "reflect", "symmetric", "wrap")
    ),
    Call("diag(x, -1)", lambda x: np.diag(x, -1), (V,)),
    Call("diag(x, 1)", lambda x: np.diag(x, 1), ((3, 4),)),
    Call("moveaxis(x, 0, 1)", lambda x: np.moveaxis(x, 0, 1), (T,)),
    Call("moveaxis(x, (0, -1), (-1, 0))", lambda x: np.moveaxis(x, (0, -1), (-1, 0)), (T,)),
    Call("diagonal(x, -1, 2, 0)", lambda x: np.diagonal(x, -1, 2, 0), (T,)),
    Call("diagonal(x, 5)", lambda x: np.diagonal(x, 5), (A,)),
    Call("diff(x, 2)", lambda x: np.diff(x, 2), (T,)),
    Call("diff(x, axis=0)", lambda x: np.diff(x, axis=0), (T,)),
    Call("diff(x, 0)", lambda x: np.diff(x, 0), (V,)),
    Call("vstack((x, y))", lambda x, y: np.vstack((x, y)), (A, V)),
    Call("hstack((x, y))", lambda x, y: np.hstack((x, y)), (A, (2, 2))),
    Call("hstack(x)", np.hstack, (T,)),
    Call("dstack((x, y))", lambda x, y: np.dstack((x, y)), (A, T)),
    Call("dstack((x, y))", lambda x, y: np.dstack((x, y)), (V, V)),
    Call("column_stack((x, y))", lambda x, y: np.column_stack((x, y)), (V, (3, 2))),
    Call("array_split(x, 3, 1)[0]", lambda x: np.array_split(x, 3, 1)[0], ((2, 4),)),
    Call("array_split(x, 5)[4]", lambda x: np.array_split(x, 5)[4], (V,)),
    Call("hsplit(x, 2)[1]", lambda x: np.hsplit(x, 2)[1], ((2, 4),)),
    Call("dsplit(x, (1, -1))[1]", lambda x: np.dsplit(x, (1, -1))[1], (T,)),
    Call("tensordot(x, y)", np.tensordot, (T, (3, 4, 2))),
    Call("tensordot(x, y, 0)", lambda x, y: np.tensordot(x, y, 0), (A, V)),
    Call("tensordot(x, y, axes=([2, 0], [0, 1]))", lambda x, y: np.tensordot(x, y, ([2, 0], [0, 1])), (T, (4, 2))),
    Call("tril(x, 1)", lambda x: np.tril(x, 1), (T,)),
    Call("triu(x, -1)", lambda x: np.triu(x, -1), ((3, 4),)),
]

INDICES = [
    Call("x[0]", lambda x: x[0], (T,)),
    Call("x[1:, 0::2]", lambda x: x[1:, 0::2], (T,)),
    Call("x[-1, :, 3:0:-2]", lambda x: x[-1, :, 3:0:-2], (T,)),
    Call("x[None, :, None, 1]", lambda x: x[None, :, None, 1], (T,)),
    Call("x[[1, 0, 1]]", lambda x: x[[1, 0, 1]], (T,)),
    Call("x[0, :, [1, 3]]", lambda x: x[0, :, [1, 3]], (T,)),
    Call("x[:, [2, 0], [1, 1]]", lambda x: x[:, [2, 0], [1, 1]], (T,)),
    Call("x[:, None, [1, 2], 5::-1]", lambda x: x[:, None, [1, 2], 5::-1], (T,)),
    Call("x[[0, 1], None, :, 0]", lambda x: x[[0, 1], None, :, 0], (T,)),
    Call("x[i]", lambda x, i: x[_whole(i)], (T,), ([1, 0, -1],)),
    Call("x[i, j]", lambda x, i, j: x[_whole(i), _whole(j)], (T,), ([1, 0, -1], [2, 0, 1])),
    Call("x[i, :, j]", lambda x, i, j: x[_whole(i), :, _whole(j)], (T,), ([1, 0, -1], [2, 0, 1])),
    Call("x[0, i]", lambda x, i: x[0, _whole(i)], (T,), ([2, 0, 1],)),
    Call("take(x, [[0, 2], [5, -1]])", lambda x: np.take(x, [[0, 2], [5, -1]]), (A,)),
    Call("take(x, i, axis=1)", lambda x, i: np.take(x, _whole(i), 1), (T,), ([[2, 0], [0, -1]],)),
    Call("gather(x, i, axis=1)", lambda x, i: np.take_along_axis(x, _whole(i), 1), (A,), ([[2, 0], [0, -1]],)),
]

REDUCTIONS = [
    *(
        Call(f"{name}(x{rest})", lambda x, f=f, k=k: f(x, **k), (T,))
        for name, f in {
            "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "amax": np.amax,
            "var": np.var, "std": np.std, "median": np.median, "logsumexp": scipy.special.logsumexp,
        }.items()
        for rest, k in (
            ("", {}),
            (", axis=1", {"axis": 1}),
            (", axis=(0, 2), keepdims=True", {"axis": (0, 2), "keepdims": True}),
        )
    ),
    Call("std(x, axis=0, ddof=1)", lambda x: np.std(x, axis=0, ddof=1), (A,)),
    Call("sort(x)", np.sort, (A,)),
    Call("sort(x, axis=0)", lambda x: np.sort(x, axis=0), (T,)),
    Call("cumsum(x)", np.cumsum, (A,)),
    Call("cumsum(x, axis=1)", lambda x: np.cumsum(x, 1), (T,)),
    Call("cumprod(x)", np.cumprod, (A,)),
    Call("cumprod(x, axis=1)", lambda x: np.cumprod(x, 1), (T,)),
    Call("softmax(x)", lambda x: scipy.special.softmax(x, -1), (A,)),
    Call("log_softmax(x, axis=0)", lambda x: scipy.special.log_softmax(x, 0), (T,)),
    Call("norm(x)", lambda x: np.linalg.norm(x.ravel()), (T,)),
    Call("norm(x, 1, axis=(2, 0))", lambda x: np.linalg.norm(x, 1, axis=(2, 0)), (T,)),
    Call("norm(x, 2)", lambda x: np.linalg.norm(x, 2), (A,)),
    Call('norm(x, ord="fro", axis=(0, 1))', lambda x: np.linalg.norm(x, "fro", axis=(0, 1)), (T,)),
    Call("norm(x, 1)", lambda x: np.linalg.norm(x, 1), (V,)),
]  # fmt: skip

PRODUCTS = [
    *(
        Call("x @ y", np.matmul, shapes)
        for shapes in (
            (V, V), (A, V), (V, (3, 2)), (A, (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), (A, (5, 3, 4)),
            ((5, 2, 3), V), (V, (5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
        )
    ),
    *(Call("dot(x, y)", np.dot, shapes) for shapes in (((), V), (V, V), (A, (5, 3, 4)))),
    *(Call("inner(x, y)", np.inner, shapes) for shapes in (((), V), (V, V), (A, (4, 3)), ((5, 2, 3), (4, 3)))),
    Call("outer(x, y)", np.outer, (A, V)),
    Call("vecdot(x, y)", np.vecdot, (A, V)),
    Call("trace(x)", np.trace, ((3, 4),)),
    Call("trace(x, 1, 2, 0)", lambda x: np.trace(x, 1, 2, 0), (T,)),
    *(Call("kron(x, y)", np.kron, shapes) for shapes in ((V, (2,)), (A, V), ((2, 1, 2), (1, 3)))),
    Call("cross(x, y)", np.cross, (A, V)),
    Call("cross(x, y, axis=0)", lambda x, y: np.cross(x, y, axis=0), ((3, 2), (3, 2))),
    *(
        Call(
            f'einsum("{letters}", {", ".join("xyz"[: len(shapes)])})',
            lambda *xs, s=letters: np.einsum(s, *xs),
            shapes,
        )
        for letters, *rest in (
            ("ij,jk", A, (3, 4)), ("ji", A), ("ii", S), ("iii->i", (3, 3, 3)), ("ij->", A), ("i,j->ji", V, (2,)),
            ("bij,bjk->bik", T, (2, 4, 2)), ("ia,ab,jb->ij", (3, 2), (2, 2), (4, 2)), ("i,i,i->i", V, V, V),
            ("aab,bcc->ac", (2, 2, 3), (3, 2, 2)), ("ij,ij->i", A, A), ("ij,k->k", A, (2,)),
            ("ij,jk->ik", (2, 1), (3, 4)),
        )
        for shapes in (tuple(rest),)
    ),
]  # fmt: skip

MATRICES = [
    Call("inv(x)", np.linalg.inv, (B,), shift="dominant"),
    Call("solve(x, y)", np.linalg.solve, (S, V), shift="dominant"),
    Call("solve(x, y)", np.linalg.solve, (B, (3, 2)), shift="dominant"),
    Call("cholesky(x)", lambda x: np.linalg.cholesky(_sym(x)), (S,), shift="definite"),
    *(Call(f"qr(x)[{k}]", lambda x, k=k: np.linalg.qr(x)[k], (s,)) for s in (S, (4, 3), A) for k in (0, 1)),
    *(Call("det(x)", np.linalg.det, (shape,)) for shape in ((1, 1), (2, 2), (4, 4), B)),
    Call("slogdet(x)[1]", lambda x: np.linalg.slogdet(x)[1], (S,), shift="dominant"),
    Call("logdet(x)", lambda x: np.linalg.slogdet(x)[1], (S,), shift="definite"),
    *(Call("eigvalsh(x)", lambda x: np.linalg.eigvalsh(_sym(x)), (shape,)) for shape in ((1, 1), (2, 2), S)),
    *(
        Call("svdvals(x)", lambda x: np.linalg.svd(x, compute_uv=False), (shape,))
        for shape in ((2, 2), S, (4, 2), (5, 2), (2, 4), (3, 1))
    ),
    *(
        Call(f"matrix_power(x, {n})", lambda x, n=n: np.linalg.matrix_power(x, n), (S,), shift="dominant")
        for n in (-2, 0, 1, 2, 5)
    ),
    *(Call("expm(x)", scipy.linalg.expm, (shape,)) for shape in ((1, 1), (2, 2), S)),
]

CALLS = [*SHAPES, *INDICES, *REDUCTIONS, *PRODUCTS, *MATRICES]
