"""One self-contained HTML page about a model: verdict, pictures, proof, rows, internals."""

from .figures import Figure
from .page import render, write

__all__ = ["Figure", "render", "write"]
