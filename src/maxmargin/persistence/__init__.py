"""Models in files: save and load without running code, LIBSVM text, ONNX, JSON.

In every format, a kernel model contains rows of its training data, which can be read from the
file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Public name → its module, which is imported when the name is first used.
_HOME = {
    "ModelFileError": "errors",
    "about": "files",
    "load": "files",
    "load_libsvm": "libsvm_reading",
    "register_onnx": "onnx_export",
    "save": "files",
    "save_json": "json_export",
    "save_libsvm": "libsvm_writing",
    "save_onnx": "onnx_export",
    "to_json": "json_export",
    "to_onnx": "onnx_export",
}

__all__ = [
    "ModelFileError",
    "about",
    "load",
    "load_libsvm",
    "register_onnx",
    "save",
    "save_json",
    "save_libsvm",
    "save_onnx",
    "to_json",
    "to_onnx",
]

if TYPE_CHECKING:
    from .errors import ModelFileError as ModelFileError
    from .files import about as about
    from .files import load as load
    from .files import save as save
    from .json_export import save_json as save_json
    from .json_export import to_json as to_json
    from .libsvm_reading import load_libsvm as load_libsvm
    from .libsvm_writing import save_libsvm as save_libsvm
    from .onnx_export import register_onnx as register_onnx
    from .onnx_export import save_onnx as save_onnx
    from .onnx_export import to_onnx as to_onnx


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
