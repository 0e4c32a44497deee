"""Options go in, modules without parameters that call an activation come out; the functions stand in `functional`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.factory import full
from gradcli.eager.nn import functional
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class _Activation(Module):
    """A function of `functional` with its options as attributes, which are printed unless they are hidden."""

    function = ""
    options: dict[str, Any] = {}
    hidden: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self.options)
        if len(args) > len(names) or not set(kwargs) <= set(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names) or 'no options'}")
        for name, value in {**self.options, **dict(zip(names, args, strict=False)), **kwargs}.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each entry."""
        function = getattr(functional, self.function)
        found: Tensor = function(input, **{name: getattr(self, name) for name in self.options})
        return found

    def extra_repr(self) -> str:
        parts = []
        for name in self.options:
            value = getattr(self, name)
            if name == "inplace":
                parts.extend(["inplace=True"] if value else [])
            elif name not in self.hidden:
                parts.append(f"{name}={value!r}")
        return ", ".join(parts)


class ReLU(_Activation):
    """max(x, 0)."""

    function, options = "relu", {"inplace": False}
    inplace: bool

    def forward(self, input: Tensor) -> Tensor:
        """The entries that are positive, zeros for the others."""
        return functional.relu(input, self.inplace)


class ReLU6(_Activation):
    """Entries held between 0 and 6."""

    function, options = "relu6", {"inplace": False}

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = 0.0
        self.max_val = 6.0


class LeakyReLU(_Activation):
    """Positive entries as they are, others times a slope."""

    function, options = "leaky_relu", {"negative_slope": 0.01, "inplace": False}


class ELU(_Activation):
    """Positive entries as they are, others alpha*(exp(x) - 1)."""

    function, options = "elu", {"alpha": 1.0, "inplace": False}


class SELU(_Activation):
    """The scaled elu."""

    function, options = "selu", {"inplace": False}


class CELU(_Activation):
    """Positive entries as they are, others alpha*(exp(x/alpha) - 1)."""

    function, options = "celu", {"alpha": 1.0, "inplace": False}


class Tanh(_Activation):
    """The hyperbolic tangent."""

    function = "tanh"


class Sigmoid(_Activation):
    """The logistic function."""

    function = "sigmoid"


class LogSigmoid(_Activation):
    """The logarithm of the logistic function."""

    function = "logsigmoid"


class GELU(_Activation):
    """x times the normal distribution function."""

    function, options = "gelu", {"approximate": "none"}


class SiLU(_Activation):
    """x*sigmoid(x)."""

    function, options = "silu", {"inplace": False}


class Mish(_Activation):
    """x*tanh(softplus(x))."""

    function, options = "mish", {"inplace": False}


class Softplus(_Activation):
    """log(1 + exp(beta*x))/beta."""

    function, options = "softplus", {"beta": 1.0, "threshold": 20.0}


class Softsign(_Activation):
    """x/(1 + |x|)."""

    function = "softsign"


class Tanhshrink(_Activation):
    """x - tanh(x)."""

    function = "tanhshrink"


class Hardtanh(_Activation):
    """Entries held between two bounds."""

    function, options = "hardtanh", {"min_val": -1.0, "max_val": 1.0, "inplace": False}


class Hardsigmoid(_Activation):
    """A sigmoid of three straight lines."""

    function, options, hidden = "hardsigmoid", {"inplace": False}, ("inplace",)


class Hardswish(_Activation):
    """x*hardsigmoid(x)."""

    function, options = "hardswish", {"inplace": False}


class Softshrink(_Activation):
    """Entries moved towards 0."""

    function, options = "softshrink", {"lambd": 0.5}

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Activation):
    """Zeros for small entries."""

    function, options = "hardshrink", {"lambd": 0.5}

    def extra_repr(self) -> str:
        return str(self.lambd)


class Threshold(_Activation):
    """Entries above a limit, one value for the others."""

    function = "threshold"
    options = {"threshold": None, "value": None, "inplace": False}


class GLU(_Activation):
    """The first half of an axis times the sigmoid of the second."""

    function, options = "glu", {"dim": -1}


class Softmax(_Activation):
    """Exponentials divided by their sum along an axis."""

    function, options = "softmax", {"dim": None}


class LogSoftmax(_Activation):
    """The logarithm of softmax along an axis."""

    function, options = "log_softmax", {"dim": None}


class Softmin(_Activation):
    """softmax(-x) along an axis."""

    function, options = "softmin", {"dim": None}


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along an axis."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosines."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PReLU(Module):
    """Positive entries as they are, others times a learned slope, one for all or one for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The activation of each entry."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
