"""What a recorded run must know of each library of tensors: PyTorch, JAX, and gradcli's own (`eager_recorder.py`)."""
