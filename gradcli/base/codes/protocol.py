"""The codes of the protocol and of faults of the program itself, as rows of the catalogue."""

from __future__ import annotations

from gradcli.base.codes.row import CodeDoc

PROTOCOL: dict[str, CodeDoc] = {
    "GC901": CodeDoc(
        "not a JSON object",
        "A line of the input of `gradcli batch` is not a JSON object.",
        "gradcli answers such a line with the id null and continues with the next line.",
        "[1, 2]  # as a line of requests",
        'Write one object per line: {"id": 1, "command": "grad", "script": "x**2", "at": {"x": 3}}.',
    ),
    "GC902": CodeDoc(
        "unknown batch command",
        "The `command` of a request is missing or unknown.",
        "Each request names one of the commands eval, grad, hessian and check.",
        '{"command": "gradient", "script": "x**2"}  # as a line of requests',
        "Write a command that exists, such as grad.",
    ),
    "GC903": CodeDoc(
        "malformed request",
        "A field of a request has the wrong type: script is a string, at and claims are objects, wrt is a list.",
        "gradcli does not guess what a field of another type means.",
        '{"command": "grad", "script": "x**2", "wrt": "x"}  # as a line of requests',
        'Write the field as the message says, here "wrt": ["x"].',
    ),
    "GC999": CodeDoc(
        "internal error",
        "gradcli failed because of a mistake in gradcli itself.",
        "The exit code is 4, which is never that of a failed check.",
        "x  # no script should trigger it",
        "Please report it, with the traceback that the same command prints with GRADCLI_DEBUG=1.",
    ),
}
