"""Which cases a check is about: scripts in folders and blocks of documents, or a selection of them.

Begin in `walk`, which finds the files; `gitignore` says which of them are left out, and `documents` finds the blocks.
"""
