"""PyTorch's `torch.autograd`: gradients, checks, forward mode and functions with rules of their own."""

from __future__ import annotations

from gradcli.eager._core import anomaly_mode
from gradcli.eager._core.anomaly_mode import detect_anomaly, set_detect_anomaly
from gradcli.eager._core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.backward import backward
from gradcli.eager._ops.tensor_creation import Variable
from gradcli.eager.autograd import forward_ad, functional, graph
from gradcli.eager.autograd.function import Function
from gradcli.eager.autograd.functional import grad
from gradcli.eager.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = ["Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad"]
__all__ += ["functional", "graph", "grad", "gradcheck", "gradgradcheck", "inference_mode", "no_grad"]
__all__ += ["set_detect_anomaly", "set_grad_enabled"]

__getattr__, __dir__ = room("autograd", __all__)
