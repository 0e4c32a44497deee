"""What each construct of the language means: expressions, calls, functions, statements."""
