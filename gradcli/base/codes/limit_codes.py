"""The codes of limits, as rows of the catalogue."""

from __future__ import annotations

from gradcli.base.codes.row import CodeDoc

LIMITS: dict[str, CodeDoc] = {
    "GC501": CodeDoc(
        "text too long",
        "The text has more bytes than the limit `text` allows.",
        "Limits protect the machine from mistakes and from hostile requests.",
        "x + y + z  # with --limit text=8",
        "Raise the limit, as in --limit text=1MiB.",
    ),
    "GC502": CodeDoc(
        "nested too deeply",
        "Brackets, signs, powers or blocks are nested more deeply than the limit `nesting` allows.",
        "Such text usually comes from a mistake or from a program that writes scripts; raising the limit is safe.",
        "((((x))))  # with --limit nesting=3",
        "Give an inner part a name in a statement of its own, or raise the limit: --limit nesting=1000.",
    ),
    "GC503": CodeDoc(
        "too many digits",
        "A literal has more digits than the limit `digits` allows.",
        "The time to read an exact number grows with the square of its length.",
        "x + 0.12345678  # with --limit digits=4",
        "Shorten the number (a float64 keeps 17 digits), or raise the limit: --limit digits=1000.",
    ),
    "GC504": CodeDoc(
        "exponent too large",
        "The decimal exponent of a literal is above 400 or below -400.",
        "No float64 is that large or that small, and the exact number would be slow to compute with.",
        "1e-4000 * x",
        "Write 0 or inf, or rescale.",
    ),
    "GC505": CodeDoc(
        "too many nodes",
        "The graph has more nodes than the limit `nodes` allows, or loops take more steps than the limit `work`.",
        "Loops and derivatives of high order grow quickly; the limits protect the machine.",
        "s = 0\nfor i in range(9):\n    s = s + sin(i*x)\ns  # with --limit nodes=8",
        "Make the loop shorter, use arrays instead of scalars, or raise the limit: --limit nodes=2000000.",
    ),
    "GC506": CodeDoc(
        "not enough memory",
        "There is not enough memory for a value or for the graph.",
        "The script is within its limits, but needs more memory than this machine has free.",
        "A = ones((8000, 8000))\nsum(A @ A @ A)",
        "Use smaller arrays, --dtype float32, or a form without the large intermediate value.",
    ),
    "GC507": CodeDoc(
        "data too large",
        "A data file contains more bytes or entries than the limit `elements` allows.",
        "gradcli reads the size from the header of the file before it allocates memory.",
        'X = load("huge.npy")\nsum(X)',
        "Load fewer columns, use a smaller file, or raise the limit: --limit elements=1000000000.",
    ),
    "GC508": CodeDoc(
        "array too large",
        "A shape has more entries or axes than one array may have.",
        "gradcli computes the size before it allocates memory, so a mistake costs nothing.",
        "zeros(100000, 100000)",
        "Sum over an axis before repeating it, or use smaller sizes.",
    ),
    "GC509": CodeDoc(
        "calls nested too deeply",
        "Functions of the script call each other more than 64 levels deep, or repeat more than 30,000 calls with the "
        "same arguments.",
        "Functions are inlined where they are called, and calls that double at each level would never end.",
        "def a(x): return x\n"
        "def a.vjp(x, ct): return (ct,)\n"
        "def b(x): return a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x)\n"
        "def c(x): return b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x)\n"
        "def d(x): return c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x)\n"
        "def f(x): return d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x)\n"
        "f(x) + f(2*x) + f(3*x) + f(4*x)",
        "Call a function once and give the result a name, or repeat a step with a loop.",
    ),
    "GC510": CodeDoc(
        "drawing too large",
        "The drawing of a graph would have more than 8,000 boxes.",
        "Nobody can read so many boxes, and a browser takes long to draw them.",
        "y = 1*x\nfor i in range(9000):\n    y = sin(y)\ny  # with --max-nodes 20000 --format svg",
        "Leave --max-nodes out, so that each source line becomes one box, or use --format dot or json.",
    ),
    "GC511": CodeDoc(
        "no formula",
        "The gradient has no formula in the script language that is short enough to read.",
        "Derivatives of singular values, matrix exponentials and long loops are sequences of many steps.",
        'f = gradcli.compile("A = [[2, 1], [1, 3], [0, 1]]; sum(svdvals(A))"); f.gradient_formula("A")  # in Python',
        "Use gradcli trace, which shows the steps, or gradcli grad, which computes the numbers.",
    ),
    "GC512": CodeDoc(
        "no counterpart in another language",
        "The language of derive --emit lacks a function of the script, or a form of its arguments.",
        "C has no library of array functions, and NumPy, PyTorch and JAX lack some special functions.",
        "gradcli derive 'sum(iv(1, x))' --emit c",
        "Choose another language for --emit, or write the function in terms of others.",
    ),
}
