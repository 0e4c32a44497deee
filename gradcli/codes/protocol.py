"""The codes of the protocol and of faults of the program itself, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

PROTOCOL: dict[str, CodeDoc] = {
    "GC901": CodeDoc(
        "not a JSON object",
        "A line that `gradcli batch` read is not JSON, or is JSON but not an object.",
        "The line is answered with the id null, and the next one is read.",
        "[1, 2]  # as a line of requests",
        'Write one object per line: {"id": 1, "command": "grad", "script": "x**2", "at": {"x": 3}}.',
    ),
    "GC902": CodeDoc(
        "unknown batch command",
        "The `command` of a request is missing or unknown.",
        "A request names its command: eval, grad, hessian or check.",
        '{"command": "gradient", "script": "x**2"}  # as a line of requests',
        "Use one of eval, grad, hessian, check.",
    ),
    "GC903": CodeDoc(
        "malformed request",
        "A field of a request has the wrong kind: script is a text, at and claims are objects, wrt is a list.",
        "A field of another kind would be guessed at.",
        '{"command": "grad", "script": "x**2", "wrt": "x"}  # as a line of requests',
        "Write the field as the message says.",
    ),
    "GC999": CodeDoc(
        "internal error",
        "Something failed that should not: a fault in gradcli.",
        "It is reported with exit code 4, never as a failed check.",
        "x  # no script should trigger it",
        "Set GRADCLI_DEBUG=1 to see where, and report it.",
    ),
}
