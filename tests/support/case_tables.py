"""Calls and shapes beside those that the declarations give, for `cases`. Rows are welcome, never needed."""

from __future__ import annotations

from gradcli.graph.domain import Closed, Interval
from gradcli.graph.types import Shape

DEFAULT = Closed(-2, 2)

# Calls that no `sample` or `example` gives; the rest is read from the declarations. Rows are welcome, never needed.
MORE: dict[str, list[tuple[str, dict[str, tuple[Shape, Interval]]]]] = {
    "where": [("where(x0 > 0, x1, x2)", {"x0": ((4,), DEFAULT), "x1": ((4,), DEFAULT), "x2": ((4,), DEFAULT)})],
    "any": [("any(x0 > 1, axis=0)", {"x0": ((2, 4), DEFAULT)}), ("any(x0 > 1)", {"x0": ((1, 2), DEFAULT)})],
    "all": [("all(x0 > -1, axis=0)", {"x0": ((2, 4), DEFAULT)}), ("all(x0 > 0)", {"x0": ((1, 2), DEFAULT)})],
    "heaviside": [("heaviside(0, x0)", {"x0": ((2,), DEFAULT)})],
    "jn": [("jn(2, x0)", {"x0": ((4,), DEFAULT)}), ("jn(-3, x0)", {"x0": ((), DEFAULT)})],
    "iv": [("iv(2, x0)", {"x0": ((4,), DEFAULT)}), ("iv(-3, x0)", {"x0": ((), DEFAULT)})],
    "fft": [("real(fft(x0, 5, 0))", {"x0": ((3, 2), DEFAULT)}), ("abs(fft(x0))", {"x0": ((5,), DEFAULT)})],
    "ifft": [("imag(ifft(x0*fft(x1)))", {"x0": ((4,), DEFAULT), "x1": ((4,), DEFAULT)})],
    "rfft": [("imag(rfft(x0, axis=0))", {"x0": ((3, 2), DEFAULT)})],
    "irfft": [("irfft(rfft(x0)*x1, 5)", {"x0": ((5,), DEFAULT), "x1": ((3,), DEFAULT)})],
    "fft2": [("imag(fft2(x0))", {"x0": ((2, 3), DEFAULT)})],
    "fftshift": [("real(fftshift(fft(x0)))", {"x0": ((5,), DEFAULT)})],
    "real": [("real(fft(x0) - ifft(x0))", {"x0": ((3,), DEFAULT)})],
    "imag": [("imag(fft(x0)/3 + x0)", {"x0": ((3,), DEFAULT)})],
    "angle": [("angle(fft(x0)*fft(x1)*fft(x2))[1]", dict.fromkeys(("x0", "x1", "x2"), ((3,), DEFAULT)))],
    "abs": [
        (f"abs({z})", {"x0": ((3,), DEFAULT), "x1": ((3,), DEFAULT)})
        for z in ("fft(x0)/fft(x1)", "x0 - fft(x1)", "x0/fft(x1)", "fft(x0) - fft(x1)")
    ],
    "conj": [("imag(conj(fft(x0))*fft(x1))", {"x0": ((3,), DEFAULT), "x1": ((3,), DEFAULT)})],
    "eigh": [("eigh(x0)", {"x0": ((2, 2), DEFAULT)})],
    "svd": [("svd(x0)", {"x0": ((2, 2), DEFAULT)}), ("svd(x0, full_matrices=False)", {"x0": ((2, 3), DEFAULT)})],
    "pinv": [("pinv(x0)", {"x0": ((2, 3), DEFAULT)}), ("pinv(x0)", {"x0": ((2, 2), DEFAULT)})],
    "power": [
        (f"x0**{n}", {"x0": ((4,), Interval(0.5, 2))}) for n in (2, 3, 4, 5, -1, -2)
    ],
    "matmul": [
        ("x0 @ x1", {"x0": ((2, 3), DEFAULT), "x1": ((3,), DEFAULT)}),
        ("x0 @ x1", {"x0": ((3,), DEFAULT), "x1": ((3, 2), DEFAULT)}),
        ("x0 @ x1", {"x0": ((2, 2, 3), DEFAULT), "x1": ((3, 2), DEFAULT)}),
        ("x0 @ x1", {"x0": ((2, 3), DEFAULT), "x1": ((2, 3, 2), DEFAULT)}),
    ],
    "einsum": [
        (f'einsum("{letters}", x0, x1)', {"x0": (first, DEFAULT), "x1": (second, DEFAULT)})
        for letters, first, second in (
            ("ij,jk", (2, 3), (3, 2)),
            ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
            ("i,j->ij", (2,), (3,)),
            ("ij,ij->", (2, 3), (2, 3)),
            ("ijk,kj->i", (2, 3, 2), (2, 3)),
            ("ii,i->i", (3, 3), (3,)),
        )
    ],
    "concatenate": [("concatenate((x0, x1), axis=1)", {"x0": ((2, 3), DEFAULT), "x1": ((2, 1), DEFAULT)})],
    "stack": [("stack((x0, x1), axis=-1)", {"x0": ((2, 3), DEFAULT), "x1": ((2, 3), DEFAULT)})],
    "vstack": [("vstack((x0, x1))", {"x0": ((2, 3), DEFAULT), "x1": ((3,), DEFAULT)})],
    "column_stack": [("column_stack((x0, x1))", {"x0": ((3,), DEFAULT), "x1": ((3, 2), DEFAULT)})],
    "array_split": [("array_split(x0, 2, axis=1)[0]", {"x0": ((2, 3), DEFAULT)})],
    "diff": [("diff(x0, 2, axis=0)", {"x0": ((4, 2), DEFAULT)})],
    "diagonal": [("diagonal(x0, -1, 2, 0)", {"x0": ((2, 2, 3), DEFAULT)})],
    "tensordot": [("tensordot(x0, x1, axes=([2, 0], [0, 1]))", {"x0": ((2, 3, 2), DEFAULT), "x1": ((2, 2), DEFAULT)})],
    "pad": [("pad(x0, ((1, 0), (0, 2)), constant_values=x1)", {"x0": ((2, 3), DEFAULT), "x1": ((), DEFAULT)})],
    "take": [("take(x0, [2, 0, 2], axis=1)", {"x0": ((2, 3), DEFAULT)})],
    "det": [("det(x0)", {"x0": ((2, 2, 2), DEFAULT)})],
    "inv": [("inv(x0)", {"x0": ((2, 2), DEFAULT)})],
    "solve": [("solve(x0, x1)", {"x0": ((2, 2), DEFAULT), "x1": ((2,), DEFAULT)})],
    "solve_triangular": [("solve_triangular(x0, x1, lower=True)", {"x0": ((2, 2), DEFAULT), "x1": ((2,), DEFAULT)})],
    "svdvals": [("svdvals(x0)", {"x0": ((2, 3), DEFAULT)})],
    "eigvalsh": [("eigvalsh(x0)", {"x0": ((2, 2), DEFAULT)})],
    "norm": [("norm(x0, axis=0)", {"x0": ((3, 2), DEFAULT)})],
    "qr": [("qr(x0)", {"x0": ((2, 2), DEFAULT)}), ("qr(x0)", {"x0": ((2, 3), DEFAULT)})],
    "matrix_power": [(f"matrix_power(x0, {n})", {"x0": ((2, 2), DEFAULT)}) for n in (0, 1, 2, 5, -2)],
    "kron": [("kron(x0, x1)", {"x0": ((2, 3), DEFAULT), "x1": ((2,), DEFAULT)})],
    "max": [("max(x0, x1)", {"x0": ((3,), Interval(0.5, 2)), "x1": ((3,), Interval(-2, 0))})],
    "min": [("min(x0, x1)", {"x0": ((3,), Interval(0.5, 2)), "x1": ((3,), Interval(-2, 0))})],
}  # fmt: skip

# Shapes of operands, for operations of graphs whose usual ones hide something.
INNER_SHAPES: dict[str, list[tuple[Shape, ...]]] = {
    "cof2": [((4, 4),) * 3, ((3, 3),) * 3],  # its derivative in the matrix is 0 up to 3 by 3
}
