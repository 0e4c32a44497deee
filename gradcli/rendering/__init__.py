"""Results as text: tables, plain text, JSON, CSV, Markdown, LaTeX, pictures. Nothing is computed here.

The layered layout of graphs is our own, so that a picture is the same on every machine; a drawing needs no network and
runs no text of a user. Report formats (`formats/`) are writers of parts, so that a report can be a stream.
"""
