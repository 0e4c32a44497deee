"""Options go in, modules that call a loss come out; the losses stand in `functional`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.nn import functional
from gradcli.eager.nn.functional.fusing import reduction_of
from gradcli.eager.nn.modules.module import Module

if TYPE_CHECKING:
    from gradcli.eager.tensor import Tensor


class _Loss(Module):
    """A loss of `functional` with its options as attributes; tensors among them are buffers."""

    function = ""
    weights: tuple[str, ...] = ()  # options that are tensors, in the order of arguments
    numbers: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given: dict[str, Any] = {"reduction": "mean", **dict.fromkeys(self.weights), **self.numbers}
        names = [*self.positional(), "reduction"]
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes at most {len(names)} options")
        given.update(zip(names, args, strict=False))
        old = (
            kwargs.pop("size_average", given.pop("size_average", None)),
            kwargs.pop("reduce", given.pop("reduce", None)),
        )
        for name in kwargs:
            if name not in given:
                raise TypeError(f"{type(self).__name__} has no option {name!r}")
        given.update(kwargs)
        if old != (None, None):
            given["reduction"] = reduction_of("mean", *old)
        for name in self.weights:
            self.register_buffer(name, given.pop(name))
        for name, value in given.items():
            setattr(self, name, value)

    def positional(self) -> tuple[str, ...]:
        """The options that may come without their names, in PyTorch's order."""
        return (*self.weights, "size_average", "reduce") if not self.numbers else (*self.weights, *self.numbers)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of a prediction."""
        options = {name: getattr(self, name) for name in (*self.weights, *self.numbers, "reduction")}
        found: Tensor = getattr(functional, self.function)(input, target, **options)
        return found


class MSELoss(_Loss):
    """The mean of squared differences.

    >>> import gradcli.eager as torch
    >>> MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    function = "mse_loss"


class L1Loss(_Loss):
    """The mean of absolute differences."""

    function = "l1_loss"


class SmoothL1Loss(_Loss):
    """Squares near the target, absolute differences beyond beta."""

    function, numbers = "smooth_l1_loss", {"beta": 1.0}

    def positional(self) -> tuple[str, ...]:
        return ("size_average", "reduce")


class HuberLoss(_Loss):
    """Squares near the target, straight lines beyond delta."""

    function, numbers = "huber_loss", {"delta": 1.0}

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    function, weights = "binary_cross_entropy", ("weight",)

    def positional(self) -> tuple[str, ...]:
        return ("weight", "size_average", "reduce")


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of sigmoid(input)."""

    function, weights = "binary_cross_entropy_with_logits", ("weight", "pos_weight")

    def positional(self) -> tuple[str, ...]:
        return ("weight", "size_average", "reduce")


class NLLLoss(_Loss):
    """The negative log-probabilities of classes."""

    function, weights, numbers = "nll_loss", ("weight",), {"ignore_index": -100}

    def positional(self) -> tuple[str, ...]:
        return ("weight", "size_average", "ignore_index", "reduce")


class CrossEntropyLoss(_Loss):
    """The negative log-likelihood of classes, or class probabilities, under softmax of the scores."""

    function, weights = "cross_entropy", ("weight",)
    numbers = {"ignore_index": -100, "label_smoothing": 0.0}

    def positional(self) -> tuple[str, ...]:
        return ("weight", "size_average", "ignore_index", "reduce")


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log-probabilities from a target distribution."""

    function, numbers = "kl_div", {"log_target": False}

    def positional(self) -> tuple[str, ...]:
        return ("size_average", "reduce")


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under a Poisson distribution."""

    function, numbers = "poisson_nll_loss", {"log_input": True, "eps": 1e-8}


class _PairLoss(Module):
    """A loss of `functional` of two or three tensors and a target, with numbers as options."""

    function = ""
    numbers: dict[str, Any] = {}

    def __init__(self, *args: Any, reduction: str = "mean", **kwargs: Any) -> None:
        super().__init__()
        self.reduction = reduction
        given = {**self.numbers, **dict(zip(self.numbers, args, strict=False))}
        for name in kwargs:
            if name not in given:
                raise TypeError(f"{type(self).__name__} has no option {name!r}")
        for name, value in {**given, **kwargs}.items():
            setattr(self, name, value)

    def forward(self, *inputs: Tensor) -> Tensor:
        """The loss of the tensors."""
        options = {name: getattr(self, name) for name in (*self.numbers, "reduction")}
        found: Tensor = getattr(functional, self.function)(*inputs, **options)
        return found


class MarginRankingLoss(_PairLoss):
    """How far the order of two scores is from the wanted one."""

    function, numbers = "margin_ranking_loss", {"margin": 0.0}


class CosineEmbeddingLoss(_PairLoss):
    """Whether two rows point the same way, or do not, as the target wants."""

    function, numbers = "cosine_embedding_loss", {"margin": 0.0}


class HingeEmbeddingLoss(_PairLoss):
    """Distances of pairs that belong together, and what others lack to the margin."""

    function, numbers = "hinge_embedding_loss", {"margin": 1.0}


class SoftMarginLoss(_PairLoss):
    """log(1 + exp(-target * input)) for targets 1 and -1."""

    function = "soft_margin_loss"


class TripletMarginLoss(_PairLoss):
    """How much nearer than the margin the negative example is. ValueError unless the margin is positive."""

    function, numbers = "triplet_margin_loss", {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {self.margin} instead")


class GaussianNLLLoss(Module):
    """The negative log-likelihood of targets under normal distributions with given variances."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__()
        self.full = full
        self.eps = eps
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        """The loss."""
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class MultiMarginLoss(_Loss):
    """What the scores of other classes lack to the margin below the right one. ValueError for p other than 1 and 2."""

    function, weights, numbers = "multi_margin_loss", ("weight",), {"p": 1, "margin": 1.0}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.ndim != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {self.weight.ndim}D instead"
            )

    def positional(self) -> tuple[str, ...]:
        """The options that may come without their names, in PyTorch's order."""
        return ("p", "margin", "weight", "size_average", "reduce")


class MultiLabelSoftMarginLoss(_Loss):
    """The mean over classes of the cross entropy of each one, for targets 0 and 1."""

    function, weights = "multilabel_soft_margin_loss", ("weight",)
