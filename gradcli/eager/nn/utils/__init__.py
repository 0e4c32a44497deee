"""PyTorch's `torch.nn.utils`: gradients held within bounds, parameters as one vector, sequences as one tensor."""

from gradcli.eager.nn.utils import rnn
from gradcli.eager.nn.utils.clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from gradcli.eager.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]
