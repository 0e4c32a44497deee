"""What each construct of the language means: expressions, calls (also repeated ones), functions, statements."""
