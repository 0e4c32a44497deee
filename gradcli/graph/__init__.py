"""What a computation is: types, operations, nodes, builders, programs. It knows no operation by name and no text.

`serial` of a node grows from arguments to results, so sorting by it is a topological order. A builder's table of equal
nodes is dropped when a program is finished; a transform opens it again with the program's nodes.
"""
