"""PyTorch's `torch.utils`: what of it belongs to gradients, and batches of data."""

from __future__ import annotations

from gradcli.eager.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
