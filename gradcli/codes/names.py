"""The codes of names, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

NAMES: dict[str, CodeDoc] = {
    "GC201": CodeDoc(
        "unknown function",
        "A call names a function that neither the language nor the script has.",
        "Every function has a declared derivative, so there is no way to call one that is not declared.",
        "sine(x)",
        "gradcli ops lists all functions; define your own with def f(a): return ...",
    ),
    "GC202": CodeDoc(
        "name without a value",
        "A name has neither a value at this point nor one in the script.",
        "A formula has no value until each of its variables has one. A claim sees leaves, sizes and --at names only.",
        "x + y  # with --at x=1",
        "Give it one, as in --at x=1,y=2, or a default in the script: y = 2.",
    ),
    "GC203": CodeDoc(
        "a value is called",
        "What comes before the brackets is a value, not a function.",
        "x(3) is a call; a product with a name on the left needs its sign.",
        "x = 2\nx(3)",
        "Write x*(3); a function whose name the script has assigned needs another name for the value.",
    ),
    "GC204": CodeDoc(
        "function that calls itself",
        "A function of the script is called while it is being worked out, directly or through another one.",
        "Functions are inlined where they are called, so a call of itself would never end.",
        "def f(a): return f(a)\nf(x)",
        "Write a for loop over the steps.",
    ),
    "GC205": CodeDoc(
        "arguments do not fit",
        "A call gives a function too few or too many arguments, or one by a name that it does not have.",
        "Arguments are bound as in Python: by position, then by name, each once.",
        "sin(x, y)",
        "gradcli ops NAME shows the form of a function of the language.",
    ),
    "GC206": CodeDoc(
        "no such leaf",
        "--wrt, --claim, --tensor or shared= names something that is not a leaf of the script.",
        "A leaf is a name given a literal, or a free name; a computed name is not an input.",
        "y = x**2\ny  # with --at x=1 --wrt y",
        "Name a leaf; the message lists them.",
    ),
    "GC207": CodeDoc(
        "cannot differentiate with respect to this",
        "grad and its relatives are given a constant, an expression or a name that is assigned several times.",
        "A derivative is taken by one variable, and each variable has one place where it gets its value.",
        "grad(x**2, x + 1)",
        "Give the expression a name of its own and differentiate with respect to that; leave out const.",
    ),
    "GC208": CodeDoc(
        "name already taken",
        "A statement would change what a name means: a leaf that was read above, a function that is defined.",
        "What a name means must not depend on where it is read, or a gradient would be ambiguous.",
        "y = x\nx = 3\ny",
        "Move the assignment above the first use, or choose another name.",
    ),
    "GC209": CodeDoc(
        "nothing to differentiate with respect to",
        "The script has no leaf, or each of them became a constant because it is assigned again or read as a size.",
        "A gradient has one entry for each leaf; without any it is empty.",
        "x = 3\nx = x**2\nx",
        "Give the new value another name; the first one stays a leaf.",
    ),
    "GC210": CodeDoc(
        "leaf that is only an exponent",
        "A name with a whole-number value stands only as an exponent, and a gradient with respect to it is "
        "asked for. This is a note.",
        "As a leaf it makes x**n a power of positive bases only; as a constant, an integer power of any base.",
        "n = 3\nx**n  # with --at x=2",
        "Write const n = 3 unless the derivative with respect to the exponent is wanted.",
    ),
    "GC211": CodeDoc(
        "value that nothing uses",
        "--at gives a value to a name that the script does not read. This is a note.",
        "It is often a misspelled name, whose real value is then missing or a default.",
        "alpha = 1\nalpha*2  # with --at alpah=3",
        "Correct the name, or leave it out.",
    ),
    "GC212": CodeDoc(
        "hand-written rule does not fit",
        "A def f.vjp has no function f, other parameters, another number of results or shape, or f reads a leaf.",
        "A rule takes the operands of f and a cotangent, and returns one cotangent for each operand, in its shape.",
        "def f(a, b): return a*b\ndef f.vjp(a, b, ct): return ct*b\nf(x, y)  # with --at x=1,y=2",
        "Write def f.vjp(a, b, ct): return (ct*b, ct*a) beside def f(a, b): return a*b.",
    ),
    "GC213": CodeDoc(
        "function without a result",
        "A function of the script came to its end without a return, in the branch that was taken.",
        "A call is a value.",
        "def f(n):\n    if n > 2:\n        return n\nf(1)*x  # with --at x=1",
        "End the function with a return, or add an else.",
    ),
    "GC214": CodeDoc(
        "const that reads a leaf",
        "const comes before a value that is computed from a leaf.",
        "A constant never changes with the point: it is made of literals, data and other constants.",
        "const k = 2*x\nk*x  # with --at x=1",
        "Leave out const, make the leaf const too, or keep the value out of the gradient with detach(...).",
    ),
    "GC215": CodeDoc(
        "append to what is not a list",
        "A name that is appended to holds a number, an array or a parameter, or its value was taken before; += counts.",
        "Only a list of the same function grows, and values never change: y = path stays what path was.",
        "x = 2\nx.append(3)",
        "Begin with path = [] or path = [x], append in the loop, and read path after it.",
    ),
    "GC216": CodeDoc(
        "declaration of an operation that does not fit",
        "gradcli.operation(...), or an installed package that calls it, declares an operation that cannot be used.",
        "Every operation has a value and a derivative, and a name of its own. Other operations are not affected.",
        "x*sigmoid(b*x)  # in Python: gradcli.operation('gated(x)', script)",
        "Correct the declaration as the message says; update or uninstall a package of somebody else.",
    ),
}
