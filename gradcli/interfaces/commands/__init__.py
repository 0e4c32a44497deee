"""The commands of gradcli, one file each, loaded by name when they are used.

Besides its function, each file has a DECLARATION of operands and options as plain data. Both readers of a command line,
the help, the completion scripts and the configuration keys are derived from it.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli.interfaces.options.declaration import Declaration

# command: its module, and its line in the overview
COMMANDS: dict[str, tuple[str, str]] = {
    "grad": ("gradcli.interfaces.commands.grad", "Value and gradient at a point."),
    "eval": ("gradcli.interfaces.commands.eval", "Value at a point."),
    "hessian": ("gradcli.interfaces.commands.hessian", "Value, gradient and second derivatives at a point."),
    "jacobian": ("gradcli.interfaces.commands.jacobian", "All partial derivatives of an array or of several outputs."),
    "derive": ("gradcli.interfaces.commands.derive", "The gradient as a formula, without a point."),
    "trace": ("gradcli.interfaces.commands.trace", "The forward and the backward pass, step by step."),
    "run": ("gradcli.interfaces.commands.run", "Run a PyTorch-style Python file on gradcli's tensors."),
    "why": ("gradcli.interfaces.commands.why", "Why is this gradient None, zero, NaN or huge?"),
    "plot": ("gradcli.interfaces.commands.plot", "A function with its gradient, as a plot."),
    "graph": ("gradcli.interfaces.commands.graph", "The graph of a computation, as a tree, a drawing or a page."),
    "check": ("gradcli.interfaces.commands.check", "Check gradients and hand-written derivatives."),
    "audit": ("gradcli.interfaces.commands.audit", "Run a command and check the gradients that it calls."),
    "freeze": ("gradcli.interfaces.commands.freeze", "Record results in scripts, for check to compare."),
    "batch": ("gradcli.interfaces.commands.batch", "Answer JSON Lines requests, one line each."),
    "ops": ("gradcli.interfaces.commands.ops", "The operations of the language: derivatives, domains, kinks."),
    "explain": ("gradcli.interfaces.commands.explain", "What an error code or a verdict means and what to do."),
    "completions": ("gradcli.interfaces.commands.completions", "Print a completion script for bash, zsh or fish."),
}

# the headings of the overview, and the commands under each
GROUPS: dict[str, tuple[str, ...]] = {
    "Compute": ("eval", "grad", "hessian", "jacobian", "derive", "batch"),
    "See": ("trace", "graph", "plot"),
    "Check": ("check", "audit", "freeze"),
    "PyTorch scripts": ("run", "why"),
    "Look up": ("ops", "explain", "completions"),
}

# modules that commands load when they first use them, so that `--help` and scalar scripts start quickly
ROOMS: dict[str, str] = {
    "audit_pairs": "gradcli.audit.pairs",
    "audit_report": "gradcli.audit.audit_report",
    "audit_scan": "gradcli.audit.source_scan",
    "audited_command": "gradcli.audit.command",
    "audits": "gradcli.rendering.documents.audits",
    "baselines": "gradcli.batch.baseline",
    "contents": "gradcli.batch.judged_content",
    "batch": "gradcli.batch",
    "calculator": "gradcli.calculator",
    "calculus": "gradcli.rendering.documents.calculus",
    "catalogue": "gradcli.rendering.documents.catalogue",
    "checks": "gradcli.checks",
    "child_process": "gradcli.base.child_process",
    "code": "gradcli.rendering.code",
    "deriving": "gradcli.derivation.deriving",
    "tried_patches": "gradcli.interfaces.command_parts.tried_patches",
    "formats": "gradcli.rendering.graphs.formats",
    "formulas": "gradcli.rendering.documents.formulas",
    "frozen_scripts": "gradcli.batch.frozen_scripts",
    "inline_expectations": "gradcli.language.comments.inline_expectations",
    "language": "gradcli.language",
    "jax_recorder": "gradcli.recording.libraries.jax_recorder",
    "limits": "gradcli.language.limits",
    "listings": "gradcli.rendering.documents.listings",
    "machine": "gradcli.rendering.machine",
    "matrix_files": "gradcli.rendering.matrix_files",
    "many": "gradcli.batch.points",
    "runs": "gradcli.recording.runs",
    "package": "gradcli",
    "planned": "gradcli.rendering.documents.planned",
    "plots": "gradcli.rendering.curves.plots",
    "plotting": "gradcli.calculator.plotting",
    "plugins": "gradcli.primitives.plugins",
    "primitives": "gradcli.primitives",
    "quizzes": "gradcli.derivation.quiz",
    "why_findings": "gradcli.rendering.documents.why_findings",
    "report_formats": "gradcli.rendering.formats",
    "sample_points": "gradcli.primitives.sample_points",
    "eager_recorder": "gradcli.recording.libraries.eager_recorder",
    "run_steps": "gradcli.recording.runs.step_rows",
    "source": "gradcli.language.source",
    "torch_alias": "gradcli.eager.torch_alias",
    "torch_recorder": "gradcli.recording.libraries.torch_recorder",
    "trace": "gradcli.rendering.documents.trace_tables",
    "spy_plots": "gradcli.rendering.curves.spy_plots",
    "vector_plots": "gradcli.rendering.curves.vector_plots",
    "verdicts": "gradcli.rendering.documents.verdicts",
    "watching": "gradcli.why",
    "values": "gradcli.language.values",
}


class Room:
    """A module that is loaded when one of its names is first used."""

    __slots__ = ("_module",)

    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


def room(name: str) -> Any:
    """The module of this name in ROOMS, loaded at its first use."""
    return Room(ROOMS[name])


def declaration(command: str) -> Declaration:
    """The declaration of a command: its operands, options, and the function to call."""
    module = import_module(COMMANDS[command][0])
    declared: Declaration = module.DECLARATION
    return declared
