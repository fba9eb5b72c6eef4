"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import PathLike

__all__ = ["replacing", "write_bytes", "write_text"]


@contextmanager
def replacing(path: PathLike) -> Iterator[str]:
    """Yield the name of a temporary file that replaces ``path`` at the end of the block.

    It is in the same folder, so that the replacement is one rename: a reader sees the old file or
    the new one. On an error the temporary file is removed and the old file is unchanged. The target
    of a symbolic link is replaced, not the link.
    """
    target = os.path.realpath(os.fspath(path))
    mode = _mode_of(target)
    temporary = os.path.join(os.path.dirname(target), f".maxmargin-{secrets.token_hex(8)}.tmp")
    # The umask decides the permissions, as for any new file.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        mode = stat.S_IMODE(os.stat(temporary).st_mode) if mode is None else mode
        yield temporary
        os.chmod(temporary, mode)  # the block may have replaced the file
        _to_disk(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if os.name == "posix":
        with contextlib.suppress(OSError):  # some file systems cannot sync folders
            _to_disk(os.path.dirname(target), os.O_RDONLY)


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file of these bytes."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(content)


def write_text(path: PathLike, lines: Iterator[str]) -> None:
    """Write a file of these lines."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def _mode_of(target: str) -> int | None:
    """Return the permissions of the file to be replaced; raise where it is not a regular file."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "must be a regular file", target)
    return stat.S_IMODE(mode)


def _to_disk(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
