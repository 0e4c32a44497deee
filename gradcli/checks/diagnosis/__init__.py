"""Explains refuted claims: what may be wrong with them, as readings, the likeliest first, at most three.

Nothing here judges. It explains what the oracles have refuted, and so it may read derivative rules, as they may not.

| module | what it tries |
|---|---|
| `ratios` | patterns of numbers: zero, a factor, a sign, leaves exchanged, a transpose, entries in another order |
| `error_model` | the table of mistakes in one rule: a row says where one happens, what stands there, how it is told |
| `rederivation` | the derivation with each of them in it: which gives exactly the claim |
| `source_edits` | the table of changes of the claim's own formula: which one makes it right |
| `formula_text` | the right formula as text, read back and confirmed before it is shown |
| `explanation` | all of these in their order, and what is right for special arrays or on one side only |

`explanation` begins; `diagnosis_context` gives the searches both sides and points.
"""
