"""The modules of PyTorch's `torch.nn`, by their names."""

from __future__ import annotations

from gradcli.eager.nn.modules import (
    activations,
    attention,
    cells,
    containers,
    convolution,
    embeddings,
    images,
    layers,
    losses,
    norms,
    padding,
    pooling,
    recurrent,
    transformers,
)
from gradcli.eager.nn.modules.module import Module

TABLE: dict[str, type[Module]] = {"Module": Module}
for _file in (
    activations,
    containers,
    layers,
    embeddings,
    norms,
    losses,
    convolution,
    pooling,
    padding,
    images,
    recurrent,
    cells,
    attention,
    transformers,
):
    TABLE.update(
        {
            name: found
            for name, found in vars(_file).items()
            if isinstance(found, type) and issubclass(found, Module) and not name.startswith("_")
        }
    )
globals().update(TABLE)
