"""The codes of the protocol and of faults of the program itself: data that `gradcli explain` prints."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

PROTOCOL: dict[str, CodeDoc] = {
    "GC999": CodeDoc(
        "internal error",
        "Something failed that should not: a fault in gradcli.",
        "It is reported with exit code 4, never as a failed check.",
        "x  # with --debug on",
        "Set GRADCLI_DEBUG=1 to see where, and report it.",
    ),
}
