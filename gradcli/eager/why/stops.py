"""The reason for the exception that ended a run, if it is about gradients, with the line to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.eager.why.missing import ended
from gradcli.execution.findings import Saved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.eager.why.story import Story
    from gradcli.execution.findings import Finding


def stops(story: Story, problem: BaseException | None) -> Iterator[Finding]:
    """Why the file could not go on."""
    if problem is None or isinstance(problem, SystemExit):
        return
    watch = story.watch
    ours = isinstance(problem, RuntimeError) and watch.fault == watch.last  # not one that the file caught before
    if ours and watch.refusal is not None:
        yield refused(story, watch.refusal)
    elif ours and watch.stop is not None:
        why, node, line, changed = watch.stop
        carried = why == "changed" and any(sweep.retain and not sweep.create for sweep in watch.sweeps[:-1])
        if carried:
            told = (
                f"backward stopped: {story.at(changed)} changed in place what {node} at {story.at(line)} had saved in "
            )
            told += "an earlier step, whose graph is walked again"
            yield story.find("changed-carried", None, changed, told, Saved(node, line.number if line else None))
        elif why == "changed":
            yield story.find(
                "changed-in-place",
                None,
                changed,
                f"backward stopped: {story.at(changed)} changed in place what {node} at {story.at(line)} had saved",
                Saved(node, None if line is None else line.number),
            )
        else:
            yield story.find(
                "freed",
                None,
                watch.last,
                f"backward stopped at {story.at(watch.last)}: an earlier backward had freed what {node} at "
                f"{story.at(line)} saved",
                Saved(node, None if line is None else line.number),
            )
    elif isinstance(problem, RuntimeError) and "inference tensors cannot be saved" in str(problem).lower():
        told = (
            f"the file stopped at {story.at(watch.last)}: a tensor made in inference_mode has to be saved for backward"
        )
        yield story.find("inference", None, watch.last, told)
    else:
        told = str(problem).partition("\n")[0]
        yield story.find(
            "stopped", None, watch.last, f"the file stopped at {story.at(watch.last)}: {type(problem).__name__}: {told}"
        )


def refused(story: Story, root: int) -> Finding:
    """Why backward could not start."""
    entry, subject = story.entries[root], story.watch.subjects[root]
    name = story.called(root)
    above = story.leaves_above(root)
    end = story.end_above(root) or next(filter(None, (story.number_at(story.entries[one].line) for one in above)), None)
    late = [one for one in above if story.entries[one].requires]
    if end is None and not late:
        end = next(filter(None, (story.left_before(one) for one in above)), None)
    name = "this tensor" if entry.role == "leaf" and not subject.name else name
    if not subject.floating:
        return story.find("integer-dtype", name, entry.line, f"cannot go backward from $it: it is {subject.dtype}")
    if end is not None:
        found = ended(story, name, end)
        return found._replace(
            message="cannot go backward from $it: " + found.message.removeprefix("$it.grad is None: ")
        )
    if late:
        told = f"{story.called(late[0])} requires grad now, and did not when it was used"
        return story.find("never-required", name, entry.line, f"cannot go backward from $it: {told}")
    leaves = list(dict.fromkeys(story.called(leaf) for leaf in above))
    whole = [leaf for leaf in above if not story.entries[leaf].dtype.startswith(("float", "complex", "bfloat"))]
    if whole and len(whole) == len(above):
        kinds = ", ".join(dict.fromkeys(f"{story.called(leaf)} is {story.entries[leaf].dtype}" for leaf in whole))
        told = f"cannot go backward from $it: {kinds}, and only floats can require grad"
        return story.find("integer-dtype", name, entry.line, told)
    return story.find(
        "never-required",
        name,
        entry.line,
        f"cannot go backward from $it: nothing that it was made from requires grad ({', '.join(leaves)})",
    )
