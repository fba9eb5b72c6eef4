"""Choosing the model: the whole path of costs C."""

from .path import CPath, c_path

__all__ = ["CPath", "c_path"]
