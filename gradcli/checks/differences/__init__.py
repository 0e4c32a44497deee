"""Derivatives from values alone, of scripts and of black boxes alike.

Begin with `step_sequences`, the difference engine; `survey` compares a whole claimed gradient with it. Nothing here
reads a derivative rule, and nothing gives a verdict: that is `decide`.
"""
