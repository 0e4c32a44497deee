"""Matrices of derivatives as files that SciPy reads: Matrix Market (.mtx) and SciPy's own archives (.npz)."""

from __future__ import annotations

import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.base.results.calculations import Hessian, Jacobian


def matrix(result: Hessian | Jacobian) -> Any:
    """The blocks of a sparse result as one CSR array: rows and columns count the entries of outputs and leaves.

    >>> import gradcli
    >>> matrix(gradcli.hessian("x**2*y", at={"x": 1, "y": 3}, sparse=True)).toarray()
    array([[6., 2.],
           [2., 0.]])
    """
    from scipy.sparse import block_array

    tables: Any = list(result.hessian.values()) if hasattr(result, "hessian") else result.jacobian
    tables = tables if isinstance(tables, (list, tuple)) else [tables]
    return block_array([list(table.values()) for table in tables], format="csr")


def content(array: Any, form: str) -> bytes:
    """The file of a sparse array in one of the formats; numbers have all their digits."""
    file = io.BytesIO()
    if form == "npz":
        from scipy.sparse import save_npz

        save_npz(file, array)
    else:
        from scipy.io import mmwrite

        mmwrite(file, array, symmetry="general")
    return file.getvalue()
