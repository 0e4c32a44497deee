"""Reasons and pictures for PyTorch inside a script or a notebook: what happens in a `with` block, and a tensor's graph.

with gradcli.watch(model) as w:
    loss = criterion(model(x), y)
    loss.backward()
print(w.why("encoder.0.weight"))
w.steps()  # after watch(model, steps=True): a table of the training steps and of the parameters

gradcli.draw(loss, model=model).save("loss.svg")
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradcli import graph, why
from gradcli.recording.calls.gradient_libraries import is_a
from gradcli.recording.libraries.jax_recorder import JaxWatch
from gradcli.recording.libraries.torch_recorder import TorchWatch, installed
from gradcli.recording.runs.run_graphs import drawing, graphs_of
from gradcli.recording.runs.step_rows import training_steps
from gradcli.rendering import plain, tabular
from gradcli.rendering.document import Style, document
from gradcli.rendering.documents import why_findings
from gradcli.rendering.graphs import formats
from gradcli.rendering.tabular import html

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import FrameType, TracebackType

    from gradcli.base.results.findings import Explanation, Finding
    from gradcli.base.results.graph_vertices import Graph
    from gradcli.base.results.training_steps import TrainingSteps
    from gradcli.recording.runs.run_record import Watch

__all__ = ["Drawing", "Reasons", "Steps", "Watching", "draw", "watch"]


LIBRARIES = {"JAX": "jax", "PyTorch": "torch"}


class Reasons:
    """Why gradients are as they are: `findings` for programs, the text of `gradcli why` to print or in a notebook."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each reason with its tensors, line, message and fix, the most important first."""
        return self.explanation.findings

    def __str__(self) -> str:
        return plain.render(why_findings.explanation(self.explanation, Style()))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        document = why_findings.explanation(self.explanation, Style())
        return {"text/plain": str(self), "text/markdown": tabular.markdown(document)}


class Steps:
    """The steps of training as tables, to print or in a notebook; `table` for programs."""

    def __init__(self, table: TrainingSteps) -> None:
        self.table = table

    def __str__(self) -> str:
        return plain.render(document(*why_findings.tables(self.table, Style())))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": html(document(*why_findings.tables(self.table, Style())))}


class Watching:
    """A `with` block whose operations, backwards and steps are recorded; afterwards `why` explains its gradients."""

    def __init__(
        self, record: Watch, frame: FrameType, modules: dict[str, Any], alone: bool, names: dict[str, Any]
    ) -> None:
        self._record, self._frame, self._names = record, frame, names
        self._modules, self._alone = modules, alone  # by their names; whether parameters go without these
        self._path = frame.f_code.co_filename
        self._open: AbstractContextManager[None] | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Watching:
        if self._open is not None:
            raise RuntimeError("this watch() was already used; call gradcli.watch() again for each `with` block")
        self._open = self._record.watching(self._names)
        self._open.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._open is not None
        self._look()
        self._error = error
        self._open.__exit__(kind, error, traceback)
        self._record.note_loose(self._modules)

    def _look(self) -> None:
        """Take the names that parameters have now, then those of the tensors around the block."""
        held = self._record.tensors.kind, self._record.tensors.optimizer
        self._names.update(parameters(self._modules, self._alone))
        around = dict(self._frame.f_locals)
        self._names.update({name: value for name, value in around.items() if is_a(value, held)} | self._names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be recorded, and why."""
        return tuple(self._record.notes)

    def steps(self) -> Steps:
        """The training steps so far: loss, gradients, how far parameters moved, zeros, NaN, dead units."""
        if self._error is None:
            self._look()
            self._record.look(self._names)
        return Steps(training_steps(self._record))

    def why(self, tensor: str | None = None) -> Reasons:
        """Why gradients are None, zero, NaN or huge: all that look wrong, or that of one tensor by its name.

        Raises GradcliError (GC206) for a name that neither the watched modules nor the code around the block has.
        """
        if self._error is None:
            self._look()
            self._record.look(self._names)
        explanation = why.explain(self._record, self._path, self._error, tensor)
        library = "JAX" if self._record.tensors.dialect == "jax" else "PyTorch"
        return Reasons(explanation._replace(on=f"{library} {import_module(LIBRARIES[library]).__version__}"))


def watch(*watched: Any, every: int = 1, steps: bool = False, **named: Any) -> Watching:
    """Record what PyTorch or JAX does in a `with` block, to explain the gradients afterwards.

    `watched` are modules and tensors whose gradients are of interest. The parameters of a single module have the names
    that `named_parameters()` gives them; with several modules, or one given by keyword, the module's name stands
    before: `watch(encoder=e, decoder=d)` has `encoder.0.weight`. Tensors in variables around the block have the names
    of these. `every=10` records every tenth training step; `steps` keeps how far each step moves a parameter, for
    `Watching.steps()`. Code that imports `jax` and not `torch` is recorded as a program of JAX, with nothing to name.
    Raises GradcliError (GC713) where PyTorch is not installed.

    >>> with watch(model) as w:  # doctest: +SKIP
    ...     model(x).sum().backward()
    >>> print(w.why("0.weight"))  # doctest: +SKIP
    """
    frame = sys._getframe(1)
    path = frame.f_code.co_filename
    folder = os.path.dirname(path) + os.sep if os.path.isabs(path) else path.rpartition("-")[0] or path
    imported = {value.__name__.partition(".")[0] for value in frame.f_globals.values() if isinstance(value, ModuleType)}
    if "jax" in imported and "torch" not in imported and not watched and not named:
        return Watching(JaxWatch(import_module("jax"), folder), frame, {}, False, {})
    torch = installed()
    modules, names = dict[str, Any](), dict[str, Any]()
    spoken = {id(value): name for name, value in reversed([*frame.f_globals.items(), *frame.f_locals.items()])}
    titled = [(spoken.get(id(value), type(value).__name__.lower()), value) for value in watched]
    for name, value in [*titled, *named.items()]:
        if isinstance(value, torch.nn.Module):
            modules[name] = value
        elif isinstance(value, torch.Tensor):
            names[name] = value
        else:
            raise TypeError(f"watch() takes modules and tensors of PyTorch, not {type(value).__name__}")
    alone = len(modules) == 1 and not modules.keys() & named.keys()
    return Watching(TorchWatch(torch, folder, every=every, steps=steps), frame, modules, alone, names)


class Drawing:
    """The graph of a tensor: a picture in a notebook, a tree to print, a file of `save`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture; the ending chooses the format: .svg, .html, .dot, .gv or .mmd.

        Raises GradcliError (GC721) for another ending.
        """
        text = formats.saved(os.fspath(path), self.graph)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __str__(self) -> str:
        return formats.text("tree", self.graph, Style())

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": formats.text("svg", self.graph, Style())}


def draw(
    loss: Any,
    *,
    model: Any = None,
    params: Mapping[str, Any] | None = None,
    at: Any = (),
    wrt: Sequence[str] | None = None,
) -> Drawing:
    """The graph of a script at a point, or the one behind a tensor of PyTorch; `gradcli.graph(loss)` is the same.

    Leaves have the names that `model.named_parameters()` or `params` give them; without these, the names that modules
    and tensors have around the call. Raises GradcliError: GC713 where PyTorch is not installed, GC721 for a tensor
    without a graph.

    >>> draw("x**2", at={"x": 3}).graph.vertices[-1].value
    9.0
    >>> draw(model(x).sum(), model=model).save("loss.svg")  # doctest: +SKIP
    """
    if isinstance(loss, str):
        return Drawing(import_module("gradcli.calculator").graph(loss, at=at, wrt=wrt))
    torch = installed()
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"draw() takes a script or a tensor of PyTorch, not {type(loss).__name__}")
    record = TorchWatch(torch, os.sep, extents=True)
    record.mark(loss)
    if model is None and params is None:
        held = around(sys._getframe(1), torch)
        params = {name: x for name, x in held.items() if x.is_leaf or record.tensors.seq(x) in record.made}
    record.look({**(parameters({"model": model}, True) if model is not None else {}), **(params or {})})
    graphs = graphs_of(record, "loss")._replace(on=f"PyTorch {torch.__version__}")
    return Drawing(drawing(graphs, ()))


def around(frame: FrameType, torch: Any) -> dict[str, Any]:
    """The tensors and the parameters of modules that variables around a call hold, by their names."""
    while frame.f_globals.get("__package__") == graph.__name__ and frame.f_back is not None:  # `gradcli.graph(loss)`
        frame = frame.f_back
    known = {**frame.f_globals, **frame.f_locals}
    modules = {name: value for name, value in known.items() if is_a(value, torch.nn.Module)}
    tensors = {name: value for name, value in known.items() if is_a(value, torch.Tensor)}
    return tensors | parameters(modules, False)


def parameters(modules: Mapping[str, Any], alone: bool) -> dict[str, Any]:
    """The parameters of modules by their names, each behind the name of its module unless that is `alone`."""
    return {
        text if alone else f"{name}.{text}": parameter
        for name, module in modules.items()
        for text, parameter in module.named_parameters()
    }
