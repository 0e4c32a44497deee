"""Points at which a gradient was wrong, each in a file that `gradcli audit --again FILE` reads.

A gradient may live in a closure or a model that no file could hold. So the file holds the command, the gradient and
the number of the call: the command runs again, and the same call is judged. The numbers of the point stand there too,
so that it is seen whether the program came to the same point.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.audit.audit_report import Finding

VERSION = 1


def save(found: Sequence[Finding], argv: Sequence[str], folder: str) -> None:
    """Save the worst point of each gradient that is wrong, and name the file in the finding."""
    for one in found:
        if one.verdict != "DISAGREES" or not folder:
            continue
        content = {
            "version": VERSION,
            "command": list(argv),
            "folder": os.getcwd(),
            "key": one.key,
            "name": one.name,
            "call": one.worst["call"],
            "point": one.worst["point"],
        }
        text = json.dumps(content)
        path = Path(folder, "audit", sha256(text.encode()).hexdigest()[:12] + ".json")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", "utf-8")
        except OSError:  # a cache that cannot be written: nothing is offered
            continue
        one.again = f"gradcli audit --again {path}"


def read(path: str) -> dict[str, Any]:
    """What a file holds. Raises GradcliError GC746 where it is none of these."""
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except OSError as problem:
        raise error("GC746", f"cannot read {visible(path, 200)}: {(problem.strerror or '').lower()}") from None
    except ValueError:
        content = None
    names = ("command", "folder", "key", "name", "call", "point")
    if not isinstance(content, dict) or content.get("version") != VERSION or any(one not in content for one in names):
        hint = "give one of the files that the report of the audit names"
        raise error("GC746", f"{visible(path, 200)} is not a point saved by gradcli audit", help=hint)
    return content


def compared(found: Sequence[Finding], saved: dict[str, Any]) -> str:
    """What is to be said where the program did not come to the saved point."""
    judged = next((one for one in found if one.key == saved["key"] and one.points), None)
    if judged is None:
        return f"{visible(saved['name'], 200)} was not called {saved['call']} times: has the program changed?"
    if judged.worst["point"] != saved["point"]:
        return "the program reached a different point this time: it is random, or it has changed"
    return ""
