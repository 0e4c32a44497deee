"""Formulas as Python functions on NumPy, PyTorch or JAX arrays."""

from __future__ import annotations

import math
from keyword import kwlist

from gradcli.base.diagnostics import error, visible
from gradcli.language.notation import ATOM, SUM, Notation, joined
from gradcli.language.substitution import expression_of
from gradcli.language.syntax import (
    Binary,
    Call,
    Compare,
    Comprehension,
    Domain,
    List,
    Name,
    NewAxis,
    Number,
    Slice,
    String,
    Subscript,
    Tuple,
    Unary,
    children,
    is_reversal,
    is_whole,
    names_in,
    nodes_of,
)
from gradcli.primitives import functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gradcli.base.results.calculations import SelfContained
    from gradcli.graph.primitive import Primitive
    from gradcli.language.notation import Pieces
    from gradcli.language.syntax import Syntax

SHORT = {"numpy.": "np.", "jax.numpy.": "jnp.", "scipy.special.": "special."}  # modules as the file imports them
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
LABELS = {
    "numpy": "np.asarray({}, dtype=int)",
    "torch": "torch.as_tensor({}, dtype=torch.int64)",
    "jax": "jnp.asarray({}, dtype=int)",
}
HELPERS = {  # functions of arrays, and those of `math`, that a library lacks, in its terms: {m} is the module
    "softmax": "powers = np.exp(x - np.max(x, axis=axis, keepdims=True))\n"
    "return powers/np.sum(powers, axis=axis, keepdims=True)",
    "log_softmax": "shifted = x - np.max(x, axis=axis, keepdims=True)\n"
    "return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))",
    "logsumexp": "most = np.max(x, axis=axis, keepdims=True)\n"
    "return np.log(np.sum(np.exp(x - most), axis=axis)) + np.squeeze(most, axis=axis)",
    "erf": "return np.vectorize(math.erf)(x)",
    "erfc": "return np.vectorize(math.erfc)(x)",
    "lgamma": "return np.vectorize(math.lgamma)(x)",
    "logdet": "return {m}.linalg.slogdet(x)[1]",
    "var": "return {m}.mean((x - {m}.mean(x))**2)",
    "std": "return {m}.sqrt({m}.mean((x - {m}.mean(x))**2))",
}
ALONG = {"softmax": "-1", "log_softmax": "-1", "logsumexp": "None"}  # helpers with an axis, and which it is
PYTHON_WORDS = frozenset(
    [*kwlist, "np", "torch", "jax", "jnp", "math", "special", "value", "gradient", "value_and_gradient", "test_values"]
    + ["float", "int", "print"]
)
CONSTANTS = {"pi": "math.pi", "e": "math.e", "inf": "math.inf", "nan": "math.nan"}
TORCH_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "k": "diagonal"}
LAST_PLAIN = ("arange", "eye", "matrix_power", "norm", "triu", "tril", "diag")  # they take sizes, powers and places
LOGICAL = {"and": "logical_and", "or": "logical_or", "not": "logical_not"}


class PythonCode(Notation):
    """Writes trees for one library; notes which helpers and imports they need."""

    bracketed_dots = True
    foreign = (Comprehension, Domain, String)

    def __init__(self, target: str, names: frozenset[str]) -> None:
        self.target = target
        self.module = MODULES[target]
        self.names = names  # of leaves, sizes and parts
        self.plain: set[str] = set()  # those of them that are numbers of Python: of sizes, and of what is made of these
        self.helpers: dict[str, str] = {}
        self.math = False
        self.scipy = False

    def pieces(self, node: Syntax) -> Pieces:
        """A condition is a number: 1 or 0."""
        if isinstance(node, Compare) or getattr(node, "op", "") in LOGICAL:
            numbers = f"{self.tensor('1.0')}, {self.tensor('0.0')}"
            return [f"{self.module}.where({self.truth(node)}, {numbers})"], ATOM
        return super().pieces(node)

    def write_foreign(self, node: Syntax) -> Pieces:
        raise error("GC512", f"--emit {self.target} has no counterpart for {visible(type(node).__name__)}")

    def write_number(self, node: Number) -> Pieces:
        return [{"True": "1.0", "False": "0.0"}.get(node.text, node.text)], ATOM

    def write_name(self, node: Name) -> Pieces:
        if node.id in self.names or node.id not in CONSTANTS:
            return [node.id], ATOM
        self.math = True
        return [CONSTANTS[node.id]], ATOM

    def truth(self, node: Syntax) -> str:
        """A condition; a number is true where it is not 0."""
        if isinstance(node, (Unary, Binary)) and node.op in LOGICAL:
            operands = [node.operand] if isinstance(node, Unary) else [node.left, node.right]
            return f"{self.module}.{LOGICAL[node.op]}({', '.join(map(self.truth, operands))})"
        if isinstance(node, Compare):
            parts = [self.text(operand, SUM) for operand in node.operands]
            pairs = [f"({a} {sign} {b})" for a, sign, b in zip(parts, node.ops, parts[1:], strict=False)]
        else:
            pairs = [f"({self.text(node, SUM)} != 0)"]
        text = " & ".join(pairs)
        plain = self.target == "torch" and all(map(self.is_plain, children(node) or [node]))
        return f"torch.tensor({text})" if plain else text

    def is_plain(self, node: Syntax) -> bool:
        """Whether a tree is a Python number, which functions of tensors do not accept."""
        if isinstance(node, Name):
            return node.id in self.plain or node.id not in self.names
        if isinstance(node, Call):
            name = node.function.id
            in_math = name != "prod" and hasattr(math, name) and all(map(self.is_plain, node.args))
            return in_math or name in ("len", "shape")
        condition = isinstance(node, Compare) or getattr(node, "op", "") in LOGICAL
        return not condition and not isinstance(node, List) and all(map(self.is_plain, children(node)))

    def tensor(self, text: str) -> str:
        """A number as a tensor, for PyTorch."""
        return f"torch.tensor({text}, dtype=torch.float64)" if self.target == "torch" else text

    def argument(self, node: Syntax) -> str:
        """An argument of a function of tensors, or an entry of an array."""
        return self.tensor(self.text(node)) if self.is_plain(node) else self.text(node)

    def write_list(self, node: List) -> Pieces:
        """A list of entries as an array; PyTorch stacks them."""
        if self.target != "torch":
            return [f"{self.module}.array({self.entries(node)})"], ATOM
        parts = [self.text(item) if isinstance(item, List) else self.argument(item) for item in node.items]
        return [f"torch.stack([{', '.join(parts)}])"], ATOM

    def entries(self, node: Syntax) -> str:
        """Entries in brackets."""
        return f"[{', '.join(map(self.entries, node.items))}]" if isinstance(node, List) else self.text(node)

    def write_subscript(self, node: Subscript) -> Pieces:
        """Entries, rows and slices of an array; PyTorch has no negative steps."""
        value, items = self.text(node.value, ATOM), list(node.items)
        if self.target == "torch":
            axes = [item for item in items if not isinstance(item, NewAxis)]
            turned = [str(axis) for axis, item in enumerate(axes) if is_reversal(item)]
            if turned:
                value = f"torch.flip({value}, ({', '.join(turned)}{',' * (len(turned) == 1)}))"
                items = [Slice(None, None, None, item.span) if is_reversal(item) else item for item in items]
            if any(isinstance(item, Slice) and isinstance(item.step, Unary) for item in items):
                raise error("GC512", f"--emit torch has no counterpart for {visible(', '.join(map(self.text, items)))}")
        return [value, *([] if all(map(is_whole, items)) else ["[", *joined(items), "]"])], ATOM

    def write_call(self, node: Call) -> Pieces:
        return [self.call(node)], ATOM

    def call(self, node: Call) -> str:
        """A call of a function of the library, or of a helper."""
        name, args = node.function.id, [self.text(arg) for arg in node.args]
        if self.target == "torch" and name not in ("len", "shape") and self.is_plain(node):
            self.math = True
            return f"math.{name}({', '.join(args)})"
        keywords = {keyword.name: self.text(keyword.value) for keyword in node.keywords}
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
            shape = args[1] if len(args) == 2 else f"({', '.join(args[1:])})"
            return f"{self.module}.reshape({args[0]}, {shape})"
        if name == "where":
            return f"{self.module}.where({', '.join([self.truth(node.args[0]), *map(self.argument, node.args[1:])])})"
        if name == "pad" and len(args) == 2 and isinstance(node.args[1], Tuple) and not keywords:
            widths = args[1]
            if self.target == "torch":  # which begins with the last axis
                pairs = node.args[1].items if isinstance(node.args[1].items[0], Tuple) else [node.args[1]]
                widths = f"({', '.join([self.text(width) for pair in reversed(pairs) for width in children(pair)])})"
            return f"{'torch.nn.functional' if self.target == 'torch' else self.module}.pad({args[0]}, {widths})"
        if name in ("concatenate", "stack") and len(args) == 1 and isinstance(node.args[0], (List, Tuple)):
            axis = keywords.get("axis", "0")
            own = {"concatenate": "cat"}.get(name, name) if self.target == "torch" else name
            key = "dim" if self.target == "torch" else "axis"
            parts = ", ".join(map(self.argument, node.args[0].items))
            return f"{self.module}.{own}([{parts}]{f', {key}={axis}' if axis != '0' else ''})"
        if name == "cumsum" and self.target == "torch":
            return f"torch.cumsum({args[0]}, 0)"
        if name == "norm" and len(args) == 2 and args[1] not in ("1", "2"):
            raise error("GC512", f"--emit {self.target} has no counterpart for norm(x, {args[1]})")
        if name == "norm" and len(args) == 2 and args[1] == "1":
            return f"{self.module}.sum({self.module}.abs({args[0]}))"
        if self.target == "torch" and name in ("softmax", "log_softmax"):
            keywords = {"axis": "-1", **keywords}
        if self.target == "torch" and name == "logsumexp" and not keywords:
            return f"torch.logsumexp(torch.ravel({args[0]}), 0)"
        if name not in LAST_PLAIN:
            args = [*map(self.argument, node.args)]
        known = self.address(name, self.target)
        if known is None:
            if keywords and name not in ALONG:
                raise self.lacks(name)
            known = self.helper(name)
        if self.target == "torch":
            keywords = {TORCH_KEYWORDS.get(key, key): value for key, value in keywords.items()}
        return f"{known}({', '.join([*args, *(f'{key}={value}' for key, value in keywords.items())])})"

    def address(self, name: str, library: str) -> str | None:
        """A function as the file calls it; None where the library lacks it."""
        primitive = functions().get(name)
        address = primitive.called(library) if primitive is not None else None
        module = next((module for module in SHORT if address is not None and address.startswith(module)), None)
        self.scipy = self.scipy or module == "scipy.special."
        return address if address is None or module is None else SHORT[module] + address.removeprefix(module)

    def lacks(self, name: str) -> Exception:
        """The error for a function that the library lacks, and that has no text in simpler ones."""
        hint = "choose another language for --emit, or write it in terms of other functions"
        return error("GC512", f"--emit {self.target} has no counterpart for `{visible(name)}`", help=hint)

    def helper(self, name: str) -> str:
        """What the file calls in place of a function that the library lacks: one that it defines, or SciPy's."""
        body, arguments = HELPERS.get(name, ""), f"x, axis={ALONG[name]}" if name in ALONG else "x"
        if "np." in body and self.target != "numpy":
            raise self.lacks(name)
        primitive = functions().get(name)
        if not body:
            if primitive is None:
                raise self.lacks(name)
            if not primitive.steady and self.target == "numpy" and (known := self.address(name, "scipy.special")):
                return known
            body, arguments = self.text_of(primitive), ", ".join(primitive.argument_names())
        own = name
        while own in self.names:
            own += "_"
        self.helpers[f"{own}({arguments})"] = body.format(m=self.module)
        self.math = self.math or "math." in body
        return own

    def text_of(self, primitive: Primitive) -> str:
        """The body of a function for an operation, from the text of its declaration in simpler ones."""
        text = primitive.steady or primitive.elementary
        if not text:
            raise self.lacks(primitive.name)
        inner = PythonCode(self.target, frozenset(primitive.argument_names()))
        body = f"return {inner.text(expression_of(text))}"
        self.helpers.update(inner.helpers)
        self.scipy = self.scipy or inner.scipy
        self.math = self.math or inner.math
        return body


def label_names(trees: Iterable[Syntax]) -> set[str]:
    """The names that choose entries of arrays."""
    subscripts = [node for tree in trees for node in nodes_of(tree) if isinstance(node, Subscript)]
    return {item.id for node in subscripts for item in node.items if isinstance(item, Name)}


def python_file(function: SelfContained, target: str, labels: Mapping[str, str]) -> str:
    """A module with the function, and a test of its values; `labels` are the keys of the gradient, by leaf."""
    own = {*function.leaves, *function.sizes, *function.parts}
    code = PythonCode(target, frozenset(own))
    trees = list(map(expression_of, [*function.parts.values(), function.value, *function.gradient.values()]))
    positions = label_names(trees)
    lines = [  # lists and numbers are welcome
        f"{name} = {(LABELS if name in positions else ARRAYS)[target].format(name)}" for name in function.leaves
    ]
    read = set().union(*map(names_in, trees))
    lines += [f"{name} = {leaf}.shape[{axis}]" for name, (leaf, axis) in function.sizes.items() if name in read]
    code.plain.update(function.sizes)
    for name, text in function.parts.items():
        part = expression_of(text)
        lines.append(f"{name} = {code.text(part)}")
        code.plain.update([name] if code.is_plain(part) else [])
    lines.append(f"value = {code.argument(expression_of(function.value))}")
    lines.append("gradient = {")
    lines += [
        f'    "{labels[leaf]}": {code.argument(expression_of(text))},' for leaf, text in function.gradient.items()
    ]
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
    header += [f"Shapes: {shapes}. Made by gradcli derive --emit {target}.", *function.conditions, '"""', ""]
    helpers: list[str] = []
    for name, body in code.helpers.items():
        helpers += [f"def {name}:", *(f"    {line}" for line in body.split("\n")), "", ""]
    imports = (["import math", ""] if code.math else []) + IMPORTS[target].split("\n")
    imports += ["from scipy import special"] if code.scipy else []
    tests = ["assert " + close.format("value", repr(function.number))]
    tests += [
        f'assert {close.format(f"""gradient["{labels[leaf]}"]""", repr(value))}'
        for leaf, value in function.numbers.items()
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
