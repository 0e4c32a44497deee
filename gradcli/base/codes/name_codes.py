"""The codes of names, as rows of the catalogue."""

from __future__ import annotations

from gradcli.base.codes.row import CodeDoc

NAMES: dict[str, CodeDoc] = {
    "GC201": CodeDoc(
        "unknown function",
        "A call names a function that neither the language nor the script defines.",
        "gradcli differentiates a function by its declared derivative, so it can only call functions that it knows.",
        "sine(x)",
        "Correct the name (gradcli ops lists all functions), or define your own with def f(a): return ...",
    ),
    "GC202": CodeDoc(
        "name without a value",
        "Neither the point nor the script gives a name a value.",
        "A formula has a value once each of its variables has one. A --claim can use leaves, sizes and names of --at.",
        "x + y  # with --at x=1",
        "Give the name a value, as in --at x=1,y=2, or a default in the script: y = 2.",
    ),
    "GC203": CodeDoc(
        "a value is called",
        "What stands before the brackets is a value, not a function.",
        "x(3) is a call, as in Python. A product needs its sign *.",
        "x = 2\nx(3)",
        "Write x*(3). If you meant a function of the language, give the value that has its name another name.",
    ),
    "GC204": CodeDoc(
        "function that calls itself",
        "A function of the script calls itself, directly or through another function.",
        "Functions are inlined where they are called, so a recursive call would never end.",
        "def f(a): return f(a)\nf(x)",
        "Write a for loop.",
    ),
    "GC205": CodeDoc(
        "arguments do not fit",
        "A call gives a function too few or too many arguments, or one by a name that it does not have.",
        "Arguments are bound as in Python: by position, then by name, each once.",
        "sin(x, y)",
        "Correct the call; gradcli ops NAME shows which arguments a function takes.",
    ),
    "GC206": CodeDoc(
        "no such leaf",
        "--wrt, --claim, --tensor or shared= names something that is not a leaf of the script.",
        "A leaf is a name with a literal value, or a name without a value; a name that is computed is not an input.",
        "y = x**2\ny  # with --at x=1 --wrt y",
        "Name a leaf; the message lists them.",
    ),
    "GC207": CodeDoc(
        "cannot differentiate with respect to this",
        "A derivative is taken with respect to a constant, an expression or a name that is assigned several times.",
        "grad and the like need a variable, which gets its value at one place.",
        "grad(x**2, x + 1)",
        "Give the expression a name and differentiate with respect to that; leave out const to make a name a leaf.",
    ),
    "GC208": CodeDoc(
        "name already taken",
        "A statement would change the meaning of a name: of a leaf that is read above, or of a function.",
        "A name has one meaning in the whole script; otherwise its gradient would be ambiguous.",
        "y = x\nx = 3\ny",
        "Move the assignment above the first use, or choose another name.",
    ),
    "GC209": CodeDoc(
        "nothing to differentiate with respect to",
        "The script has no leaf, or each leaf is assigned again or read as a size, which makes it a constant.",
        "A gradient has one entry for each leaf; without leaves it is empty.",
        "x = 3\nx = x**2\nx",
        "Give the new value another name, so that the first name stays a leaf.",
    ),
    "GC210": CodeDoc(
        "leaf that is only an exponent",
        "A name with a whole-number value is used only as an exponent, but you differentiate with respect to it. "
        "This is a note.",
        "The derivative by an exponent exists for positive bases only; a constant integer power is defined for all.",
        "n = 3\nx**n  # with --at x=2",
        "Write const n = 3, unless you want the derivative with respect to the exponent.",
    ),
    "GC211": CodeDoc(
        "value that nothing uses",
        "--at gives a value to a name that the script does not read. This is a note.",
        "It is often a misspelled name, and the leaf that you meant keeps its default.",
        "alpha = 1\nalpha*2  # with --at alpah=3",
        "Correct the name, or leave it out of --at.",
    ),
    "GC212": CodeDoc(
        "hand-written rule does not fit",
        "A def f.vjp has no function f, its parameters, number of results or shapes are wrong, or f reads a leaf.",
        "A rule takes the operands of f and a cotangent, and returns one cotangent for each operand, in its shape.",
        "def f(a, b): return a*b\ndef f.vjp(a, b, ct): return ct*b\nf(x, y)  # with --at x=1,y=2",
        "Write def f.vjp(a, b, ct): return (ct*b, ct*a) beside def f(a, b): return a*b.",
    ),
    "GC213": CodeDoc(
        "function without a result",
        "A function of the script ends without a return in the branch that is taken.",
        "Every call must have a value.",
        "def f(n):\n    if n > 2:\n        return n\nf(1)*x  # with --at x=1",
        "End the function with a return, or add an else.",
    ),
    "GC214": CodeDoc(
        "const that reads a leaf",
        "The value of a const is computed from a leaf.",
        "A constant does not depend on the point: only literals, data and other constants may stand in it.",
        "const k = 2*x\nk*x  # with --at x=1",
        "Leave out const, make the leaf const too, or keep the value out of the gradient with detach(...).",
    ),
    "GC215": CodeDoc(
        "append to what is not a list",
        "An append, or += with a list, is applied to a name that holds a number, an array, a parameter, or a value of "
        "another name; or a value is added to an empty list by `+`, which adds entry by entry.",
        "Only a list that the same function created can grow, and values never change: after y = path, y keeps its "
        "entries.",
        "x = 2\nx.append(3)",
        "Begin with path = [] or path = [x], append in the loop, and use path after the loop.",
    ),
    "GC216": CodeDoc(
        "unusable declaration of an operation",
        "gradcli.operation(...), or an installed package that calls it, declares an operation that cannot be used.",
        "Every operation needs a value, a derivative and a name of its own. Other operations are not affected.",
        'gradcli.operation("gated(x)", "x*sigmoid(b*x)")  # in Python',
        "Correct the declaration as the message says, or update or uninstall the package that holds it.",
    ),
}
