"""The codes of protocol, and faults of the program itself: data that `gradcli explain` prints; see the package for what a row says."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

PROTOCOL: dict[str, CodeDoc] = {
    "GC999": CodeDoc(
        "internal error",
        "Something failed that should not: a fault in gradcli, or the machine ran out of memory.",
        "It is reported with exit code 4, never as a failed check.",
        "x  # with --debug on",
        "Set GRADCLI_DEBUG=1 to see where, and report it.",
    ),
}
