"""The fixes that `why` proposes for each reason, and the operations that each reason concerns, as data."""

from __future__ import annotations

CURES = {
    "const": "leave const out, or ask for another leaf",
    "no-path": "compute the output from it; what does not enter it has a gradient of zero",
    "detached": "take detach(...) out where the gradient is wanted",
    "branch": "this is right: a branch that is not taken does not count. Choose another point to see its gradient",
    "step-function": "use a smooth stand-in, such as sigmoid, or keep only the value of the step, and the slope of its "
    "argument u: u + detach(step(u) - u)",
    "kink": "any slope between the two sides is as good; choose another point, or a smooth function such as softplus",
    "saturated": "scale the argument down: far from zero this function is flat",
    "times-zero": "the other factor is zero here, so the product does not depend on it",
    "flat": "nothing is wrong: here the slope itself is zero",
    "cancels": "nothing is wrong: the contributions along the different paths add up to zero",
    "not-finite": "keep the operand away from the point: clip it, or use a stable form (log1p, hypot, logsumexp)",
    "vanishing": "scale the inputs, or compute in logarithms",
    "exploding": "scale the inputs, or move away from the pole",
}
FLAT = {"sigmoid", "tanh", "erf", "erfc", "softmax", "log_softmax", "gelu", "softplus", "log_sigmoid", "expit"}
STEPS = {"floor", "ceil", "round", "trunc", "sign", "step", "heaviside"}
COMPARING = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "argmax", "argmin", "argsort"}
SHARP = {"branch", "step-function", "flat"}  # reasons that a kink at the same operation says better
CHOOSING = {"where", "clip", "clamp", "maximum", "minimum", "relu", "max", "min", "take_along", "slice", "take_static"}
