"""A program whose floats are poor goes in; other spellings come out, proved equal and measured to be better.

`differences` and `functions` hold the patterns, `parts` reads graphs for them, `proved` tries, measures and proves.
"""

from gradcli.checks.spelling.proved import Spelling, better

__all__ = ["Spelling", "better"]
