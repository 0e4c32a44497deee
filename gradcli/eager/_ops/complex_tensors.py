"""Complex tensors: parts, conjugates, moduli and angles, with gradients by PyTorch's convention.

The gradient of a real loss L by z = a + bi is dL/da + i dL/db, the conjugate of the derivative that the rules of
declared operations define. Those rules run on conjugates (`RuleNode`); the few operations that are not holomorphic
have nodes of their own here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.record import declared, record, with_gradient
from gradcli.eager._engine.rule_node import fitted_tensor
from gradcli.eager._ops.table import FUNCTION, op
from gradcli.primitives import catalogue


@op(only=FUNCTION)
def real(input: Tensor) -> Tensor:
    """The real part; a real tensor as it is."""
    return input if input.dtype.kind < 3 else view_as_real(input).select(-1, 0)


@op(only=FUNCTION)
def imag(input: Tensor) -> Tensor:
    """The imaginary part; RuntimeError for a real tensor."""
    if input.dtype.kind < 3:
        raise RuntimeError("imag is only for complex tensors; this one is real")
    return view_as_real(input).select(-1, 1)  # type: ignore[no-any-return]


@op(node="ConjBackward0")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor as it is."""
    if input.dtype.kind < 3:
        return input
    result = Tensor(np.conj(input._raw))
    return with_gradient(result, (input,), conj.node, lambda ct: (conj(ct),), tangent=conj)


@op(name="complex", node="ComplexBackward0", only=FUNCTION)
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """The complex tensor of two real ones."""
    if real.dtype is not imag.dtype or real.dtype.kind != 2:
        raise RuntimeError(f"complex() needs two float tensors of one dtype, not {real.dtype} and {imag.dtype}")
    kind = np.complex128 if real._raw.dtype == np.float64 else np.complex64

    def gradient(ct: Tensor) -> tuple[Tensor | None, ...]:
        parts = (ct.real, ct.imag)
        return tuple(
            [fitted_tensor(part, x._raw.shape, x._raw.dtype) for part, x in zip(parts, (real, imag), strict=True)]
        )

    raw = (real._raw + 1j * imag._raw).astype(kind)
    return with_gradient(Tensor(raw), (real, imag), complex_.node, gradient)


def abs_(input: Tensor) -> Tensor:
    """The modulus of complex numbers, of the node of `abs`."""

    def gradient(ct: Tensor, x: Tensor) -> tuple[Tensor]:
        size = abs_(x)
        return (ct * x / size.masked_fill(Tensor(size._raw == 0), 1),)

    return with_gradient(Tensor(np.abs(input._raw)), (input,), catalogue()["abs"].node_name({}), gradient, save=True)


@op(node="AngleBackward0")
def angle(input: Tensor) -> Tensor:
    """The angle of complex numbers; of real ones pi below zero, else 0, or NaN for NaN."""
    if input.dtype.kind < 3:
        return record(_angle_of_real, (input,), {}, angle.node, pointwise=True)

    def turned(x: Any, y: Any) -> Any:
        return y * x / (x * conj(x)).masked_fill(Tensor(np.asarray(x._raw == 0)), 1)

    gradient = lambda ct, x: (turned(x, ct) * 1j,)  # noqa: E731
    tangent = lambda t: -turned(input.detach(), conj(t)).imag  # noqa: E731
    return with_gradient(Tensor(np.angle(input._raw)), (input,), angle.node, gradient, save=True, tangent=tangent)


def _angle_of_real(x: Any) -> Any:
    return declared("relu", -declared("sign", x)) * math.pi


@op(node="ViewAsRealBackward0", only=FUNCTION)
def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary parts along a new last axis: a copy."""
    raw = np.stack([input._raw.real, input._raw.imag], axis=-1)

    def gradient(ct: Tensor) -> tuple[Tensor]:
        return (complex_(ct.select(-1, 0), ct.select(-1, 1)),)

    return with_gradient(Tensor(raw), (input,), view_as_real.node, gradient, tangent=view_as_real)
