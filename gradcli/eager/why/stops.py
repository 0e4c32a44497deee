"""The exception that ended a run goes in; if it is about gradients, its reason comes out with the line to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.eager.why.missing import ended

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
        if why == "changed":
            yield story.find(
                "changed-in-place",
                None,
                changed,
                f"backward stopped: {story.at(changed)} changed in place what {node} at {story.at(line)} had saved",
                node=node,
                saved=None if line is None else line.number,
            )
        else:
            yield story.find(
                "freed",
                None,
                watch.last,
                f"backward stopped at {story.at(watch.last)}: an earlier backward had freed what {node} at "
                f"{story.at(line)} saved",
                node=node,
                saved=None if line is None else line.number,
            )
    else:
        told = str(problem).partition("\n")[0]
        yield story.find(
            "stopped", None, watch.last, f"the file stopped at {story.at(watch.last)}: {type(problem).__name__}: {told}"
        )


def refused(story: Story, root: int) -> Finding:
    """Why backward could not start."""
    entry, subject = story.entries[root], story.watch.subjects[root]
    name = story.called(root)
    end = story.end_above(root) or story.number_at(entry.line if entry.role == "leaf" else None)
    name = "this tensor" if entry.role == "leaf" and not subject.name else name
    if not subject.floating:
        return story.find("integer-dtype", name, entry.line, f"cannot go backward from $it: it is {subject.dtype}")
    if end is not None:
        found = ended(story, name, end)
        return found._replace(
            message="cannot go backward from $it: " + found.message.removeprefix("$it.grad is None: ")
        )
    leaves = list(dict.fromkeys(story.called(leaf) for leaf in story.leaves_above(root)))
    return story.find(
        "never-required",
        name,
        entry.line,
        f"cannot go backward from $it: nothing that it was made from requires grad ({', '.join(leaves)})",
    )
