"""Models in files: save and load without running code, LIBSVM text, ONNX, JSON.

A kernel model consists of rows of its training data, whatever the format: whoever gets the file
can read them.
"""
from .errors import ModelFileError
from .files import about, load, save
