"""Programs from programs: reverse mode, forward mode, and the derivative operators built on them."""
