"""What to do about each reason, in the words and calls of PyTorch or JAX.

A sentence stands for a reason unless the file's own text gives a better one.

`$it` stands for the tensor that a finding is about, `$use` for a class of torch.nn.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gradcli.recording.runs.source_tree import SourceTree


class ErrorMeaning(NamedTuple):
    """What an error means: a reason, the cause in a few words, and what to do."""

    reason: str
    why: str
    fix: str = ""
    method: str = ""  # what is called in the line, and what a patch writes before it
    after: str = ""


# of which kinds an error is, what it says, and its meaning or what finds it
Answers = tuple[tuple[tuple[type[BaseException], ...], str, ErrorMeaning | Callable[..., Any]], ...]
FIXES: dict[str, str] = {
    # no gradient
    "never-required": "make the leaf with requires_grad=True, or call requires_grad_() on it before it is used",
    "integer-dtype": "use a floating point dtype: torch.tensor([1., 2.]), or .float() before requires_grad_()",
    "detached": "use the tensor itself where a gradient is wanted; detach() only what is shown or stored",
    "as-number": "compute with the tensor itself; item(), tolist() and numpy() are for showing results",
    "rewrapped": "use the computed tensor itself, or torch.stack and torch.cat, which keep the history; torch.tensor() "
    "and nn.Parameter() copy numbers only",
    "no-grad": "move the line out of the no_grad block, or wrap it in torch.enable_grad()",
    "mode-left": "write `with torch.no_grad():` around what needs no gradient, which ends with the block",
    "inference": "compute it outside inference_mode; what is made inside can never be differentiated",
    "sampled": "draw with rsample(), which is reparametrised: mean + std * torch.randn_like(std)",
    "no-create-graph": "pass create_graph=True to the torch.autograd.grad() that gave the gradient",
    "not-leaf": "call retain_grad() on it before backward(), or look at the .grad of the leaf that it comes from",
    "leaf-lost": "call requires_grad_() last, after .to() and the like: a result of an operation is not a leaf",
    "partly": "nothing is wrong if this is meant; else use the tensor itself there",
    "replaced": "change the leaf in place under torch.no_grad(): `with torch.no_grad(): $it -= lr * $it.grad`",
    "no-path": "compute the loss from it; what does not enter the loss has no gradient",
    "never-ran": "call backward() on the loss, once, before looking at .grad",
    "returned": "use what torch.autograd.grad() returns, or call backward(), which fills .grad",
    "not-asked": "leave inputs= out, or name this tensor there too",
    "zeroed": "look at .grad, or let the optimizer step, before it is zeroed; zero it just before the next backward()",
    "returned-none": "return a gradient for it from backward, at its place among forward's arguments",
    "step-function": "use a smooth substitute (sigmoid, softmax), or a straight-through estimator: x + (round(x) - "
    "x).detach()",
    "constant-term": "compute the term from the parameters themselves, with a history, or leave it out of the loss",
    # what stops a run
    "changed-in-place": "write the change out of place (y = y + 1), or clone() the tensor before it is changed",
    "changed-by-step": "compute anew after the step what the second loss needs, or step after both backwards",
    "changed-carried": "detach() what is carried from step to step, and leave out retain_graph=True",
    "freed": "pass retain_graph=True to the first backward, or add the losses and call backward once",
    "computed-once": "compute it inside the loop, anew in each step",
    "carried-state": "detach() what is carried over from an earlier step",
    "shared-part": "detach() the shared part in the loss that does not train it",
    "leaf-in-place": "write to the leaf under torch.no_grad(), before requires_grad_(), or to a clone() of it",
    "iterator-used-up": "make a list of it: list(model.parameters())",
    "stopped": "correct that line; the traceback is on standard error",
    # sums of gradients, optimizers, updates
    "accumulated": "call optimizer.zero_grad(), or set .grad = None, before each backward()",
    "not-optimised": "create the optimizer after the parameter, or call requires_grad_(False) on what is to stay fixed",
    "unregistered": "use $use: a module does not find parameters in plain lists and dictionaries",
    "no-update": "call the optimizer's step() after each backward()",
    "tiny-steps": "use a larger learning rate",
    "decayed": "use a smaller weight_decay, such as 0.01",
    "uphill": "go down: leave maximize=True, or the minus, out; nothing is wrong if the loss is meant to grow",
    "remade": "make the optimizer once, before the loop: its momentum and averages begin anew with each",
    "shared-memory": "copy the entries: .clone(), or copy.deepcopy() of a state_dict()",
    "misspelt": "write requires_grad, or call requires_grad_() on the tensor or the module",
    "constant-loss": "compute a loss that the outputs can change",
    "frozen-moves": "set the gradients to None, not to zero (zero_grad() does), or give it only what is to move",
    "clips-nothing": "clip after backward() and before the optimizer's step()",
    "still-scaled": "let the scaler step, scaler.step(optimizer); scaler.unscale_(optimizer) before .grad is read",
    "discarded": "zero the gradients once before the first of the backwards that a step uses",
    # zero
    "hook": "look at what the hook returns: it takes the place of the gradient",
    "overwritten": "clone it first (g = g.clone()), or compute the new gradient out of place with torch.where()",
    "hook-never-ran": "register the hook before backward()",
    "dead-relu": "lower the learning rate, start the bias above zero, or use leaky_relu, gelu or softplus",
    "saturated": "scale the input down, or normalise it: far from zero this function is flat",
    "one-entry": "use sigmoid for a single output, or as many outputs as there are classes",
    "not-selected": "no entry of it was selected here; the gradient of what is not selected is zero",
    "padding": "look up rows other than that of padding_idx, or leave padding_idx out if that row is to learn",
    "outside-bounds": "leave the clamp out of the loss, or start inside its bounds",
    "times-zero": "the other factor is zero here, so the product does not depend on it",
    "underflow": "compute in float32, or let torch.amp.GradScaler scale the loss",
    "flat": "nothing is wrong with the graph: here the slope itself is zero",
    "all-alike": "initialise at random, as nn.Linear does by itself",
    # size
    "vanishing": "initialise larger, use relu-like activations, normalise, or add skip connections",
    "exploding": "clip the gradients (clip_grad_norm_), lower the learning rate, initialise smaller, or normalise",
    # NaN and infinity
    "diverged": "lower the learning rate, or clip the gradients (clip_grad_norm_)",
    "nan-update": "give the optimizer a positive eps, and finite options",
    "nan-data": "clean the data first: torch.isfinite($it) shows which entries to drop",
    "nan-forward": "keep the operand inside the domain: clamp it, add a small number, or use the stable form",
    "nothing-to-average": "skip such a batch, or divide a sum by max(count, 1)",
    "one-of-a-kind": "use more than one row, or unbiased=False, which gives 0 for one, and add a small number to it",
    "grows": "keep its size in bounds: scale or normalise it in each iteration, or add logarithms",
    "nan-backward": "keep the operand away from the point where the slope is infinite: clamp it, or add a small number",
    "nan-branch": "make the operand safe in the branch too: torch.where(c, f(torch.where(c, x, safe)), other)",
    "degenerate": "use what does not depend on the choice of the vectors, or make the values distinct",
    "overflow": "use bfloat16, which reaches as far as float32, or let torch.amp.GradScaler find a scale that fits",
    "masked-row": "leave one entry of each row unmasked, or mask with torch.finfo(scores.dtype).min: even weights then",
    # losses
    "broadcast": "give both the same shape: .squeeze(1) on the column, or [:, None] on the other; nothing is wrong if "
    "all pairs are meant",
    "activation-twice": "give the loss the raw outputs: it applies the activation itself",
    "other-axis": "use the dimension of the classes, dim=1",
    "not-logarithms": "give nll_loss the output of log_softmax, or use cross_entropy on the raw outputs",
    # JAX
    "result-unused": "give the result a name and go on with it: arrays of JAX never change",
    "tracer-leak": "return the value from the function, and use what it returns",
    "traced-value": "compute with jax.numpy; jnp.where or lax.cond chooses by a value, and static_argnames= marks what "
    "is a setting",
    "no-rule": "give it a derivative with jax.custom_vjp or jax.custom_jvp, or write it with jax.numpy",
    "no-reverse": "use lax.scan, lax.fori_loop with bounds that are plain numbers, or a loop of Python",
    "wrong-rule": "derive the rule again: what it returns is multiplied by the gradient that arrives, one for each "
    "argument",
    "immutable": "x = x.at[i].set(y) makes a changed copy",
    # memory
    "retain-graph": "leave retain_graph=True out, and detach() what, if anything, is carried from step to step",
    "history": "keep loss.item() or loss.detach(), not loss",
    "unused-graphs": "compute it inside `with torch.no_grad():`, or keep its detach()",
}

# in the words of JAX, where they differ
FIXES_OF_JAX: dict[str, str] = {
    "integer-dtype": "use floats: 3.0, or jnp.array([1., 2.])",
    "detached": "use the value itself where a gradient is wanted; stop_gradient() only for what is to be a constant",
    "as-number": "compute with the array itself; item(), int() and numpy are for showing results",
    "sampled": "a draw of whole numbers has no derivative: use the log-probability (REINFORCE: -log_prob * reward), or "
    "a relaxed draw: jax.nn.softmax((logits + jax.random.gumbel(key, logits.shape)) / temperature)",
    "step-function": "use a smooth substitute (sigmoid, softmax), or a straight-through estimator: x + "
    "jax.lax.stop_gradient(jnp.round(x) - x)",
    "outside-bounds": "leave the clip out of the loss, or start inside its bounds",
    "underflow": "compute in float32, or scale the loss",
    "exploding": "clip the gradients (optax.clip_by_global_norm), lower the learning rate, or initialise smaller",
    "diverged": "lower the learning rate, or clip the gradients (optax.clip_by_global_norm)",
    "nan-data": "clean the data first: jnp.isfinite($it) shows which entries to drop",
    "nan-branch": "make the operand safe in the branch too: jnp.where(c, f(jnp.where(c, x, safe)), other)",
    "overflow": "use bfloat16, which reaches as far as float32, or scale the loss",
    "masked-row": "leave one entry of each row unmasked, or mask with jnp.finfo(scores.dtype).min: even weights then",
}


def advised(text: str) -> ErrorMeaning:
    """The meaning of an error that says its cause itself: by a reason, or by what to do."""
    return ErrorMeaning(text, "") if text in FIXES else ErrorMeaning("stopped", "", text)


class Dialect:
    """PyTorch's."""

    namespaces: tuple[str, ...] = (
        *("torch", "F", "nn.functional", "functional", "torch.nn.functional", "torch.special", "torch.linalg"),
    )
    fixes = FIXES
    relaxed = "a draw of discrete values has no derivative: use the log-probability (REINFORCE: -log_prob * reward), "
    relaxed += "torch.nn.functional.gumbel_softmax, or a relaxed distribution with rsample()"

    def gradient(self, names: str, several: bool) -> str:
        """What users call the gradient of some tensors."""
        return f"the .grad of {names}" if several else f"{names}.grad"

    def operand(self, tree: SourceTree, node: ast.expr) -> str:
        """The text of an expression that one of the following is done to."""
        return tree.bracketed(node)

    def bounded(self, text: str, low: str = "", high: str = "") -> str:
        """An expression kept at or above a number, at or below one, or between two."""
        bounds = f"{low}, {high}" if low and high else f"min={low}" if low else f"max={high}"
        return f"{text}.clamp({bounds})"

    def where(self, condition: str, first: str, second: str) -> str:
        """The choice between two."""
        return f"torch.where({condition}, {first}, {second})"

    def constant(self, text: str) -> str:
        """An expression through which no gradient passes."""
        return f"({text}).detach()"


class JaxDialect(Dialect):
    """JAX's, in a file."""

    fixes = {**FIXES, **FIXES_OF_JAX}
    relaxed = FIXES_OF_JAX["sampled"]

    def __init__(self, tree: SourceTree) -> None:
        names = tree.imports
        self.numpy = names.get("jax.numpy", "jnp")
        lax = names.get("jax.lax", "jax.lax")
        self.stop = names.get("jax.lax.stop_gradient", f"{lax}.stop_gradient")
        usual = ("jax", "jnp", "lax", "jax.numpy", "jax.lax", "jax.nn", "nn", "jax.scipy", "jsp", "jsp.special")
        own = (self.numpy, f"{self.numpy}.linalg", names.get("jax.random", "random"))
        self.namespaces = (*usual, "jax.random", *own)

    def gradient(self, names: str, several: bool) -> str:
        return f"the gradient of {names}"

    def operand(self, tree: SourceTree, node: ast.expr) -> str:
        return tree.source(node)

    def bounded(self, text: str, low: str = "", high: str = "") -> str:
        if low and high:
            return f"{self.numpy}.clip({text}, {low}, {high})"
        return f"{self.numpy}.maximum({text}, {low})" if low else f"{self.numpy}.minimum({text}, {high})"

    def where(self, condition: str, first: str, second: str) -> str:
        return f"{self.numpy}.where({condition}, {first}, {second})"

    def constant(self, text: str) -> str:
        return f"{self.stop}({text})"
