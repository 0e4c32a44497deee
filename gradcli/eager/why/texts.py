"""The fix for each reason: sentences only, so that they read alike.

`$it` stands for the tensor that a finding is about, `$use` for a class of torch.nn.
"""

from __future__ import annotations

CURES: dict[str, str] = {
    "never-required": "make the leaf with requires_grad=True, or call requires_grad_() on it before it is used",
    "integer-dtype": "use a floating point dtype: torch.tensor([1., 2.]), or .float() before requires_grad_()",
    "detached": "use the tensor itself where a gradient is wanted; detach() only what is shown or stored",
    "as-number": "compute with the tensor itself; item(), tolist() and numpy() are for showing results",
    "rewrapped": "use torch.stack or torch.cat, which keep the history; torch.tensor() copies numbers only",
    "no-grad": "move the line out of the no_grad block, wrap it in torch.enable_grad(), or undo "
    "set_grad_enabled(False)",
    "inference": "compute it outside inference_mode, or clone() it there; what is made inside can never be "
    "differentiated",
    "not-leaf": "call retain_grad() on it before backward(), or look at the .grad of the leaf that it was made from",
    "leaf-lost": "make the leaf last: `$it = (0.1 * torch.randn(3)).requires_grad_()`, with dtype= and device= where "
    "it is made; an operation on a leaf gives a result",
    "partly": "nothing is wrong if this is meant; else use the tensor itself there",
    "replaced": "change the leaf in place under torch.no_grad(): `with torch.no_grad(): $it -= lr * $it.grad`",
    "no-path": "compute the loss from it; what does not enter the loss has no gradient",
    "never-ran": "call backward() on the loss, once, before looking at .grad",
    "returned": "use what torch.autograd.grad() returns, or call backward(), which fills .grad",
    "not-asked": "leave inputs= out, or name this tensor there too",
    "zeroed": "look at .grad, or let the optimizer step, before it is zeroed; zero it just before the next backward()",
    "accumulated": "call optimizer.zero_grad(), or set .grad = None, before each backward()",
    "retain-graph": "leave retain_graph=True out; if backward then needs the graph of an earlier step, detach() what "
    "is carried from step to step",
    "history": "keep loss.item() or loss.detach(), not loss",
    "hook": "look at what the hook returns: it takes the place of the gradient",
    "dead-relu": "lower the learning rate, start the bias above zero, or use leaky_relu, gelu or softplus",
    "saturated": "scale the input down, or normalise it: far from zero this function is flat",
    "vanishing": "initialise larger, use relu-like activations, normalise, or add skip connections",
    "exploding": "clip the gradients (clip_grad_norm_), lower the learning rate, initialise smaller, or normalise",
    "diverged": "lower the learning rate, or clip the gradients (clip_grad_norm_)",
    "nan-forward": "keep the operand inside the domain: clamp it, add a small number, or use the stable form",
    "nan-backward": "keep the operand away from the point where the slope is infinite: clamp it, or add a small number",
    "nan-branch": "make the operand safe inside the branch too: torch.where(c, f(torch.where(c, x, safe)), other). As "
    "a .grad script the same expression gives the finite gradient: there a branch not taken never counts",
    "masked-row": "leave at least one entry of each row unmasked, or mask with a large finite number instead of -inf: "
    "torch.finfo(scores.dtype).min gives even weights where a whole row is masked",
    "nan-data": "clean the data first: torch.isfinite($it) shows which entries to drop",
    "changed-carried": "detach() what is carried from step to step, and leave retain_graph=True out: the graph of an "
    "earlier step is walked again, after its weights were changed",
    "changed-in-place": "write the change out of place (y = y + 1), or clone() the tensor before it is changed",
    "freed": "pass retain_graph=True to the first backward, add the losses and call backward once, or detach() what is "
    "carried over from an earlier step",
    "step-function": "use a smooth stand-in (sigmoid, softmax), or a straight-through estimator: x + (round(x) - "
    "x).detach()",
    "flat": "nothing is wrong with the graph: here the slope itself is zero",
    "not-selected": "no entry of it was selected here; the gradient of what is not selected is zero",
    "times-zero": "the other factor is zero here, so the product does not depend on it",
    "unregistered": "use $use: a module finds parameters in attributes that are a Module, a Parameter, or one of "
    "torch.nn's lists and dictionaries of these",
    "returned-none": "return a gradient for it from backward, at its place among forward's arguments",
    "stopped": "`gradcli run` shows the traceback",
}
STEPS = ("Round", "Sign", "Floor", "Ceil", "Trunc", "Heaviside", "Sgn")
FLAT_FAR_OUT = ("Sigmoid", "Tanh", "Softmax", "Erf", "Softplus", "Gelu", "Elu", "LogSigmoid")
CHOICES = (
    "Clamp",
    "Where",
    "MaskedFill",
    "Select",
    "Index",
    "Slice",
    "Max",
    "Min",
    "Amax",
    "Amin",
    "Maximum",
    "Minimum",
)
PRODUCTS = ("Mul", "Mm", "Mv", "Dot", "Bmm", "Addmm", "Addmv", "Baddbmm", "Div")
RELUS = ("Relu", "LeakyRelu", "Threshold")


def kind_of(node: str) -> str:
    """The name of a node without its ending: `Relu` of `ReluBackward0`."""
    return node.partition("Backward")[0]


def flat_reason(node: str) -> str:
    """Why a node sends nothing on although something arrived."""
    kind = kind_of(node)
    if kind in STEPS:
        return "step-function"
    if kind in RELUS:
        return "dead-relu"
    if kind in FLAT_FAR_OUT:
        return "saturated"
    if kind in CHOICES:
        return "not-selected"
    return "times-zero" if kind in PRODUCTS else "flat"
