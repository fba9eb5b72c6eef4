"""The CPU engine: compiled kernels on all cores."""
