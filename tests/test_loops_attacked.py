"""Scripts that once broke where their loops are nodes of the graph."""

from __future__ import annotations

import numpy as np

from gradcli.execution.evaluate import evaluate
from gradcli.language.parser import parse
from gradcli.lowering import lower
from gradcli.transforms.derivatives import grad

# the inner loop ends in its second carry, which reads the first one twice: as text it would double with each turn
CARRIED_BY_TWO = """\
x = 0.3
s = x
t = 0
for i in range(33):
    for j in range(33):
        t = 0.3*t + s*i/40 + x*j/33
        s = sin(t)*s
    s = s + t*0.01
s + t
"""


def test_the_code_of_a_loop_does_not_grow_with_the_turns_of_a_loop_inside() -> None:
    answers = []
    for how in ("node", "unroll"):
        found = lower(parse(CARRIED_BY_TWO), loops=how)
        (output,) = found.program.outputs
        slopes = grad(output, [found.program.leaves["x"].node])
        answers.append(evaluate([output, *slopes], found.values))
    np.testing.assert_allclose(*answers, rtol=1e-9)
