"""Why parameters of a module are never trained: `parameters()` does not find them in a plain container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.execution.findings import Unregistered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager.running.loose import Loose
    from gradcli.eager.why.story import Story
    from gradcli.execution.findings import Finding

LAYERS = {"list": "ModuleList", "tuple": "ModuleList", "dict": "ModuleDict"}
PARAMETERS = {"list": "ParameterList", "tuple": "ParameterList", "dict": "ParameterDict", "tensor": "Parameter"}


def unregistered(story: Story, problem: BaseException | None) -> Iterator[tuple[set[int], Finding]]:
    """A finding for each plain container of a module with parameters that an update leaves out, and which they are."""
    nothing = isinstance(problem, ValueError) and "empty parameter list" in str(problem)
    for loose in story.watch.loose.values():
        marks = {mark for mark in loose.tensors if story.entries[mark].requires} - story.watch.optimised
        if marks and ((nothing and not loose.registered) or left_out(story, loose, marks)):
            yield marks, found(story, loose, len(marks))


def left_out(story: Story, loose: Loose, marks: set[int]) -> bool:
    """Whether gradients came to parameters, and what updates the others of the module leaves them out."""
    if not any(story.arrivals.get(mark) for mark in marks):
        return False  # a target network, a part that is frozen or not used
    if story.watch.optimised:
        return not story.watch.optimised.isdisjoint(loose.registered)
    return any(moved(story, mark) for mark in loose.registered) and not any(moved(story, mark) for mark in marks)


def moved(story: Story, mark: int) -> bool:
    """Whether a tensor was changed in place after a gradient came to it."""
    kinds = [event.kind for event in story.timeline(mark)]
    return "added" in kinds and "changed" in kinds[kinds.index("added") :]


def found(story: Story, loose: Loose, count: int) -> Finding:
    """The finding about one container."""
    line = loose.line or story.entries[loose.tensors[0]].line
    use = LAYERS[loose.kind] if loose.layers else PARAMETERS[loose.kind]
    root = loose.name.partition(".")[0]
    parameters = f"{count} parameter{'s' if count > 1 else ''}"
    if loose.kind == "tensor":
        what = f"the tensor `{loose.attribute}` of {loose.module} is no Parameter"
        which = "it"
    elif loose.layers:
        several = loose.layers > 1
        what = (
            f"{loose.layers} layer{'s' if several else ''} in the {loose.kind} `{loose.attribute}` of {loose.module} "
        )
        what += f"{'are' if several else 'is'} not registered"
        which = f"{'their' if several else 'its'} {parameters}"
    else:
        what = f"{parameters} in the {loose.kind} `{loose.attribute}` of {loose.module} "
        what += f"{'are' if count > 1 else 'is'} not registered"
        which = "them" if count > 1 else "it"
    user = "optimizer" if story.watch.optimised or not loose.registered else "update"
    told = f"{what}: {root}.parameters(), and so the {user}, leaves {which} out ({story.at(line)})"
    evidence = Unregistered(loose.module, loose.attribute, loose.kind, loose.layers, count, f"torch.nn.{use}")
    finding = story.find("unregistered", loose.name, line, told, evidence)
    return finding._replace(cure=finding.cure.replace("$use", f"torch.nn.{use}", 1))
