"""What a command line and a settings file may hold, and how they are read: `declaration.py`, and two readers of it."""
