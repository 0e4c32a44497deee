"""Notes on a result: where a value is undefined or infinite, digits are lost, or a convention applies."""
