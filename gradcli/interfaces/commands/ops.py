"""`gradcli ops`: show the rule, domain, kinks and examples of an operation, or list all operations."""

from __future__ import annotations

from gradcli.base.diagnostics import GradcliError, did_you_mean, error, visible
from gradcli.interfaces.command_parts.operation_laws import laws
from gradcli.interfaces.command_parts.result_views import View
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import gradcli as package
    from gradcli import primitives
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.primitives import plugins
    from gradcli.rendering import machine
    from gradcli.rendering.documents import catalogue
else:
    package, primitives, plugins = room("package"), room("primitives"), room("plugins")
    catalogue, machine = room("catalogue"), room("machine")


def ops(output: CommandOutput, operation: str | None, *, check: bool) -> int:
    """The operations of the language: derivatives, domains, kinks.

    Without a name, it lists all operations. With a name, or an alias of it, it shows how to call the
    operation, what it computes, its derivative, its domain, the value of its derivative at kinks, and
    examples with their results.

    With --check the operation is checked: its values and its derivatives to the third order as `gradcli check`
    judges them, forward against reverse mode, many points against one, its domain and its examples. So is one of
    your own, from a file of --import or an installed package.

    Examples:
      gradcli ops
      gradcli ops log1p
      gradcli ops log1p --check
      gradcli ops --format json
    """
    operations = {name: primitive for name, primitive in primitives.catalogue().items() if not primitive.internal}
    if operation is None and check:
        raise error("GC721", "--check needs an operation", help="gradcli ops log1p --check")
    if operation is None:
        output.emit(
            View(
                document=lambda style: catalogue.operations(operations, style),
                payload=lambda: {
                    **machine.opening("ops"),
                    "operations": [catalogue.operation_fields(primitive) for primitive in operations.values()],
                },
                lines=lambda: (
                    {**machine.opening("ops"), **catalogue.operation_fields(primitive)}
                    for primitive in operations.values()
                ),
                tidy=lambda: catalogue.tidy_operations(operations),
            )
        )
        output.note(*plugins.problems())
        return 0
    spellings = {alias: primitive for primitive in operations.values() for alias in primitive.aliases} | operations
    if operation not in spellings:
        guess = did_you_mean(operation, spellings)
        hint = f"did you mean `{guess}`?" if guess else "gradcli ops lists all operations"
        unknown = error("GC201", f"unknown operation `{visible(operation)}`", help=hint)
        raise GradcliError(*unknown.diagnostics, *plugins.problems())
    primitive = spellings[operation]
    if check:
        return checked(output, primitive)
    examples, rules = executed(primitive), derivatives(primitive)
    output.emit(
        View(
            document=lambda style: catalogue.operation(primitive, rules, examples, style),
            payload=lambda: {**machine.opening("ops"), **catalogue.operation_fields(primitive, rules, examples)},
            tidy=lambda: catalogue.tidy_operations({primitive.name: primitive}),
        )
    )
    return 0


def checked(output: CommandOutput, primitive: Any) -> int:
    """Print what came of each law; the exit code is 1 if one is broken, 3 if one could not be decided."""
    outcomes = list(laws(primitive))
    payload = {"operation": primitive.name, "laws": [law._asdict() for law in outcomes]}
    output.emit(
        View(
            document=lambda style: catalogue.laws(primitive.name, outcomes),
            payload=lambda: {**machine.opening("ops"), **payload},
            tidy=lambda: catalogue.tidy_laws(outcomes),
        )
    )
    results = [law.result for law in outcomes]
    if "FAIL" in results:
        output.say(f"gradcli ops: {results.count('FAIL')} of the laws of {primitive.name} broken")
        return 1
    return 3 if "?" in results else 0


def executed(primitive: Any) -> list[tuple[str, Any]]:
    """The examples of an operation, each with its value."""
    return [(text, package.evaluate(text).value) for text, _ in primitive.examples]


def derivatives(primitive: Any) -> dict[str, str]:
    """The formula of the derivative with respect to each argument of an elementwise operation."""
    if primitive.kind != "elementwise" or primitive.arity is None:
        return {}
    leaves = primitive.argument_names()
    function = package.compile(f"{primitive.name}({', '.join(leaves)})")
    formulas: dict[str, str] = {}
    for leaf in leaves:
        try:
            formulas[leaf] = function.gradient_formula(leaf)
        except GradcliError:  # an argument that has to be static, such as the order of polygamma
            continue
    return formulas


NAME = PositionalArgument("operation", "[NAME]", "An operation, such as log1p.", required=False)
CHECK = Option("--check", kind="flag", help="Check the operation by its laws.")
DECLARATION = Declaration(ops, (NAME,), (CHECK, *OUTPUT))
