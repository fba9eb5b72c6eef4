"""The rows that ``--test`` held out of a fit, found again in a file by their contents."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..arrays import Labels, Matrix
    from ..diagnostics.metrics import AnyTally
    from ..files import DataTable
    from ..files.row_hashes import Hashes
    from ..files.targets import Targets

# What the parts of a file are called, in the order in which they are shown.
CALLED = {
    "held_out": "held-out rows",
    "training": "training rows",
    "other": "other rows, which may be training rows",
}


def held_out_record(
    learn: DataTable, hold: DataTable, targets: Targets, *, single: bool
) -> dict[str, Any]:
    """Return what a model file says about the rows that were held out: one hash per row."""
    import numpy as np

    from ..files.row_hashes import fingerprint, row_hashes

    seen, held = (
        row_hashes(part.X, None if targets == "none" else part.y, single=single)
        for part in (learn, hold)
    )
    return {
        "rows": len(held),
        "of": len(held) + len(seen),
        "fingerprint": fingerprint(np.concatenate([seen, held])),
        "single": single,
        "hashes": base64.b64encode(np.sort(held).astype("<u8").tobytes()).decode("ascii"),
        "also_in_training": int(np.isin(held, seen).sum()),
    }


def without_hashes(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about a model without the hashes of rows, which are many and say nothing."""
    held = about.get("held_out")
    if not isinstance(held, Mapping):
        return dict(about)
    return {**about, "held_out": {key: v for key, v in held.items() if key != "hashes"}}


class HeldOut:
    """The rows of a file that were held out of a fit, and those that were not.

    Rows are taken some at a time. Of rows that occur several times, as many are held out as were.

    Parameters
    ----------
    record : dict
        That of `held_out_record`.
    has_targets : bool
        Whether the model has classes or numbers as targets.
    """

    def __init__(self, record: Mapping[str, Any], has_targets: bool) -> None:
        import numpy as np

        self.record, self.has_targets = record, has_targets
        found = np.frombuffer(base64.b64decode(record["hashes"]), dtype="<u8").astype(np.uint64)
        self.known: Hashes = np.unique(found)
        self.left = Counter(found.tolist())
        self.n_rows, self.n_held, self.sum = 0, 0, 0
        self.tallies: dict[bool, list[Any]] = {True: [], False: []}

    @classmethod
    def of(cls, learnt: Mapping[str, Any], has_targets: bool) -> HeldOut | None:
        """Return the rows that a model file remembers; None where it remembers none."""
        record = learnt.get("held_out")
        try:
            return None if record is None else cls(record, has_targets)
        except (KeyError, TypeError, ValueError):  # facts of another program
            return None

    def mask(self, X: Matrix, y: Labels | None) -> NDArray[np.bool_]:
        """Say which of more rows were held out."""
        import numpy as np

        from ..files.row_hashes import row_hashes

        labels = y if self.has_targets else None
        hashes = row_hashes(X, labels, single=bool(self.record["single"]))
        is_held = np.isin(hashes, self.known)
        for k in np.flatnonzero(is_held).tolist():
            key = int(hashes[k])
            is_held[k] = self.left[key] > 0
            self.left[key] -= 1
        self.n_rows += len(hashes)
        self.n_held += int(is_held.sum())
        self.sum = (self.sum + int(hashes.sum(dtype=np.uint64))) % (1 << 64)
        return is_held

    @property
    def is_own_file(self) -> bool:
        """Whether all rows so far are those of the file to which the model was fitted."""
        same_rows = self.n_rows == self.record["of"]
        return same_rows and f"{self.sum:016x}" == self.record["fingerprint"]

    def name(self, is_held: bool) -> str:
        """Return the key of a part of the rows."""
        return "held_out" if is_held else "training" if self.is_own_file else "other"

    def groups(self) -> dict[str, AnyTally]:
        """Return what was counted, apart; nothing where no row was held out."""
        from ..diagnostics.metrics import merged_tallies

        if not self.n_held:
            return {}
        parts = {self.name(is_held): of for is_held, of in self.tallies.items() if of}
        return {name: merged_tallies(of) for name, of in parts.items()}

    def masks(self, X: Matrix, y: Labels | None) -> dict[str, NDArray[np.bool_]]:
        """Return the parts of all rows of a file, by what they are called; none without one."""
        is_held = self.mask(X, y)
        if not self.n_held:
            return {}
        parts = {CALLED[self.name(key)]: is_held == key for key in (True, False)}
        return {name: part for name, part in parts.items() if part.any()}
