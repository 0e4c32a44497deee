"""Lowers calls to nodes: of operations, by their declarations, and of derivative operators such as `grad(y, x)`.

Arguments are bound to the parameters of a declaration's own Python function, so arity, defaults and keywords stand
in one place. Parameters that the declaration names static are computed exactly; all others are operands.
"""

from __future__ import annotations

import re

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.graph.arrays import ArrayData, digest_of
from gradcli.graph.exact import number_text
from gradcli.graph.node import LEAF, Node
from gradcli.graph.primitive import Closed, Complex, signature_of
from gradcli.graph.types import Type, broadcast_shapes
from gradcli.language.parser import messages
from gradcli.language.unparse import unparse
from gradcli.lowering.assigned_names import DERIVATIVES
from gradcli.lowering.constructs.expressions import raised, refuse_entry_beside_array
from gradcli.lowering.lowerer import SEVERAL
from gradcli.lowering.operands import ScriptList, number, tagged, truth
from gradcli.primitives import plugins
from gradcli.primitives.broadcasting import stretch, together
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.diagnostics import Span
    from gradcli.graph.primitive import Primitive, Signature
    from gradcli.language.syntax import Call, Expression
    from gradcli.lowering.lowerer import Lowerer

MOST_ECHOED = 40  # characters of an argument that a proposal repeats
COMPLEX = "z"  # the parameter of a declared function that takes complex numbers too
FILLED = ("eye", "ones", "zeros")  # functions whose sizes may be symbols

# PyTorch's names of parameters, where the function has NumPy's.
TORCH_KEYWORDS = {
    "dim": "axis", "keepdim": "keepdims", "correction": "ddof", "dim0": "axis1", "dim1": "axis2", "dims": "axes",
}  # fmt: skip


def call_library(
    lowerer: Lowerer,
    primitive: Primitive,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    name: str,
    syntax: Expression,
) -> Any:
    """Call a function of the language with operands and static values."""
    span = syntax.span
    if primitive.name == "norm" and lowerer.open_shapes.guessed and type(args[0]) is Node and not args[0].shape:
        refuse_entry_beside_array(lowerer, syntax, args[0])
    if primitive.name == "pow" and len(args) == 2 and not keywords:
        x, y = (number(lowerer, arg) for arg in args)
        return raised(lowerer, x, y, syntax)
    if len(args) == 1 and type(args[0]) is Complex:
        from gradcli.primitives import fourier  # which most scripts do not need

        if primitive.name in fourier.OF_COMPLEX and not keywords:
            return fourier.OF_COMPLEX[primitive.name](args[0])
        if primitive.name in fourier.BY_PARTS:
            parts = args[0].real, args[0].imag
            return Complex(*[call_library(lowerer, primitive, [x], keywords, name, syntax) for x in parts])
    if primitive.kind == "elementwise" and len(args) == primitive.arity and not keywords:
        if primitive.call is None and not primitive.static:  # operands are all that it takes
            xs = tuple([x if type(x) is Node and x.type.kind == "float" else number(lowerer, x) for x in args])
            if len(xs) > 1:
                xs = together(*xs, verb=f"apply {name} to")
            return lowerer.builder.apply(primitive, xs, {})
    signature = signature_of(primitive)
    operands, named = bind(lowerer, signature, primitive.static, args, keywords, name, span)
    if primitive.pointwise and all(type(x) is Node for x in operands):
        if len(operands) > 1:
            operands = list(together(*operands, verb=f"apply {name} to"))
        if primitive.call is None:
            return lowerer.builder.bind(primitive, tuple(operands), named)
    lowerer.reads_positions |= "indices" in signature.names or "target" in signature.names
    rule = primitive.call or lowerer.builder.definition_of(primitive) or primitive
    return result_value(lowerer, rule(*operands, **named))


def bind(
    lowerer: Lowerer,
    signature: Signature,
    static: Sequence[str],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    name: str,
    span: Span,
) -> tuple[list[Any], dict[str, Any]]:
    """Operands and named parameters for a declared function; raises GradcliError GC205 if they do not fit."""

    def converted(parameter: str, value: Any) -> Any:
        if parameter in static:
            if isinstance(value, Node) and value.constant == "inf":  # the order of a norm
                return float("inf")
            size = lowerer.open_shapes.size_of(value) if name in FILLED else None
            return lowerer.static(value, span) if size is None else size
        if value is None or isinstance(value, str):
            raise error("GC309", f"`{parameter}` of {name} is a number, not {value!r}", span)
        if isinstance(value, ScriptList) and parameter == SEVERAL:
            return value.entries(lowerer)
        if isinstance(value, tuple) and parameter == SEVERAL:
            return tuple(number(lowerer, item) for item in value)
        if isinstance(value, Complex) and parameter == COMPLEX:
            return value
        return truth(lowerer, value) if parameter == "condition" else number(lowerer, value)

    bound: dict[str, Any] = {}
    rest: list[Any] = []
    for position, value in enumerate(args):
        if position < len(signature.names):
            parameter = signature.names[position]
            bound[parameter] = converted(parameter, value)
        elif signature.variadic is not None:
            rest.append(converted(signature.variadic, value))
        else:
            most = len(signature.names)
            raise error(
                "GC205",
                f"{name} takes {_count(most, 'argument')}, not {len(args)}",
                span,
                help=f"its form is {name}({signature})",
            )
    allowed = (*signature.names, *signature.keyword_only)
    for parameter, value in keywords.items():
        if parameter not in allowed and TORCH_KEYWORDS.get(parameter) in allowed:
            parameter = TORCH_KEYWORDS[parameter]
        if parameter not in allowed or parameter == "position":
            guess = did_you_mean(parameter, allowed)
            hint = f"did you mean `{guess}`?" if guess else f"its form is {name}({signature})"
            raise error("GC205", f"{name} has no parameter `{visible(parameter)}`", span, help=hint)
        if parameter in bound:
            raise error("GC205", f"`{parameter}` of {name} is given twice", span)
        bound[parameter] = converted(parameter, value)
    for parameter in signature.names:
        if parameter not in bound and parameter not in signature.defaults:
            raise error(
                "GC205",
                f"{name} needs its argument `{parameter}`",
                span,
                help=f"its form is {name}({signature})",
            )
    if "position" in allowed:  # a random array without a seed: each call has numbers of its own
        bound["position"] = lowerer.next_position()
    operands: list[Any] = []
    for parameter in signature.names:
        if parameter in bound:
            operands.append(bound.pop(parameter))
        elif rest or signature.complete or any(later in bound for later in signature.names):
            default = signature.defaults[parameter]
            is_operand = parameter not in static and isinstance(default, (int, float))
            operands.append(lowerer.builder.constant(default) if is_operand else default)
        else:
            break
    return [*operands, *rest], bound


def result_value(lowerer: Lowerer, result: Any) -> Any:
    """The result of a declared function as a value of the language: sizes become constants."""
    if isinstance(result, tuple):
        return tuple(result_value(lowerer, item) for item in result)
    if isinstance(result, (Node, Complex)):
        return result
    if isinstance(result, ArrayData):
        return lowerer.constant_array(result.shape, result.flat)
    if isinstance(result, Closed):
        return lowerer.builder.lifted(result)
    if hasattr(result, "make"):  # an array that is made when the program runs
        return lowerer.builder.array(result.key, result, Type("float", result.shape))
    return lowerer.open_shapes.number(lowerer.builder, lowerer.leaves, result)


def load(lowerer: Lowerer, args: Sequence[Any], keywords: Mapping[str, Any], syntax: Call) -> Node:
    """The data of a file, as constants."""
    from gradcli.lowering.data_files import loading  # opens files, which most scripts do not

    lowerer.untraceable()
    if len(args) != 1 or not isinstance(args[0], str) or not args[0]:
        raise error("GC205", "load takes the path of a file", syntax.span, help='write load("points.csv")')
    options: dict[str, Any] = {}
    for key, value in keywords.items():
        if key not in ("column", "columns"):
            raise error("GC205", f"load has no parameter `{visible(key)}`", syntax.span)
        fixed = value is None or isinstance(value, slice)
        options[key] = value if fixed else _columns(lowerer, value, syntax.span)
    base = lowerer.source.path or "."  # a one-liner stays under the folder where it runs
    span = syntax.args[0].span
    name = lowerer.assigning  # of several arrays in a .npz file, the one named like the variable
    array, notes = loading.load(args[0], base=base, name=name, limits=lowerer.limits, span=span, **options)
    lowerer.notes.extend(loading.placed(note, span) for note in notes)
    return lowerer.builder.array(digest_of(array), array, Type("float", tuple(array.shape)))


def _columns(lowerer: Lowerer, value: Any, span: Span) -> Any:
    """Columns by number; raises GradcliError GC306 for anything but whole numbers."""
    columns = lowerer.static(value, span)
    for column in columns if isinstance(columns, tuple) else (columns,):
        if type(column) is not int:
            message = f"a column is a whole number, not {number_text(column)}"
            raise error("GC306", message, span, help="columns count from 0")
    return columns


def unknown_function(lowerer: Lowerer, syntax: Call) -> GradcliError:
    """The error for a call of something that is not a function, with the nearest name."""
    name, span = syntax.function.id, syntax.function.span
    if lowerer.is_known(name) or name in ("pi", "e"):
        inside = ", ".join(unparse(arg) for arg in syntax.args) if len(syntax.args) == 1 else ""
        hint = f"to multiply, write {visible(name)}*({inside if 0 < len(inside) <= MOST_ECHOED else '...'})"
        if name in lowerer.library or name in lowerer.functions:
            hint = f"give the value another name, and `{visible(name)}` stays a function"
        assigned = lowerer.assigned.get(name, ()) if lowerer.local is None or name not in lowerer.local else ()
        labels = tuple((place, "assigned here") for place in assigned[:1])
        return error("GC203", f"`{visible(name)}` is a value here, not a function", span, labels=labels, help=hint)
    if name == "append" and syntax.method:
        hint = "write it as a statement of its own, path.append(x), and read path after it"
        return error("GC137", "append has no value", syntax.span, help=hint)
    if name in messages.CALLS:
        return error("GC201", f"unknown function `{visible(name)}`", span, help=messages.CALLS[name])
    candidates = (*lowerer.functions, *lowerer.library, *DERIVATIVES, "load")
    guess = did_you_mean(name, candidates)
    message = f"unknown function `{visible(name)}`"
    if guess:
        message += f"; did you mean `{guess}`?"
    hint = "`gradcli ops` lists all functions, --import FILE adds those that a Python file declares"
    if not guess and re.fullmatch(r"d[^\W\d]\w?", name):  # d/dx(...)
        hint = f"for a derivative write grad(..., {name[1:]}); `gradcli derive` shows the formula"
    unknown = error("GC201", message, span, help=hint)
    return GradcliError(*unknown.diagnostics, *plugins.problems())


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


# --- derivative operators -------------------------------------------------------------------------

_FORMS = {
    "grad": "grad(y, x) or grad(y, x, n)",
    "jacobian": "jacobian(y, x)",
    "hessian": "hessian(y, x)",
    "laplacian": "laplacian(y, x)",
    "jvp": "jvp(y, x, v)",
    "vjp": "vjp(y, x, u)",
    "hvp": "hvp(y, x, v)",
}


def call_derivative(lowerer: Lowerer, syntax: Call, args: Sequence[Any], keywords: Mapping[str, Any]) -> Node:
    """The graph of grad, jacobian, hessian, laplacian, jvp, vjp or hvp."""
    name, span = syntax.function.id, syntax.span
    counts = (2, 3) if name == "grad" else (3,) if name in ("jvp", "vjp", "hvp") else (2,)
    if len(args) not in counts or keywords:
        raise error(
            "GC205",
            f"{name} takes {' or '.join(map(str, counts))} arguments",
            span,
            help=f"write {_FORMS[name]}",
        )
    output = number(lowerer, args[0], syntax.args[0])
    target = args[1]
    if type(target) is ScriptList:
        target = _list_target(lowerer, target, syntax)
    if name in ("laplacian", "jvp", "hvp") and target in lowerer.symmetric:
        message = f"{name} moves each entry by itself, and those of a symmetric leaf move in pairs"
        raise error("GC207", message, syntax.args[1].span, help="take grad, jacobian or hessian")
    target = lowerer.symmetric.get(target, target)
    if not (isinstance(target, Node) and (target.primitive is LEAF or target.primitive.name == "named")):
        raise error(
            "GC207",
            f"{name} differentiates with respect to a leaf, or to a name that is assigned once",
            syntax.args[1].span,
            help="give the expression a name of its own, or make it a leaf",
        )
    for trace in lowerer.traces:
        trace.differentiate(lowerer, output, target)
    lowerer.differentiated(target, syntax.args[1].span)
    if name not in ("jacobian", "jvp", "vjp") and output.type.shape:
        raise error(
            "GC307",
            f"{name} needs a scalar, and this is {output.type}",
            syntax.args[0].span,
            help="take sum(...) of it, or use jacobian",
        )
    if len(args) == 2:
        return _written(lowerer, _two(name, output, target), name, output, target)
    if name == "grad":
        order = lowerer.static(args[2], syntax.args[2].span)
        if type(order) is not int or order < 1:
            message = f"the order of a derivative is 1, 2, 3, ..., not {number_text(order)}"
            raise error("GC306", message, syntax.args[2].span)
        if target.type.shape:
            message = f"grad(y, x, n) needs a scalar x, and this is {target.type}"
            raise error("GC307", message, syntax.args[1].span, help="use hessian for second derivatives")
        for derivative in derivatives.nth(output, target, order):
            output = _written(lowerer, derivative, name, output, target)
        return output
    direction = _fill(number(lowerer, args[2], syntax.args[2]), output if name == "vjp" else target, syntax)
    if name == "jvp":
        derivative = derivatives.jvp([output], [target], [direction])[0]
    elif name == "vjp":
        derivative = derivatives.vjp([output], [direction], [target])[0]
    else:
        derivative = derivatives.hvp(output, target, direction)
    return _written(lowerer, derivative, name, output, target, direction)


def _written(lowerer: Lowerer, derivative: Node, *about: Any) -> Node:
    """A derivative that the script asks for, told from an equal formula beside it: that is judged by its own values."""
    result = tagged(lowerer, derivative)
    lowerer.derived[result] = about
    return result


def _list_target(lowerer: Lowerer, target: ScriptList, syntax: Call) -> Node:
    """A list as a variable: the array that the script has read after the loops that append to it."""
    size, read = target.size, target.tagged_size
    if target.tagged is not None and read != size:
        message = (
            f"{syntax.function.id} differentiates with respect to a list, which had {read} of its {size} "
            "entries when it was read"
        )
        raise error("GC207", message, syntax.args[1].span, help="read it only after the last append")
    return target.as_array(lowerer)


def _two(name: str, output: Node, target: Node) -> Node:
    if name == "grad":
        return derivatives.grad(output, [target])[0]
    if name == "jacobian":
        return derivatives.jacobian(output, target)
    if name == "hessian":
        return derivatives.hessian(output, target)
    return derivatives.laplacian(output, target)


def _fill(direction: Node, like: Node, syntax: Call) -> Node:
    if broadcast_shapes(direction.type.shape, like.type.shape) != like.type.shape:
        raise error("GC313", f"the direction is {direction.type}, but {like.type} is needed", syntax.args[2].span)
    filled: Node = stretch(direction, like.type.shape)
    return filled
