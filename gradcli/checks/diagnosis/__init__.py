"""Explains refuted claims: what may be wrong with them, as readings, the likeliest first, at most three.

Nothing here judges. It explains what the oracles have refuted, and so it may read derivative rules, as they may not.

| module | what it tries |
|---|---|
| `ratios` | patterns of numbers: zero, a factor, a sign, leaves exchanged, a transpose, entries in another order |
| `error_model` | a table of mistakes in one rule, and the derivation with each of them: which gives exactly the claim |
| `source_edits` | changes that make the claim right: of its formula, of an array that both sides read, of the output |
| `formula_text` | the right formula as text, read back and confirmed before it is shown |
| `explanation` | all of these in their order, and what is right on one side of a kink only |

`explanation` begins; `diagnosis_context` gives the searches both sides and points.
"""
