"""Values written as fractions of polynomials in generators, so that two spellings of one value are one form.

`differential_field` holds polynomials, fractions, and generators each over those before it; `exponentials` and
`real_forms` turn functions into generators; `form_field` reads a program, and `proof` answers whether a claim is an
identity. Nothing here reads a derivative rule or loads SymPy.
"""
