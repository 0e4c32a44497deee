"""Which entries of a result depend on which entries of an input, and what that saves: patterns, colours, few sweeps."""
