"""Complex tensors: parts, conjugates, moduli and angles, with gradients by PyTorch's convention.

The gradient of a real loss L by z = a + bi is dL/da + i dL/db, the conjugate of the derivative that the rules of
declared operations define. Those rules run on conjugates (`RuleNode`); the few operations that are not holomorphic
have nodes of their own here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.record import with_gradient
from gradcli.eager._engine.rule_node import fitted_tensor, renamed
from gradcli.eager._ops.table import FUNCTION, described, op


def _part(input: Tensor, at: int) -> Tensor:
    found: Tensor = view_as_real(input).select(-1, at)
    return found


@op(only=FUNCTION)
def real(input: Tensor) -> Tensor:
    """The real part; a real tensor as it is."""
    return input if input.dtype.kind < 3 else _part(input, 0)


@op(only=FUNCTION)
def imag(input: Tensor) -> Tensor:
    """The imaginary part; RuntimeError for a real tensor."""
    if input.dtype.kind < 3:
        raise RuntimeError("imag is only for complex tensors; this one is real")
    return _part(input, 1)


@op("conj_physical")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor as it is."""
    if input.dtype.kind < 3:
        return input
    result = Tensor(np.conj(input._raw))
    return with_gradient(result, (input,), "ConjBackward0", lambda ct: (conj(ct),), tangent=conj)


@op(name="complex", only=FUNCTION)
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
    return with_gradient(Tensor(raw), (real, imag), "ComplexBackward0", gradient)


def abs_(input: Tensor) -> Tensor:
    """The modulus of complex numbers."""

    def gradient(ct: Tensor, x: Tensor) -> tuple[Tensor]:
        return (ct * sgn(x),)

    return with_gradient(Tensor(np.abs(input._raw)), (input,), "AbsBackward0", gradient, save=True)


@op(why="step-function")
def sgn(input: Tensor) -> Tensor:
    """z / |z|, and 0 at 0; the sign of real numbers."""
    if input.dtype.kind < 3:
        return renamed(input.sign(), "SgnBackward0")
    size = np.abs(input._raw)
    raw = np.where(size == 0, 0, input._raw / np.where(size == 0, 1, size)).astype(input._raw.dtype)

    def gradient(ct: Tensor, x: Tensor) -> tuple[Tensor]:
        modulus = abs_(x)
        unit = x / modulus
        along = unit * real(conj(ct) * unit)
        return ((ct - along) / modulus,)

    return with_gradient(Tensor(raw[()]), (input,), "SgnBackward0", gradient, save=True)


@op()
def angle(input: Tensor) -> Tensor:
    """The argument of complex numbers; 0 or pi for real ones."""
    if input.dtype.kind < 3:
        raw = np.where(np.isnan(input._raw), input._raw, np.where(input._raw < 0, np.pi, 0.0))
        result = Tensor(raw.astype(input._raw.dtype if input.dtype.kind == 2 else np.float32)[()])
        return with_gradient(result, (input,), "AngleBackward0", lambda ct: (ct * 0,))

    def gradient(ct: Tensor, x: Tensor) -> tuple[Tensor]:
        squared = real(x * conj(x))
        turned = x * Tensor(np.asarray(1j, x._raw.dtype))
        return (turned * ct / squared,)

    result = Tensor(np.angle(input._raw).astype(input._raw.real.dtype))
    return with_gradient(result, (input,), "AngleBackward0", gradient, save=True)


@op(only=FUNCTION)
def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary parts along a new last axis."""
    raw = np.stack([input._raw.real, input._raw.imag], axis=-1)

    def gradient(ct: Tensor) -> tuple[Tensor]:
        return (complex_(ct.select(-1, 0), ct.select(-1, 1)),)

    return with_gradient(Tensor(raw), (input,), "ViewAsRealBackward0", gradient, tangent=view_as_real)


@op(only=FUNCTION)
def view_as_complex(input: Tensor) -> Tensor:
    """The complex tensor whose parts lie along the last axis, which has size 2."""
    if input.ndim == 0 or input.shape[-1] != 2:
        raise RuntimeError("view_as_complex() needs a last dimension of size 2")
    return complex_(input.select(-1, 0), input.select(-1, 1))


@op()
def is_complex(input: Tensor) -> bool:
    """Whether the format is one of complex numbers."""
    return input.dtype.kind == 3


@op()
def is_floating_point(input: Tensor) -> bool:
    """Whether the format is one of real floating-point numbers."""
    return input.dtype.is_floating_point


def _kept(name: str) -> Any:
    """The tensor itself: conjugates and signs are computed at once here."""
    return op()(described(lambda input: input, name, "The tensor, whose entries are computed."))


resolve_conj, resolve_neg = _kept("resolve_conj"), _kept("resolve_neg")
