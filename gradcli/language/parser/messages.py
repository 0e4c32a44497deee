"""Messages for tokens that cannot stand where they do: code, headline and help, with a guess at what was meant.

Only tokens are read. Common habits from Python, NumPy and other languages are recognised.
"""

from __future__ import annotations

from gradcli.base.diagnostics import did_you_mean, visible
from gradcli.language.lexer import (
    DEDENT,
    END,
    INDENT,
    LANGUAGE_WORDS,
    NAME,
    NEWLINE,
    NUMBER,
    PYTHON_WORDS,
    STRING,
)

Message = tuple[str, str, str | None]  # code, headline, help

LANGUAGE = frozenset(LANGUAGE_WORDS)
PYTHON = frozenset(PYTHON_WORDS)
WORDS = LANGUAGE | PYTHON
# functions that textbooks write with a power in front of the argument
INVERTED = ("sin", "cos", "tan", "sinh", "cosh", "tanh")  # asin is the inverse of sin
WITH_POWERS = frozenset(
    ["sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "log", "ln", "exp", "sqrt", "abs", "erf"]
    + ["max", "min", "norm", "det", "tr", "trace"]
)

OPERATORS: dict[str, str] = {
    "//": "write floor(a/b)",
    "%": "write mod(a, b)",
    "&": "write `and`",
    "&&": "write `and`",
    "|": "write `or`; the absolute value is abs(x)",
    "||": "write `or`; the length of a vector is norm(x)",
    "!": "write `not`, or factorial(n)",
    "~": "write `not`",
    "<<": "multiply by 2**n",
    ">>": "divide by 2**n",
    "<>": "write `!=`",
    "=>": "write `>=`",
    "=<": "write `<=`",
    "===": "write `==`",
    "!==": "write `!=`",
    "->": "a function has no types: def f(a): return a",
    ":=": "give the assignment a statement of its own",
    "//=": "write x = floor(x/a)",
    "%=": "write x = mod(x, a)",
    "&=": "write x = x and a",
    "|=": "write x = x or a",
}
# words of other languages in front of a name at the start of a statement
DECLARATIONS: dict[str, str] = {
    **dict.fromkeys(("let", "var", "val", "local", "auto", "double", "float", "int"), "leave it out: write {} = 2"),
    **dict.fromkeys(("syms", "symbols"), "remove the line: a name that has no value yet is a variable"),
    **dict.fromkeys(("function", "func", "fn", "fun"), "write f(x) = x**2, or def f(x): and an indented block"),
    **dict.fromkeys(("using", "include", "require"), "remove the line: every function is there already"),
    **dict.fromkeys(("format", "hold", "clear", "close", "clc"), "remove the line: it computes nothing"),
}
ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "@=", "**=", "^="))
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))

PYTHON_HELP: dict[str, str] = {
    "import": "remove the line: `np.` and the like in front of a function are understood",
    "from": "remove the line: every function is there already",
    "while": "write for i in range(n): with a fixed n",
    "class": "write functions: def f(a): return a",
    "lambda": "write def f(x): return ... on a line of its own; as a name write lam or λ",
    "with": "remove it: values have no state",
    "try": "nothing raises here: where(...) chooses between values",
    "except": "nothing raises here: where(...) chooses between values",
    "finally": "nothing raises here; remove it",
    "raise": "write assert for a claim",
    "del": "values need no deleting; remove it",
    "global": "a function sees the names of the script; remove it",
    "nonlocal": "a function sees the names of the script; remove it",
    "pass": "a block holds at least one assignment or a return",
    "break": "a loop always runs to its end: where(...) chooses between values",
    "continue": "a loop always runs to its end: where(...) chooses between values",
    "yield": "write return",
    "async": "remove it",
    "await": "remove it",
    "is": "write `==`",
    "as": "remove it",
}
ATTRIBUTES: dict[str, str] = {
    "shape": "write shape(x), or len(x) for the first axis",
    "size": "write prod(shape(x))",
    "ndim": "write len(shape(x))",
    **dict.fromkeys(("dtype", "float64", "float32"), "every number is a float; the option --dtype chooses which"),
    "grad": "write grad(y, x)",
    "data": "write detach(x)",
    "mT": "write swapaxes(x, -1, -2)",
    "H": "write x.T",
    "flat": "write flatten(x)",
}
_NO_SHOW = "remove it: the value of the last line is shown, `gradcli trace` shows every value on the way"
_NO_PLOT = "remove the line: data are not plotted; `gradcli graph` draws the computation"
_NO_SEED = "remove the line: each call takes its own seed, randn(3, seed=1)"
_NO_MODE = "remove the line: every leaf has a gradient, and const x = ... is never differentiated"
_NO_LAYER = "write it as an expression, such as relu(W @ x + b); `gradcli run FILE` takes a PyTorch file as it is"
_NO_LOOP = "compute with whole arrays, such as sum(x*y), or write for i in range(len(x)):"
_NO_SOLVER = "in Python, give the solver the function and gradient of gradcli.compile(...)"
_NO_TYPE = "remove it: every value is an array of floats, whose shape is shape(x)"
# What people call by habit and no function here replaces: the way out.
CALLS: dict[str, str] = {
    **dict.fromkeys(("print", "display", "pprint", "format", "repr", "str", "input", "tolist"), _NO_SHOW),
    **dict.fromkeys(("plot", "show", "scatter", "hist", "figure", "subplots", "legend", "xlabel", "ylabel"), _NO_PLOT),
    **dict.fromkeys(("seed", "manual_seed", "default_rng", "RandomState", "PRNGKey", "key"), _NO_SEED),
    **dict.fromkeys(("requires_grad_", "no_grad", "set_grad_enabled", "zero_grad", "retain_grad", "eval"), _NO_MODE),
    **dict.fromkeys(("Linear", "Conv2d", "Sequential", "ReLU", "Parameter", "Module", "Adam", "SGD"), _NO_LAYER),
    **dict.fromkeys(("zip", "map", "filter", "enumerate", "reduce", "vmap", "vectorize"), _NO_LOOP),
    **dict.fromkeys(("minimize", "root", "fsolve", "curve_fit", "least_squares", "quad", "odeint"), _NO_SOLVER),
    **dict.fromkeys(("isinstance", "type", "dict", "set", "tuple", "astype", "to", "cuda", "int64", "int32"), _NO_TYPE),
    **dict.fromkeys(("eig", "eigvals"), "those of a symmetric matrix are eigh(A) and eigvalsh(A)"),
    **dict.fromkeys(("d", "D", "deriv", "derivative", "differentiate"), "a derivative is grad(y, x), or grad(y, x, n)"),
    **dict.fromkeys(("sqrtm", "logm"), "of a symmetric A it is V @ diag(sqrt(w)) @ V.T, or log(w), of w, V = eigh(A)"),
    "lstsq": "write pinv(A) @ b",
    "σ": "write sigmoid(x)",
    "backward": "write grad(y, x), or ask `gradcli grad`",
    "value_and_grad": "write grad(y, x); `gradcli grad` shows the value too",
    "range": "range follows `for`; an array of numbers is arange(n)",
    "list": "remove it: [a, b] is an array",
    "int": "write trunc(x); every number is a float",
    "bool": "write x != 0",
    "open": 'write load("points.csv")',
    "loadtxt": 'write load("points.csv")',
    "read_csv": 'write load("points.csv")',
    "uniform": "write a + (b - a)*rand(n, seed=1)",
    "normal": "write mu + sigma*randn(n, seed=1)",
    "Normal": "write norm_logpdf(x, mu, sigma) for its log_prob(x)",
    **dict.fromkeys(
        ("logpdf", "logpmf", "pdf", "cdf", "ppf"), "write it as norm.logpdf(x, mu, sigma), norm.cdf(x), ..."
    ),
    "log_prob": "write norm_logpdf(x, mu, sigma), gamma_logpdf(x, a, 0, scale), ...",
    **dict.fromkeys(("binom", "comb", "nchoosek"), "write factorial(n)/(factorial(k)*factorial(n - k))"),
    "append": "write concatenate((x, [value]))",
    "size": "write prod(shape(x)), or shape(x) for all sizes",
    "gradient": "differences of neighbours are diff(x); a derivative is grad(y, x)",
    "reduce_sum": "write sum(x)",
    "reduce_mean": "write mean(x)",
}
STRING_HELP = (
    "strings are load's path, einsum's subscripts, norm's order, and the options approximate=, mode=, ord=, reduction="
)


def differential(name: str) -> str:
    """The `x` of `dx`, as in d/dx; empty for another name."""
    return shown(name[1:]) if name[:1] == "d" else ""


def shown(text: str) -> str:
    """Return untrusted text for use inside a message."""
    return visible(text, 30)


def _string_help(texts: list[str], i: int) -> str:
    """What to write in place of the string at token `i`."""
    if "print" in texts[max(i - 8, 0) : i]:
        return _NO_SHOW
    if "__name__" in texts[max(i - 3, 0) : i]:
        return "remove the line and the indentation below it: a script runs from its first line to its last"
    if "load" in texts[max(i - 6, 0) : i]:
        return "of several arrays, load takes the one named like the variable: y = load(path) takes y"
    return STRING_HELP


def described(kind: str, text: str) -> str:
    """Return a token as a reader sees it."""
    if kind == NEWLINE:
        return "the end of the line"
    if kind == END:
        return "the end of the text"
    if kind in (INDENT, DEDENT):
        return "a change of indentation"
    if kind == STRING:
        return "a string"
    return f"`{shown(text)}`"


def word(kind: str) -> Message:
    """Return the message for a reserved word inside an expression."""
    if kind == "if" or kind == "else":
        return "GC121", "conditional expressions are not supported", "write where(condition, a, b)"
    if kind == "for":
        hint = "write [x**2 for x in xs], or sum(x**2 for x in xs)"
        return "GC120", "a comprehension is written in square brackets, a generator alone in a call", hint
    if kind == "None":
        hint = "None adds an axis in a subscript, x[None, :], or is an option's value, axis=None"
        return "GC132", "`None` is not a value", hint
    if kind == "in":
        hint = "it declares a leaf, x in (0, 1), or belongs to a for statement"
        return "GC116", "`in` is not an operator", hint
    if kind == "is":
        return "GC116", "`is` is not an operator", "write `==`"
    if kind == "not":
        return "GC116", "`not` comes before a value", "write not (a == b), or a != b"
    if kind in PYTHON:
        return "GC118", f"`{kind}` is not part of the language", PYTHON_HELP.get(kind)
    return "GC132", f"`{kind}` is a reserved word", "it cannot stand inside an expression"


def before_operand(kinds: list[str], texts: list[str], i: int, call: bool, index: bool) -> Message:
    """Return what to say about token `i`, which stands where a value is due, not counting brackets.

    `call` and `index`: whether the innermost open bracket is one of a call or of a subscript.
    """
    kind, before = kinds[i], kinds[i - 1] if i else NEWLINE
    if kind == STRING:
        return "GC110", "a string is not a value", _string_help(texts, i)
    if kind == "..." or kind == ":":
        what = "`...` is not supported" if kind == "..." else "a slice is allowed only in the brackets after a value"
        return "GC129", what, "write an index or a slice for each axis, such as x[:, 0]"
    if kind in ("*", "**") and call and before in ("(", ","):
        return "GC130", "starred arguments are not supported", "write the arguments one by one"
    if kind in OPERATORS:
        return "GC116", f"`{kind}` is not an operator", OPERATORS[kind]
    if kind == "not":
        return "GC112", f"`not` cannot follow `{shown(texts[i - 1])}`", "put it in brackets: (not x)"
    if kind in WORDS:
        return word(kind)
    if kind == "=" and before == "=":
        return "GC115", "`= =` is written without a space", "write `==` to compare"
    if index and kind == "]" and before == "[":
        return "GC129", "the brackets are empty", "write an index or a slice, such as x[0] or x[:]"
    token = described(kind, texts[i])
    if before in (NEWLINE, INDENT, DEDENT, ";"):
        hints = {"**": "leave out the `**` of Markdown: write x", "=": "leave out the `=` of a spreadsheet: write x*2"}
        return "GC112", f"a statement cannot start with {token}", hints.get(kind)
    left = described(before, texts[i - 1])
    hint = f"write x {before}= 1" if before in ("+", "-") and i > 1 and kinds[i - 2] == before else None
    if before == "=" and kind == "@":
        hint = "write a function as f(x) = x**2"
    if kind in (NEWLINE, END, ";"):
        return "GC112", f"a value is missing after {left}", hint
    return "GC112", f"a value is missing between {left} and {token}", hint


def call_of(texts: list[str], i: int) -> str:
    """Return the call that was meant where token `i` follows the name of a function, as in `sin x`."""
    return f"{shown(texts[i - 1])}({shown(texts[i])})"


def after_operand(kinds: list[str], texts: list[str], i: int, touching: bool, call: bool, inside: bool) -> Message:
    """Return what to say about token `i`, which stands where an operator or an end is due.

    `touching`: whether it follows the token before it without a space, `call` as in before_operand,
    `inside` whether any bracket is open.
    """
    kind, before = kinds[i], kinds[i - 1]
    token = described(kind, texts[i])
    if kind == STRING:
        if before == NAME and touching:
            hint = _string_help(texts, i)
            return "GC110", "f-strings and other string prefixes are not supported", hint
        return "GC110", "a string is not a value", _string_help(texts, i)
    if kind in (NAME, NUMBER, "(", "[", "True", "False", "None"):
        left = described(before, texts[i - 1])
        if kind == NUMBER and before == NUMBER and touching:
            joined = shown(texts[i - 1] + texts[i])
            return "GC106", f"`{joined}` is not a number", "a number has one decimal point"
        if kind == "[":
            return "GC129", f"the number {left} has no entries", "write a product with `*`"
        if kind == "(":
            return "GC114", f"missing operator between {left} and `(`", "only a name can be called; write `*`"
        hint = "write `*` for a product"
        if texts[i] == "mod":
            return "GC114", f"missing operator between {left} and `mod`", f"write mod({shown(texts[i - 1])}, ...)"
        if texts[i - 1] in ("|", "||") and touching and texts[i].startswith("_"):
            return "GC114", f"{token} behind {left} is not supported", "write norm(x, p) for a norm, with p=1 or inf"
        if texts[i - 2 : i] == [".", "T"]:
            return "GC114", f"missing operator between `.T` and {token}", "write `@` for a product, as in x.T @ A"
        first = i == 1 or kinds[i - 2] in (NEWLINE, INDENT, DEDENT, ";")
        if before == NAME and first and kind == NAME and texts[i - 1] in DECLARATIONS:
            hint = DECLARATIONS[texts[i - 1]].format(shown(texts[i]))
        elif before == NAME and texts[i - 1] in WITH_POWERS:
            hint = f"write {call_of(texts, i)}"
        elif before == NAME and (keyword := did_you_mean(texts[i - 1], ("return", "assert"))):
            hint = f"did you mean `{keyword}`?"
        elif before == NAME and kind == NAME and texts[i - 1][:1].isupper() and texts[i][:1].isupper():
            product = f"{shown(texts[i - 1])} @ {shown(texts[i])}"
            hint = f"write {product} for a product of matrices, {product.replace(' @ ', '*')} entry by entry"
        elif before == NAME and kind != NUMBER:
            hint = f"write {shown(texts[i - 1])}*{shown(texts[i])} for a product or {call_of(texts, i)} for a call"
        elif before == NAME:
            product = f"{shown(texts[i - 1])}*{shown(texts[i])} or {shown(texts[i - 1])}**{shown(texts[i])}"
            hint = f"write {product}, or {call_of(texts, i)} for a call"
        return "GC114", f"missing operator between {left} and {token}", hint
    if kind in ASSIGNMENTS:
        if kind != "=":
            return "GC115", f"`{kind}` inside an expression", "give the assignment a statement of its own"
        return "GC115", "`=` inside an expression", "did you mean `==`?"
    if kind == "||" and texts[i] == "‖":
        return "GC114", f"missing operator between {described(before, texts[i - 1])} and `‖`", "write `*` for a product"
    if kind in OPERATORS:
        return "GC116", f"`{kind}` is not an operator", OPERATORS[kind]
    if kind in WORDS:
        return word(kind)
    if kind == ":" and call:
        return "GC130", "a slice is an option's value only in load", "write load(path, columns=0:2)"
    if kind == ":" and inside:
        return "GC129", "a slice is allowed only in the brackets after a value", "write it as in x[0:2]"
    if kind in (NEWLINE, END):
        return "GC112", f"unexpected {token}", None
    return "GC131", f"unexpected {token} after the end of the expression", "start a new line, or use `;`"
