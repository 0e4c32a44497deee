"""The codes of limits, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

LIMITS: dict[str, CodeDoc] = {
    "GC501": CodeDoc(
        "text too long",
        "The text has more bytes than the limit `text` allows.",
        "Limits keep a mistake or a hostile request from taking the machine.",
        "x + y + z  # with --limit text=8",
        "Raise it with --limit text=1MiB.",
    ),
    "GC502": CodeDoc(
        "nested too deeply",
        "Brackets, signs, powers or blocks are nested more deeply than the limit `nesting` allows.",
        "Such text comes from a mistake or a generator; raising the limit is safe.",
        "((((x))))  # with --limit nesting=3",
        "Name an inner part in a statement of its own, or raise it with --limit nesting=1000.",
    ),
    "GC503": CodeDoc(
        "too many digits",
        "A literal has more digits than the limit `digits` allows.",
        "Exact literals cost time and memory with the square of their length.",
        "x + 0.12345678  # with --limit digits=4",
        "A float64 keeps 17 digits; shorten it, or raise it with --limit digits=1000.",
    ),
    "GC504": CodeDoc(
        "exponent too large",
        "The decimal exponent of a literal is over 400 in size.",
        "No float64 is that large or small, and the exact number would take long to build.",
        "1e-4000 * x",
        "Write 0 or inf, or rescale.",
    ),
    "GC505": CodeDoc(
        "too many nodes",
        "The graph has more nodes than the limit `nodes` allows, or loops take more steps than the limit `work`.",
        "Unrolled loops and high derivatives grow fast; the limits keep them from taking the machine.",
        "s = 0\nfor i in range(9):\n    s = s + sin(i*x)\ns  # with --limit nodes=8",
        "Make the loop shorter, use arrays instead of scalars, or raise it with --limit nodes=2000000.",
    ),
    "GC506": CodeDoc(
        "not enough memory",
        "The machine could not give the memory for a value or for the graph.",
        "The value fits the limits of the script, not this machine.",
        "A = ones((8000, 8000))\nsum(A @ A @ A)",
        "Use smaller arrays, --dtype float32, or a form without the large intermediate.",
    ),
    "GC507": CodeDoc(
        "data too large",
        "A data file holds more bytes or entries than the limit `elements` allows.",
        "The size is read from the file's header before any memory is taken.",
        'X = load("huge.npy")\nsum(X)',
        "Load fewer columns, shrink the file, or raise it with --limit elements=100000000.",
    ),
    "GC508": CodeDoc(
        "array too large",
        "A shape has more entries or axes than one array may have.",
        "The size is computed before anything is made, so a mistake costs nothing.",
        "zeros(100000, 100000)",
        "Sum over an axis before repeating it, or use smaller sizes.",
    ),
    "GC509": CodeDoc(
        "calls nested too deeply",
        "Functions of the script call each other more than 64 levels deep, or are called 30,000 times to no effect.",
        "Functions are inlined; calls that double at each level would take for ever.",
        "def a(x): return x\n"
        "def a.vjp(x, ct): return (ct,)\n"
        "def b(x): return a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x) + a(x)\n"
        "def c(x): return b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x) + b(x)\n"
        "def d(x): return c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x) + c(x)\n"
        "def f(x): return d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x) + d(x)\n"
        "f(x) + f(2*x) + f(3*x) + f(4*x)",
        "Call fewer functions inside each other; a loop repeats a step without nesting.",
    ),
    "GC510": CodeDoc(
        "drawing too large",
        "A drawing would have more than 1,500 boxes.",
        "So many are not legible, and a browser takes minutes to draw them.",
        "y = 1*x\nfor i in range(2000):\n    y = sin(y)\ny  # with --boxes 5000 --format svg",
        "Leave --boxes at its default, so that each source line becomes one box, or use --format dot or json.",
    ),
    "GC511": CodeDoc(
        "no formula",
        "A gradient has no formula in the script language that is short enough to be read.",
        "Eigenvalues, matrix exponentials and long loops have derivatives only as a sequence of steps.",
        'A = [[2, 1], [1, 3], [0, 1]]; sum(svdvals(A))  # in Python: f.gradient_formula("A")',
        "Use `gradcli trace`, which shows the steps, or `gradcli grad`, which gives the numbers.",
    ),
    "GC512": CodeDoc(
        "no counterpart in another language",
        "A function of a script, or a form of its arguments, has no counterpart in the language of `derive --emit`.",
        "C has no library of array functions; NumPy, PyTorch and JAX lack some special functions.",
        "gradcli derive 'sum(iv(1, x))' --emit numpy",
        "Emit for another language, or write the function in terms of others.",
    ),
}
