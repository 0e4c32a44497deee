"""The catalogue of diagnostic codes, as data that `gradcli explain` prints.

One row per code, in order of the codes, one file per family. A row says what is wrong, the reason, an example that
triggers the code, and what to do. An example is a script, a command (`gradcli ...`), or what the comment at its end
says: `# with --NAME VALUE ...` names the options that a script needs, `# in Python` marks a Python program, `# in
gradcli.toml` a line of settings, `# as a line of requests` input of `gradcli batch`. Only `explain` and `completions`
load the catalogue.
"""

from __future__ import annotations

from gradcli.base.codes.domains import DOMAINS
from gradcli.base.codes.files import FILES
from gradcli.base.codes.limit_codes import LIMITS
from gradcli.base.codes.name_codes import NAMES
from gradcli.base.codes.options import OPTIONS
from gradcli.base.codes.protocol import PROTOCOL
from gradcli.base.codes.row import CodeDoc
from gradcli.base.codes.shapes import SHAPES
from gradcli.base.codes.text_codes import TEXT
from gradcli.base.codes.verdict_codes import VERDICT_CODES, WORDS

__all__ = ["CODES", "FAMILIES", "VERDICTS", "CodeDoc"]

FAMILIES: dict[str, str] = {
    "GC1": "text and syntax",
    "GC2": "names",
    "GC3": "types and shapes",
    "GC4": "domains",
    "GC5": "limits",
    "GC6": "files and data",
    "GC7": "options",
    "GC8": "verdicts",
    "GC9": "protocol",
}

CODES: dict[str, CodeDoc] = {
    **TEXT, **NAMES, **SHAPES, **DOMAINS, **LIMITS, **FILES, **OPTIONS, **VERDICT_CODES, **PROTOCOL,
}  # fmt: skip
# the documentation of a verdict by its word
VERDICTS: dict[str, tuple[str, CodeDoc]] = {
    **{word: (word, doc) for word, doc in WORDS.items()},
    **dict.fromkeys(("ON THE SPHERE", "ON THE SIMPLEX"), ("SYMMETRIC", WORDS["SYMMETRIC"])),
    **{doc.title.partition(":")[0]: (code, doc) for code, doc in VERDICT_CODES.items() if doc.title[:3].isupper()},
}
