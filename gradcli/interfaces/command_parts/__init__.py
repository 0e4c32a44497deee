"""What several commands share: inputs and reports of `check`, runs of Python files, quizzes, views of results."""
