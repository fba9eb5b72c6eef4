"""Choosing the model."""
