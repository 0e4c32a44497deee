"""Explains refuted claims: what may be wrong with them, as readings, the likeliest first, at most three.

Nothing here judges. It explains what the oracles have refuted, and so it may read derivative rules, as they may not.

| module | what it tries |
|---|---|
| `ratios` | zero, a constant factor, a sign, leaves exchanged, a transpose |
| `error_model` | the table of mistakes in one rule |
| `rederivation` | the derivation with each of them in it: which gives exactly the claim |
| `source_edits` | the one change of the claim's own formula that makes it right |
| `blame` | which operation of the engine, or which hand-written rule, is wrong |
| `explanation` | all of these in their order, and what is right for special arrays or on one side only |

`diagnosis_context` gives them both sides and points.
"""
