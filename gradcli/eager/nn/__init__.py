"""PyTorch's `torch.nn`: modules, parameters, losses and initialization.

Begin with `modules/`, which has one file a family of layers. `_module.py` has the base of all and the containers,
`_layer.py` records a formula as one node and declares layers by their functions.
"""

from __future__ import annotations

from gradcli.eager._core.unsupported import room
from gradcli.eager.nn import functional, init, modules, parameter, utils
from gradcli.eager.nn.parameter import Parameter

globals().update(modules.TABLE)

__all__ = ["Parameter", "functional", "init", "modules", "parameter", "utils", *modules.TABLE]

__getattr__, __dir__ = room("nn", __all__)
