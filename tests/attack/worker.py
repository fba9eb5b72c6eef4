"""Runs fits in a process of their own, so that one that hangs or crashes fails one test only.

Run as a script it reads pickled requests from its standard input and answers them; imported it
offers `Worker`, the other end of that pipe.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import struct
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

# Seconds after which a fit of at most 2,000 rows hangs, on however slow a machine. Two quiet cores
# need less than 10.
LIMIT = float(os.environ.get("MAXMARGIN_ATTACK_SECONDS", "120"))
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)


class Worker:
    """A process that answers one request at a time and is killed when it takes too long."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, action: str, seconds: float = LIMIT, **request: Any) -> dict[str, Any]:
        """Return the answer, or ``{"hang": seconds}`` or ``{"crash": exit status}``."""
        process = self._start()
        assert process.stdin is not None
        data = pickle.dumps((action, request))
        process.stdin.write(struct.pack("<q", len(data)) + data)
        process.stdin.flush()
        answer = self._read(time.monotonic() + seconds)
        if answer is None:
            status = process.poll()
            self.close()
            return {"hang": seconds} if status is None else {"crash": status}
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            # Importing and compiling are not part of any fit.
            if self._read(time.monotonic() + 1200.0) is None:
                raise RuntimeError("the worker process did not start")
        return self._process

    def _read(self, until: float) -> dict[str, Any] | None:
        head = self._bytes(8, until)
        body = None if head is None else self._bytes(struct.unpack("<q", head)[0], until)
        return None if body is None else pickle.loads(body)

    def _bytes(self, size: int, until: float) -> bytes | None:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe, parts = self._process.stdout.fileno(), []
        while size:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            data = os.read(pipe, min(size, 1 << 20)) if ready else b""
            if not data:
                return None
            parts.append(data)
            size -= len(data)
        return b"".join(parts)


# What the process does ----------------------------------------------------------------------------


def fit(
    estimator: str, params: dict[str, Any], X: Any, y: Any, sample_weight: Any = None
) -> dict[str, Any]:
    """Return what the fitted model claims, in plain data."""
    import maxmargin as mm

    params = {name: _built(value) for name, value in params.items()}
    before = _copies(X, y, sample_weight)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            model = getattr(mm, estimator)(**params).fit(X, y, sample_weight)
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error), "proof": _proof(error)}
        else:
            answer = _facts(model, X)
        answer["seconds"] = time.perf_counter() - start
    answer["warnings"] = [(w.category.__name__, str(w.message)) for w in caught]
    answer["changed"] = before != _copies(X, y, sample_weight)
    return answer


def separability(X: Any, y: Any, **options: Any) -> dict[str, Any]:
    """Return the verdict, in plain data."""
    import maxmargin as mm

    start = time.perf_counter()
    report = mm.separability(X, y, **options)
    seconds = time.perf_counter() - start
    plane = report.hyperplane
    return {
        "separable": report.separable,
        "w": None if plane is None else np.asarray(plane.w),
        "b": None if plane is None else float(plane.b),
        "margin": report.margin,
        "multipliers": report.multipliers,
        "margin_bound": report.margin_bound,
        "text": str(report),
        "certificate": _certificate(report.certificate),
        "seconds": seconds,
    }


def certify(
    kernel: tuple[Any, ...],
    X: Any,
    y: Any,
    C: float,
    alpha: Any,
    b: float,
    scores: Any = None,
    sample: int | None = None,
) -> dict[str, Any]:
    """Return the certificate of an answer that no solver gave; ``scores`` may be lies."""
    import maxmargin as mm
    from maxmargin.problems import DualProblem
    from maxmargin.solution import Solution, Status

    problem = DualProblem.hinge(_built(kernel), X, y, C)
    w = np.zeros((1, X.shape[1]))
    solution = Solution(w=w, b=np.array([b]), status=Status.CONVERGED, alpha=alpha, scores=scores)
    return {"certificate": _certificate(mm.certify(problem, solution, sample=sample))}


def _built(value: Any) -> Any:
    """Turn a described kernel, ("sum", ("rbf", 1.0), ("linear",)), into one of the library."""
    if not isinstance(value, tuple):
        return value
    import maxmargin as mm

    name, *arguments = value
    parts = [_built(part) for part in arguments]
    if name == "sum":
        return parts[0] + parts[1]
    if name == "product":
        return parts[0] * parts[1]
    if name == "scaled":
        return parts[0] * parts[1]
    kind = {"linear": "Linear", "poly": "Polynomial", "rbf": "RBF", "sigmoid": "Sigmoid"}[name]
    return getattr(mm.kernels, kind)(*parts)


def described(kernel: Any) -> tuple[Any, ...]:
    """Return a kernel as a tuple of its name and its parameters."""
    name = type(kernel).__name__
    if name == "Polynomial":
        return ("poly", kernel.degree, kernel.gamma, kernel.coef0)
    if name == "RBF":
        return ("rbf", kernel.gamma)
    if name == "Sigmoid":
        return ("sigmoid", kernel.gamma, kernel.coef0)
    if name in ("Sum", "Product"):
        first, *rest = map(described, kernel.parts)
        for part in rest:
            first = (name.lower(), first, part)
        return first
    if name == "Scaled":
        return ("scaled", kernel.factor, described(kernel.kernel))
    return (name.lower(),)


def _facts(model: Any, X: Any) -> dict[str, Any]:
    dual = model.dual_coef_
    facts = {
        "status": str(model.status_),
        "statuses": [str(status) for status in model.statuses_],
        "certificate": _certificate(model.certificate_),
        "certificates": [_certificate(each) for each in model.certificates_],
        "dual_coef": np.asarray(dual.toarray() if hasattr(dual, "toarray") else dual),
        "support": np.asarray(model.support_),
        "intercept": np.asarray(model.intercept_, dtype=float),
        "decision": np.asarray(model.decision_function(X)),
        "classes": np.asarray(model.classes_),
    }
    if hasattr(model, "kernel_"):
        facts["kernel"] = described(model.kernel_)
    with contextlib.suppress(AttributeError):
        coef = model.coef_
        facts["coef"] = np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef)
    return facts


def _certificate(certificate: Any) -> dict[str, Any]:
    fields = {
        name: getattr(certificate, name)
        for name in certificate.__dataclass_fields__
        if isinstance(getattr(certificate, name), float | int | str | bool | type(None))
    }
    return {
        **fields,
        "kind": type(certificate).__name__,
        "text": str(certificate),
        "violation": float(certificate.violation),
        "holds": {tol: bool(certificate.holds(tol)) for tol in TOLERANCES},
    }


def _proof(error: Any) -> Any:
    proof = getattr(error, "proof", None)
    return None if proof is None else {"multipliers": getattr(proof, "multipliers", None)}


def _copies(*arrays: Any) -> list[bytes]:
    parts = []
    for array in arrays:
        if hasattr(array, "indptr"):
            parts += [array.data.tobytes(), array.indices.tobytes(), array.indptr.tobytes()]
        elif array is not None:
            parts.append(np.asarray(array).tobytes())
    return parts


def _warm_up() -> None:
    """Compile what fits use, so that no fit is charged for it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    for loss in ("hinge", "squared_hinge"):
        for params in ({}, {"solver": "smo"}, {"solver": "active-set"}, {"kernel": "linear"}):
            fit("SVC", {"loss": loss, **params}, X, y)
        for solver in ("newton", "interior-point", "coordinate-descent"):
            fit("LinearSVC", {"loss": loss, "solver": solver}, X, y)
    fit("SVC", {"solver": "coordinate-ascent", "fit_intercept": False}, X, y)
    fit("SVC", {"solver": "qp"}, X, y)
    fit("NuSVC", {}, X, y)
    from scipy import sparse

    fit("SVC", {}, sparse.csr_matrix(X), y)
    fit("LinearSVC", {}, sparse.csr_matrix(X), y)
    separability(X, y)


def _serve() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints must not disturb the answers

    def reply(answer: Any) -> None:
        data = pickle.dumps(answer)
        replies.write(struct.pack("<q", len(data)) + data)
        replies.flush()

    _warm_up()
    reply({"ready": True})
    actions = {"fit": fit, "separability": separability, "certify": certify}
    while head := sys.stdin.buffer.read(8):
        action, request = pickle.loads(sys.stdin.buffer.read(struct.unpack("<q", head)[0]))
        try:
            reply(actions[action](**request))
        except Exception as error:
            reply({"error": type(error).__name__, "message": str(error), "proof": _proof(error)})


if __name__ == "__main__":
    _serve()
