"""Values as elements of a differential field, in which two spellings of one value are the same fraction.

The field (a tower as in Risch's algorithm) is that of the rational functions in some generators, over python-flint's
multivariate polynomials. A generator is a symbol or a function of elements before it; relations say which power of it
is another element, as i*i = -1. `differential_field` has the elements, called forms, with their arithmetic;
`real_forms` their values, signs and texts at the point of a check; `elementary_functions` makes functions of forms and
derives them; `proof` evaluates a program in forms and tries whether a claim is an identity, with several options, and
`induction` does so for loops. Nothing here reads a derivative rule or loads SymPy.
"""
