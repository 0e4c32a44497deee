"""What to do about each reason, unless the file's own text gives a better sentence.

`$it` stands for the tensor that a finding is about, `$use` for a class of torch.nn.
"""

from __future__ import annotations

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
    "not-leaf": "call retain_grad() on it before backward(), or look at the .grad of the leaf that it was "
    "computed from",
    "leaf-lost": "create the leaf last, with its dtype= and device=, and call requires_grad_() on the result: a result "
    "of an operation is not a leaf",
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
    "changed-carried": "detach() what is carried from step to step, and leave out retain_graph=True: it keeps graphs "
    "whose weights have changed since",
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
    "frozen-moves": "set the gradients to None, not to zero (zero_grad() does), or give the optimizer only what is to "
    "move",
    "discarded": "zero the gradients once before the first of the backwards that a step uses",
    # zero
    "hook": "look at what the hook returns: it takes the place of the gradient",
    "overwritten": "clone it first (g = g.clone()), or compute the new gradient out of place with torch.where()",
    "hook-never-ran": "register the hook before backward()",
    "dead-relu": "lower the learning rate, start the bias above zero, or use leaky_relu, gelu or softplus",
    "saturated": "scale the input down, or normalise it: far from zero this function is flat",
    "one-entry": "use sigmoid for a single output, or as many outputs as there are classes",
    "not-selected": "no entry of it was selected here; the gradient of what is not selected is zero",
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
    "one-of-a-kind": "use more than one row, or unbiased=False and add a small number to it: the deviation of a single "
    "one is then 0, not 0 / 0",
    "grows": "keep its size in bounds: scale or normalise it in each turn, or add logarithms",
    "nan-backward": "keep the operand away from the point where the slope is infinite: clamp it, or add a small number",
    "nan-branch": "make the operand safe in the branch too: torch.where(c, f(torch.where(c, x, safe)), other)",
    "degenerate": "use what does not depend on the choice of the vectors, or make the values distinct",
    "overflow": "use bfloat16, which reaches as far as float32, or let torch.amp.GradScaler find a scale that fits",
    "masked-row": "leave one entry of each row unmasked, or mask with torch.finfo(scores.dtype).min: a row masked "
    "throughout then has even weights",
    # losses
    "broadcast": "give both the same shape: .squeeze(1) on the column, or [:, None] on the other; nothing is wrong if "
    "all pairs are meant",
    "activation-twice": "give the loss the raw outputs: it applies the activation itself",
    "not-logarithms": "give nll_loss the output of log_softmax, or use cross_entropy on the raw outputs",
    # memory
    "retain-graph": "leave retain_graph=True out; if backward then needs the graph of an earlier step, detach() what "
    "is carried from step to step",
    "history": "keep loss.item() or loss.detach(), not loss",
    "unused-graphs": "compute it inside `with torch.no_grad():`, or keep its detach()",
}
