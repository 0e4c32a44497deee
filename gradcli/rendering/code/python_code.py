"""Formulas as Python functions on NumPy, PyTorch or JAX arrays."""

from __future__ import annotations

import math
from keyword import kwlist

from gradcli.diagnostics import error, visible
from gradcli.language.substitution import expression_of
from gradcli.language.syntax import (
    Binary,
    Call,
    Compare,
    List,
    Name,
    Number,
    Slice,
    Subscript,
    Transpose,
    Unary,
    names_in,
)
from gradcli.language.unparse import unparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.execution.results import SelfContained
    from gradcli.language.syntax import Syntax

SUM, PRODUCT, SIGN, POWER, ATOM = range(1, 6)
# functions with the same name and arguments in all three
SAME = frozenset(
    [
        "sin", "cos", "tan", "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "abs", "sign", "sinh",
        "cosh", "tanh", "floor", "ceil", "hypot", "exp2", "logaddexp", "sum", "mean", "prod", "outer", "trace", "diag",
        "eye", "kron", "where", "maximum", "minimum", "round", "trunc", "sinc", "triu", "tril",
    ]
)  # fmt: skip
ARCS = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
NUMPY = {
    **{name: f"np.{name}" for name in (*SAME, "max", "min", "var", "std", "cbrt", "cross", "heaviside", "cumprod")},
    **{name: f"np.{name}" for name in ("mod", "dot", "matmul", "cumsum")},
    **{f"a{name}": f"np.arc{name}" for name in ARCS},
    **{name: f"np.linalg.{name}" for name in ("inv", "det", "solve", "matrix_power", "norm")},
    "atan2": "np.arctan2",
    "pow": "np.power",
}
TORCH = {
    **{name: f"torch.{name}" for name in (*SAME, "atan2", "pow", "matmul", "erf", "erfc", "lgamma", "digamma")},
    **{name: f"torch.{name}" for name in ("sigmoid", "relu")},
    **{f"a{name}": f"torch.a{name}" for name in ARCS},
    **{name: f"torch.linalg.{name}" for name in ("inv", "det", "solve", "norm", "matrix_power", "cross")},
    "max": "torch.amax",
    "min": "torch.amin",
    "mod": "torch.remainder",
    "dot": "torch.matmul",
    "softplus": "torch.nn.functional.softplus",
    "logsigmoid": "torch.nn.functional.logsigmoid",
}
JAX = {
    **{name: call.replace("np.", "jnp.") for name, call in NUMPY.items()},
    "erf": "jax.scipy.special.erf", "erfc": "jax.scipy.special.erfc", "lgamma": "jax.scipy.special.gammaln",
    "digamma": "jax.scipy.special.digamma", "sigmoid": "jax.nn.sigmoid", "relu": "jax.nn.relu",
    "softplus": "jax.nn.softplus", "logsigmoid": "jax.nn.log_sigmoid",
}  # fmt: skip
CALLS = {"numpy": NUMPY, "torch": TORCH, "jax": JAX}
IMPORTS = {
    "numpy": "import numpy as np",
    "torch": "import torch",
    "jax": 'import jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)',
}
MODULES = {"numpy": "np", "torch": "torch", "jax": "jnp"}
ARRAYS = {  # a list or a number as an array of floats
    "numpy": "np.asarray({}, dtype=float)",
    "torch": "torch.as_tensor({}, dtype=torch.float64)",
    "jax": "jnp.asarray({}, dtype=float)",
}
HELPERS = {  # functions that a library lacks, in its terms: {m} is the module
    "sigmoid": "return {m}.where(x >= 0, 1, {m}.exp(-{m}.abs(x)))/(1 + {m}.exp(-{m}.abs(x)))",
    "softplus": "return {m}.maximum(x, 0*x) + {m}.log1p({m}.exp(-{m}.abs(x)))",
    "logsigmoid": "return -{m}.maximum(-x, 0*x) - {m}.log1p({m}.exp(-{m}.abs(x)))",
    "relu": "return {m}.maximum(x, 0*x)",
    "rsqrt": "return 1/{m}.sqrt(x)",
    "softmax": "powers = {m}.exp(x - {max})\nreturn powers/{sum}",
    "log_softmax": "shifted = x - {max}\nreturn shifted - {m}.log({m}.sum({m}.exp(shifted), {last}))",
    "logsumexp": "return {m}.max(x) + {m}.log({m}.sum({m}.exp(x - {m}.max(x))))",
    "erf": "return np.vectorize(math.erf)(x)",
    "erfc": "return np.vectorize(math.erfc)(x)",
    "lgamma": "return np.vectorize(math.lgamma)(x)",
    "cbrt": "return {m}.sign(x)*{m}.abs(x)**(1/3)",
    "var": "return {m}.mean((x - {m}.mean(x))**2)",
    "std": "return {m}.sqrt({m}.mean((x - {m}.mean(x))**2))",
}
PYTHON_WORDS = frozenset(
    [*kwlist, "np", "torch", "jax", "jnp", "math", "value", "gradient", "value_and_gradient", "test_values"]
)
CONSTANTS = {"pi": "math.pi", "e": "math.e", "inf": "math.inf", "nan": "math.nan"}
LOGICAL = {"and": "logical_and", "or": "logical_or", "not": "logical_not"}


class PythonCode:
    """Writes trees for one library; notes which helpers and imports they need."""

    def __init__(self, target: str, names: frozenset[str]) -> None:
        self.target = target
        self.module = MODULES[target]
        self.names = names  # of leaves, sizes and parts
        self.helpers: dict[str, str] = {}
        self.math = False

    def text(self, node: Syntax, place: int = 0) -> str:
        """A tree, in brackets where its place binds more tightly."""
        text, binds = self.written(node)
        return text if binds >= place else f"({text})"

    def written(self, node: Syntax) -> tuple[str, int]:
        """A tree, and how tightly its outermost operation binds."""
        if isinstance(node, Number):
            return {"True": "1", "False": "0"}.get(node.text, node.text), ATOM
        if isinstance(node, Name):
            if node.id in self.names or node.id not in CONSTANTS:
                return node.id, ATOM
            self.math = True
            return CONSTANTS[node.id], ATOM
        if isinstance(node, Unary):
            if node.op == "not":
                return f"{self.module}.logical_not({self.text(node.operand)})", ATOM
            return node.op + self.text(node.operand, SIGN), SIGN
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Transpose):
            return f"{self.text(node.value, ATOM)}.T", ATOM
        if isinstance(node, Compare):
            parts = [self.text(operand, SUM) for operand in node.operands]
            pairs = [f"({a} {sign} {b})" for a, sign, b in zip(parts, node.ops, parts[1:], strict=False)]
            return "*".join(pairs), PRODUCT if len(pairs) > 1 else ATOM
        if isinstance(node, List):
            return self.array(node), ATOM
        if isinstance(node, Subscript):
            items = [self.item(item) for item in node.items]
            if self.target == "torch" and items == ["::-1"]:  # which has no negative steps
                return f"torch.flip({self.text(node.value)}, (0,))", ATOM
            return f"{self.text(node.value, ATOM)}[{', '.join(items)}]", ATOM
        if isinstance(node, Call):
            return self.call(node), ATOM
        raise error("GC512", f"--emit {self.target} has no counterpart for {visible(type(node).__name__)}")

    def binary(self, node: Binary) -> tuple[str, int]:
        """An operator between two operands."""
        if node.op in LOGICAL:
            return f"{self.module}.{LOGICAL[node.op]}({self.text(node.left)}, {self.text(node.right)})", ATOM
        if node.op == "**":
            return f"{self.text(node.left, ATOM)}**{self.text(node.right, SIGN)}", POWER
        own = SUM if node.op in "+-" else PRODUCT
        dot = isinstance(node.left, Binary) and node.left.op == "@" and node.op in "*/"
        left, right = self.text(node.left, ATOM if dot else own), self.text(node.right, own + 1)
        return f"{left} {node.op} {right}" if node.op in "+-@" else f"{left}{node.op}{right}", own

    def array(self, node: List) -> str:
        """A list of entries as an array; PyTorch stacks them."""
        if self.target != "torch":
            return f"{self.module}.array({self.entries(node)})"
        parts = [self.array(one) if isinstance(one, List) else self.tensor(self.text(one)) for one in node.items]
        return f"torch.stack([{', '.join(parts)}])"

    def tensor(self, text: str) -> str:
        """An argument of a function that takes tensors only."""
        try:
            float(text)
        except ValueError:
            return text
        return f"torch.tensor({text}, dtype=torch.float64)"

    def entries(self, node: Syntax) -> str:
        """Entries in brackets."""
        return f"[{', '.join(map(self.entries, node.items))}]" if isinstance(node, List) else self.text(node)

    def item(self, item: Syntax) -> str:
        """A position or a stretch of them."""
        if isinstance(item, Slice):
            bounds = ["" if one is None else self.text(one) for one in (item.lower, item.upper, item.step)]
            return ":".join(bounds if bounds[2] else bounds[:2])
        return self.text(item)

    def call(self, node: Call) -> str:
        """A call of a function of the library, or of a helper."""
        name, args = node.function.id, [self.text(one) for one in node.args]
        if self.target == "torch" and hasattr(math, name) and not any(names_in(one) & self.names for one in node.args):
            self.math = True  # functions of tensors take no plain numbers
            return f"math.{name}({', '.join(args)})"
        keywords = {one.name: self.text(one.value) for one in node.keywords}
        if name == "len":
            return f"{args[0]}.shape[0]"
        if name == "shape":
            return f"{args[0]}.shape"
        if name in ("ones", "zeros"):
            kind = ", dtype=torch.float64" if self.target == "torch" else ""
            return f"{self.module}.{name}(({', '.join(args)}{',' if len(args) == 1 else ''}){kind})"
        if name == "eye" and self.target == "torch":
            return f"torch.eye({args[0]}, dtype=torch.float64)"
        if name == "reshape":
            return f"{self.module}.reshape({args[0]}, {self.shape(node)})"
        if name == "where" and self.target == "torch":
            return f"torch.where({', '.join([args[0], *map(self.tensor, args[1:])])})"
        if name == "cumsum" and self.target == "torch":
            return f"torch.cumsum({args[0]}, 0)"
        if name == "norm" and len(args) == 2 and args[1] not in ("1", "2"):
            raise error("GC512", f"--emit {self.target} has no counterpart for norm(x, {args[1]})")
        if name == "norm" and len(args) == 2 and args[1] == "1":
            return f"{self.module}.sum({self.module}.abs({args[0]}))"
        if name in ("softmax", "log_softmax") and keywords.get("axis") in (None, "-1") and len(args) == 1:
            keywords = {}
        if name in ("maximum", "minimum") and self.target == "torch":
            args = [*map(self.tensor, args)]
        known = CALLS[self.target].get(name)
        if known is None or (name in ("var", "std", "cbrt") and self.target == "torch"):
            foreign = self.target != "numpy" and "np." in HELPERS.get(name, "")
            if name not in HELPERS or (keywords and name != "logsumexp") or foreign:
                raise error("GC512", f"--emit {self.target} has no counterpart for `{visible(name)}`")
            known = self.helper(name)
        if self.target == "torch":
            keywords = {{"axis": "dim", "keepdims": "keepdim"}.get(key, key): value for key, value in keywords.items()}
        return f"{known}({', '.join([*args, *(f'{key}={value}' for key, value in keywords.items())])})"

    def shape(self, node: Call) -> str:
        """The shape that a call of reshape names."""
        return unparse(node.args[1]) if len(node.args) == 2 else f"({', '.join(map(unparse, node.args[1:]))})"

    def helper(self, name: str) -> str:
        """The name of a helper, which the file defines."""
        torch = self.target == "torch"
        body = HELPERS[name].format(
            m=self.module,
            max="torch.amax(x, -1, keepdim=True)" if torch else f"{self.module}.max(x, axis=-1, keepdims=True)",
            sum="torch.sum(powers, -1, keepdim=True)"
            if torch
            else f"{self.module}.sum(powers, axis=-1, keepdims=True)",
            last="-1, keepdim=True" if torch else "axis=-1, keepdims=True",
        )
        own = name if name not in self.names else f"{name}_"
        self.helpers[own] = body
        self.math = self.math or "math." in body
        return own


def python_file(function: SelfContained, target: str) -> str:
    """A module with the function, and a test of its values."""
    own = {*function.leaves, *function.sizes, *function.parts}
    code = PythonCode(target, frozenset(own))
    lines = [f"{name} = {ARRAYS[target].format(name)}" for name in function.leaves]  # lists and numbers are welcome
    texts = [*function.parts.values(), function.value, *function.gradient.values()]
    read = set().union(*(names_in(expression_of(text)) for text in texts))
    lines += [f"{name} = {leaf}.shape[{axis}]" for name, (leaf, axis) in function.sizes.items() if name in read]
    lines += [f"{name} = {code.text(expression_of(text))}" for name, text in function.parts.items()]
    lines.append(f"value = {code.text(expression_of(function.value))}")
    lines.append("gradient = {")
    lines += [f'    "{leaf}": {code.text(expression_of(text))},' for leaf, text in function.gradient.items()]
    lines.append("}")
    shapes = ", ".join(f"{name}: {' x '.join(map(str, axes)) or 'number'}" for name, axes in function.leaves.items())
    point = ", ".join(f"{name}={value!r}" for name, value in function.at.items())
    close = {
        "numpy": "np.allclose({}, {}, rtol=1e-9, atol=1e-12)",
        "torch": "torch.allclose({}, torch.as_tensor({}, dtype=torch.float64), rtol=1e-9, atol=1e-12)",
        "jax": "jnp.allclose({}, jnp.asarray({}), rtol=1e-9, atol=1e-12)",
    }[target]
    title = function.expression.replace("\\", "\\\\").replace('"""', "'''").splitlines()
    header = [f'"""The value and the gradient of {title[0] if len(title) == 1 else "a script"}.', ""]
    if len(title) > 1:
        header += [*(f"    {line}" for line in title), ""]
    header += [f"Shapes: {shapes}. Made by gradcli derive --emit {target}.", '"""', ""]
    helpers: list[str] = []
    for name, body in code.helpers.items():
        helpers += [f"def {name}(x):", *(f"    {line}" for line in body.split("\n")), "", ""]
    imports = (["import math", ""] if code.math else []) + IMPORTS[target].split("\n")
    tests = ["assert " + close.format("value", repr(function.number))]
    tests += [
        f'assert {close.format(f"""gradient["{leaf}"]""", repr(value))}' for leaf, value in function.numbers.items()
    ]
    return "\n".join(
        [
            *header, *imports, "", "", *helpers,
            f"def value_and_gradient({', '.join(function.leaves)}):",
            '    """The value, and by leaf the gradient, which has the shape of the leaf."""',
            *(f"    {line}" for line in lines),
            "    return value, gradient", "", "",
            "def test_values():",
            '    """The value and the gradient at one point are those that gradcli computes."""',
            f"    value, gradient = value_and_gradient({point})",
            *(f"    {line}" for line in tests), "", "",
            'if __name__ == "__main__":',
            "    test_values()",
            '    print("value and gradient are right at the point of the test")', "",
        ]
    )  # fmt: skip


__all__ = ["PYTHON_WORDS", "python_file"]
