"""The QP libraries, called in this process or in one of their own.

This file imports nothing of the package: as a script it answers one program, from its standard
input to its standard output. PIQP holds the interpreter's lock until it is done and has no time
limit, but a process can be ended at any time.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.intp]


class TimeUpError(Exception):
    """The process was left before it had an answer."""


@dataclass(frozen=True)
class Program:
    """min ½xᵀPx + qᵀx subject to Gx ≤ h, Ax = b, with the options of the library.

    Parameters
    ----------
    P, q, G, h, A, b
        The arrays of a `QP`.
    library : str
        "piqp" or "clarabel".
    tol : float
    max_iter : int
    seconds : float
        Of the library, where it has a time limit; ∞ for no limit.
    """

    P: Floats
    q: Floats
    G: Any
    h: Floats
    A: Any
    b: Floats
    library: str
    tol: float
    max_iter: int
    seconds: float = np.inf

    def answer(self) -> Answer:
        """Ask the library here and now."""
        return _ask_piqp(self) if self.library == "piqp" else _ask_clarabel(self)

    def answer_elsewhere(self) -> Answer:
        """Ask it in another process, which Ctrl-C and the end of the time leave.

        Raises
        ------
        TimeUpError
            After the seconds allowed.
        """
        # What can be imported here can be there, but for the files beside this one.
        command = [sys.executable, "-P", __file__]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        ) as child:
            timeout = None if np.isinf(self.seconds) else self.seconds
            try:
                out, err = child.communicate(self._packed(), timeout)
            except subprocess.TimeoutExpired:
                raise TimeUpError from None
            finally:
                child.kill()
        if child.returncode != 0:
            raise RuntimeError(f"{self.library} failed: {err.decode(errors='replace')[-500:]}")
        return Answer.unpacked(out)

    def _packed(self) -> bytes:
        """Return all of it as bytes; a sparse G or A as its three arrays."""
        arrays: dict[str, Any] = {"P": self.P, "q": self.q, "h": self.h, "b": self.b}
        for name in ("G", "A"):
            value = sparse.csr_matrix(getattr(self, name))
            arrays |= {f"{name}_data": value.data, f"{name}_indices": value.indices}
            arrays |= {f"{name}_indptr": value.indptr}
        arrays["options"] = np.array([self.tol, self.max_iter, self.seconds])
        arrays["library"] = np.array(self.library)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def unpacked(cls, packed: bytes) -> Program:
        """Return the program of these bytes."""
        data = np.load(io.BytesIO(packed), allow_pickle=False)
        n = data["q"].size
        G, A = (
            sparse.csr_matrix(
                (data[f"{name}_data"], data[f"{name}_indices"], data[f"{name}_indptr"]),
                shape=(data[right].size, n),
            )
            for name, right in (("G", "h"), ("A", "b"))
        )
        tol, max_iter, seconds = data["options"]
        return cls(
            data["P"], data["q"], G, data["h"], A, data["b"], str(data["library"]), float(tol),
            int(max_iter), float(seconds),
        )  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a library said: x, multipliers y of Ax = b and z of Gx ≤ h.

    ``status`` is a value of `QPStatus`.
    """

    x: Floats
    y: Floats
    z: Floats
    status: str
    n_iter: int

    def packed(self) -> bytes:
        """Return all of it as bytes."""
        buffer = io.BytesIO()
        np.savez(
            buffer, x=self.x, y=self.y, z=self.z, status=np.array(self.status),
            n_iter=np.array(self.n_iter),
        )  # fmt: skip
        return buffer.getvalue()

    @classmethod
    def unpacked(cls, packed: bytes) -> Answer:
        """Return the answer of these bytes."""
        data = np.load(io.BytesIO(packed), allow_pickle=False)
        return cls(data["x"], data["y"], data["z"], str(data["status"]), int(data["n_iter"]))


def _ask_piqp(program: Program) -> Answer:
    piqp = import_module("piqp")
    box = Box.of(program.G, program.h, len(program.q))
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = program.tol
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = program.tol
    settings.max_iter = program.max_iter
    G, A = (_dense(part) for part in (program.G[box.others], program.A))
    solver.setup(
        np.asfortranarray(program.P), program.q, np.asfortranarray(A) if len(A) else None,
        program.b if len(A) else None, np.asfortranarray(G) if len(G) else None, None,
        program.h[box.others] if len(G) else None, box.lower, box.upper,
    )  # fmt: skip
    code = str(solver.solve()).rpartition(".")[2]
    result = solver.result
    z = box.multipliers(len(program.h), np.array(result.z_bl), np.array(result.z_bu))
    if len(G):
        z[box.others] = result.z_u
    status = {
        "PIQP_SOLVED": "solved",
        "PIQP_MAX_ITER_REACHED": "iteration limit",
        "PIQP_PRIMAL_INFEASIBLE": "infeasible",
    }.get(code, "not solved to the tolerance")
    y = np.array(result.y) if len(A) else np.empty(0)
    return Answer(np.array(result.x), y, z, status, int(result.info.iter))


def _ask_clarabel(program: Program) -> Answer:
    clarabel = import_module("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # Asked for more, it ends with less: the best of its answers is not kept.
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = max(program.tol, 1e-10)
    settings.max_iter = program.max_iter
    if np.isfinite(program.seconds):
        settings.time_limit = program.seconds
    finite = np.flatnonzero(np.isfinite(program.h))
    rows = sparse.vstack(
        [sparse.csr_matrix(program.A), sparse.csr_matrix(program.G)[finite]], format="csc"
    )
    k = len(program.b)
    cones = [clarabel.ZeroConeT(k), clarabel.NonnegativeConeT(finite.size)]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(program.P)), program.q, rows,
        np.append(program.b, program.h[finite]),
        [cone for cone, size in zip(cones, (k, finite.size), strict=True) if size], settings,
    )  # fmt: skip
    result = solver.solve()
    z, dual = np.zeros(len(program.h)), np.array(result.z)
    z[finite] = dual[k:]
    status = {
        "Solved": "solved",
        "PrimalInfeasible": "infeasible",
        "MaxIterations": "iteration limit",
        "MaxTime": "time limit",
    }.get(str(result.status), "not solved to the tolerance")
    return Answer(np.array(result.x), dual[:k], z, status, int(result.iterations))


def _dense(part: Any) -> Floats:
    return np.asarray(part.toarray() if sparse.issparse(part) else part)


@dataclass(frozen=True)
class Box:
    """Rows of Gx ≤ h that bound one variable, as lower ≤ x ≤ upper, and the other rows.

    A library with bounds on x need not be given 2n rows of n numbers.
    """

    lower: Floats
    upper: Floats
    coefficients: Floats
    below: Integers
    above: Integers
    others: Integers

    @classmethod
    def of(cls, G: Any, h: Floats, n: int) -> Box:
        """Find them; of several bounds of a variable the tightest counts."""
        G = sparse.csr_matrix(G)
        G.eliminate_zeros()
        single = np.flatnonzero(np.diff(G.indptr) == 1)
        others = np.flatnonzero((np.diff(G.indptr) != 1) & np.isfinite(h))
        columns, values = G.indices[G.indptr[single]], G.data[G.indptr[single]]
        coefficients = np.ones(len(h))
        coefficients[single] = np.abs(values)
        bounds = h[single] / values
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        below, above = np.full(n, -1), np.full(n, -1)
        order = np.argsort(bounds)  # of what is assigned to one place the last stays
        rise, fall = order[values[order] < 0], order[::-1][values[order[::-1]] > 0]
        lower[columns[rise]], below[columns[rise]] = bounds[rise], single[rise]
        upper[columns[fall]], above[columns[fall]] = bounds[fall], single[fall]
        return cls(lower, upper, coefficients, below, above, others)

    def multipliers(self, n_rows: int, z_lower: Floats, z_upper: Floats) -> Floats:
        """Return those of Gx ≤ h from those of the box."""
        z = np.zeros(n_rows)
        for rows, values in ((self.below, z_lower), (self.above, z_upper)):
            here = rows >= 0
            z[rows[here]] = values[here] / self.coefficients[rows[here]]
        return z


if __name__ == "__main__":
    sys.stdout.buffer.write(Program.unpacked(sys.stdin.buffer.read()).answer().packed())
