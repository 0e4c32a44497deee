"""Values written as fractions of polynomials in generators, so that two spellings of one value are one form.

`ring` holds fractions and what generators are, `exponentials`, `reals` and `angles` turn functions into generators,
`places` evaluates forms in balls, `derivation` differentiates them, `field` reads a program into them, and `proving`
answers whether a claim is an identity. Nothing here reads a derivative rule, and nothing here loads SymPy.
"""
