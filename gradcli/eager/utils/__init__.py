"""PyTorch's `torch.utils`: activation checkpointing, data sets and data loaders."""

from __future__ import annotations

from gradcli.eager.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
