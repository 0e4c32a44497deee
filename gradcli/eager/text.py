"""A tensor goes in, the text that PyTorch prints for it comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.eager import dtypes
from gradcli.eager.printing import tensor_text

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


def shown(x: Tensor) -> str:
    """The tensor's text with its suffixes: format, `grad_fn` or `requires_grad`."""
    node = x.grad_fn
    return tensor_text(
        x._array,
        dtype=x.dtype.name,
        requires_grad=x.requires_grad,
        grad_fn_name=None if node is None else type(node).__name__,
        parameter=x._is_param,
        default_dtype=dtypes.get_default_dtype().name,
    )
