"""What a computation is: types, primitives, nodes, builders, programs. It knows no operation, no text and no array."""
