"""The commands and signs of LaTeX that have a meaning in scripts, and what to write in place of the others."""

from __future__ import annotations

# --- signs, functions, and what to write in place of other commands

EQUATIONS = frozenset(("equation", "align", "aligned", "gather", "gathered", "split", "multline", "eqnarray"))
SPACES = frozenset(
    ("left", "right", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr")
    + ("quad", "qquad", "displaystyle", "textstyle", "boxed", "limits", "nolimits", "nonumber", "notag", "mathstrut")
    + (r"\,", r"\;", r"\:", r"\!", r"\ ", "$", r"\(", r"\)", r"\[", r"\]")
)
GREEK = frozenset(
    ("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa")
    + ("mu", "nu", "xi", "rho", "varrho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega")
    + ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega", "ell", "hbar")
)
TIMES = {"*": "*", "cdot": "*", "times": "*", "ast": "*", "odot": "*", "circ": "*", "@": "@"}
OVER = {"/": "/", "div": "/"}
COMPARISONS = {sign: sign for sign in ("==", "<", ">")}
COMPARISONS |= {"le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "neq": "!=", "ne": "!="}
PAIRS = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "lbrace": "rbrace"}
BREAKS = (r"\\", ";")  # between statements
BARS = {"|": "|", "lvert": "rvert", "vert": "vert"}
NORMS = {r"\|": r"\|", "lVert": "rVert", "Vert": "Vert"}
ROUNDED = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
CLOSING = frozenset((*PAIRS.values(), "rvert", "rVert", ",", ";", "=", "", *COMPARISONS, "+", "-", "&", r"\\"))
CLOSING |= {"rangle", *(closing for closing, _ in ROUNDED.values())}
WORDS = frozenset((*TIMES, *OVER, *COMPARISONS, *PAIRS, *PAIRS.values(), *BARS, "rvert", *NORMS, "rVert"))
WORDS |= {"langle", "rangle", *ROUNDED, *(closing for closing, _ in ROUNDED.values())}
FUNCTIONS = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "det", "max", "min")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan")},
    **{f"ar{name}": f"a{name}" for name in ("sinh", "cosh", "tanh")},
    "ln": "log",
    "tr": "trace",
    "Tr": "trace",
    "sgn": "sign",
    "LSE": "logsumexp",
    **{name: name.lower() for name in ("ReLU", "GELU", "ELU", "SELU", "SiLU", "Softmax", "Sigmoid", "Var", "Diag")},
}
RECIPROCALS = {"sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh"}
INDEXED = frozenset(("\\sum", "\\prod", "\\max", "\\min"))  # what an index stands below
SEVERAL = {"max": "maximum", "min": "minimum"}  # of two values
MEANT = "write the function that is meant in a line without LaTeX, or \\cdot for a product"
DIFFERENTIATED = "write the function alone; `gradcli grad` and `derive` differentiate it"
AT_A_POINT = "write the derivative alone; the option --at gives the point"
INDICATOR = "write a comparison in brackets, such as (x > 0), which is 1 or 0"
EXPECTED = "write the value of one sample, or mean(x) of an array of samples"
DOTS = ("dots", "ldots", "cdots")
ELSEWHERE = {  # what to write in place of a command
    **dict.fromkeys(("arg", "argmin", "argmax", "inf", "sup"), DIFFERENTIATED),
    "partial": "write \\frac{\\partial y}{\\partial x}, or grad(y, x) in a line without LaTeX",
    "nabla": "write \\nabla_x y, or grad(y, x) or laplacian(y, x) in a line without LaTeX",
    **dict.fromkeys(("int", "iint", "oint"), "integrals are not supported; write the function that is integrated"),
    **dict.fromkeys(("lim", "to", "rightarrow", "limsup"), "limits are not supported; write the function itself"),
    "mathbb": EXPECTED,
    "infty": "a sum needs a finite bound; write inf in a line without LaTeX",
    "prime": "write grad(f(x), x) for a derivative, in a line without LaTeX",
    "mid": "write a comma between the arguments, as in p(x, y)",
    "Pr": "write \\mathrm{Pr} for a name",
    "otimes": "write \\mathrm{kron}(A, B) or \\mathrm{outer}(x, y)",
    **dict.fromkeys(("oplus", "star", "bullet", "wedge", "vee", "cap", "cup", "setminus", "ominus"), MEANT),
    **dict.fromkeys(("approx", "equiv", "sim", "simeq", "cong", "propto", "triangleq"), "write = or =="),
    **dict.fromkeys(("leftarrow", "gets", "coloneqq"), "write = between a new name and its value"),
    **dict.fromkeys(("Rightarrow", "implies", "iff", "Leftrightarrow"), "write each equation in a line of its own"),
    **dict.fromkeys(("colon", "mapsto", "longmapsto"), "write f(x) = .. to define a function"),
    **dict.fromkeys(("choose", "over"), "write \\binom{n}{k} or \\frac{a}{b}"),
    **dict.fromkeys(("forall", "exists"), "write the equation alone; gradcli.check samples points of its own"),
    **dict.fromkeys(("ll", "gg"), "write < or >"),
    **dict.fromkeys(("pm", "mp"), "write + or -"),
    **dict.fromkeys(("overset", "underset", "stackrel", "underbrace", "overbrace"), "write the formula without it"),
    **dict.fromkeys(("color", "textcolor", "phantom", "hspace", "mathop"), "write the formula without it"),
    "in": "write a domain in a line without LaTeX: x in (0, 1)",
    **dict.fromkeys(("bmod", "pmod"), "write \\mathrm{mod}(a, b)"),
    "dagger": "write x^\\top for a transpose",
    "%": "write the number divided by 100",
    "'": "write ^\\top for a transpose, grad(f(x), x) for a derivative, x_2 for another point",
    **dict.fromkeys(("left.", "right."), AT_A_POINT),
    **dict.fromkeys((*DOTS, "vdots"), "write every term, or \\sum_{i=1}^{n}"),
}
BLACKBOARD = {"1": INDICATOR, "I": INDICATOR, "R": "write the formula alone; shapes follow from it"}

# --- letters and names

ALPHABETS = frozenset(("mathrm", "mathit", "mathsf", "mathtt", "mathcal", "text", "textrm", "operatorname"))
BOLD = frozenset(("mathbf", "boldsymbol", "bm", "vec"))
ACCENTS = {name: name for name in ("hat", "bar", "tilde", "dot", "ddot")} | {"overline": "bar", "widehat": "hat"}
WITH_WORDS = frozenset([f"\\{name}" for name in (*ALPHABETS, *BOLD, *ACCENTS)])
RENAMED = {"lambda": "λ", "pi": "pi_", "π": "pi_"}  # a word of Python, and weights pi_k beside the number
MATRICES = frozenset(("Sigma", "Lambda", "Omega", "Theta", "Phi", "Psi", "Xi"))  # Delta x is often a difference
MATRIX_VALUED = frozenset(("diag", "outer", "kron", "eye", "inv", "expm"))
ENTRYWISE = frozenset(("exp", "log", "sin", "cos", "tanh", "softmax", "log_softmax", "relu", "sigmoid", "gelu", "silu"))
SEPARATORS = frozenset(("|", r"\|", "Vert", "vert", "\\mid", "\\parallel"))
INDEX_LETTERS = frozenset("ijklmnpqrst")

# --- functions, matrices, exponents

INVERSES = {"sin": "asin", "cos": "acos", "tan": "atan", "sinh": "asinh", "cosh": "acosh", "tanh": "atanh"}
MATRIX_ENVIRONMENTS = {"matrix": "", "pmatrix": "", "bmatrix": "", "vmatrix": "det"}
UPRIGHT = ("\\mathsf", "\\mathrm", "\\text", "\\textsf")
LETTERS_T = (
    *(["\\top"], ["\\intercal"], ["T"]),
    *([alphabet, *tokens] for alphabet in UPRIGHT for tokens in (["T"], ["{", "T", "}"])),
)
TRANSPOSES = (*LETTERS_T, *(["{", *tokens, "}"] for tokens in LETTERS_T))  # exponents that transpose
INVERSE_TRANSPOSES = tuple(["{", "-", *tokens, "}"] for tokens in LETTERS_T)
