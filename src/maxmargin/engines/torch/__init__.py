"""The torch engine: X on a GPU, or on any other device of torch."""
