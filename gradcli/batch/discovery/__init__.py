"""Finds the cases of a check: scripts in folders and blocks of documents, or a selection of them.

Begin in `walk`, which finds the files; `gitignore` decides which are skipped, and `documents` finds the blocks.
"""
