"""What a fit to a Dask collection took: rounds, passes, bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Round:
    """One wait for answers of all partitions.

    Parameters
    ----------
    name : str
        What was asked.
    reads : bool
        Whether all of X was read for it.
    bytes_sent, bytes_received : int
        Bytes that all tasks of it were sent, and that came back, besides the rows themselves.
    seconds : float
        From the first task to the answer.
    computing_seconds : float
        What its tasks took, divided by the threads of the workers.
    """

    name: str
    reads: bool
    bytes_sent: int
    bytes_received: int
    seconds: float
    computing_seconds: float


@dataclass
class FitReport:
    """Rounds, passes over the data, bytes moved and seconds of a fit to a Dask collection.

    It is the attribute ``fit_report_`` of an estimator that was fitted to a Dask array or frame.

    Parameters
    ----------
    scheduler : str
        Where tasks ran: the address of a scheduler, or "threads".
    n_workers, n_threads : int
        Workers when the fit began, and their threads.
    n_partitions : int
        Partitions of X that hold rows.
    n_samples : int
        Rows of X.
    streamed : bool
        Whether X was read anew in every pass, as the memory of the workers does not hold it.
    all_rounds : list of Round
        Every round, in order.

    Examples
    --------
    >>> from maxmargin.engines.dask.report import FitReport, Round
    >>> report = FitReport("threads", 1, 2, n_partitions=4, n_samples=100)
    >>> report.add(Round("check", True, 0, 800, 0.5, 0.3))
    >>> print(report)
    1 round, 1 pass over 100 rows in 4 partitions; 800 B moved, 800 B per round at most;
    0.30 s computing, 0.20 s waiting (threads: 1 worker, 2 threads)
    """

    scheduler: str
    n_workers: int
    n_threads: int
    n_partitions: int = 0
    n_samples: int = 0
    streamed: bool = False
    all_rounds: list[Round] = field(default_factory=list, repr=False)

    def add(self, entry: Round) -> None:
        """Count a round."""
        self.all_rounds.append(entry)

    @property
    def rounds(self) -> int:
        """How often the client waited for all partitions."""
        return len(self.all_rounds)

    @property
    def passes(self) -> int:
        """In how many rounds all of X was read."""
        return sum(each.reads for each in self.all_rounds)

    @property
    def bytes_moved(self) -> int:
        """Bytes sent and received in all rounds."""
        return sum(each.bytes_sent + each.bytes_received for each in self.all_rounds)

    @property
    def most_bytes(self) -> int:
        """Bytes of the largest round."""
        return max((e.bytes_sent + e.bytes_received for e in self.all_rounds), default=0)

    @property
    def computing_seconds(self) -> float:
        """Seconds that the tasks took, divided by the threads of the workers."""
        return sum(each.computing_seconds for each in self.all_rounds)

    @property
    def waiting_seconds(self) -> float:
        """Seconds of rounds in which threads were not at work: latencies, and uneven partitions."""
        return max(0.0, sum(each.seconds for each in self.all_rounds) - self.computing_seconds)

    def __str__(self) -> str:
        again = ", read anew in every pass" if self.streamed else ""
        return (
            f"{_count(self.rounds, 'round')}, {_count(self.passes, 'pass')} over "
            f"{self.n_samples:,} rows in {_count(self.n_partitions, 'partition')}{again}; "
            f"{_bytes(self.bytes_moved)} moved, {_bytes(self.most_bytes)} per round at most; "
            f"{self.computing_seconds:.2f} s computing, {self.waiting_seconds:.2f} s waiting "
            f"({self.scheduler}: {_count(self.n_workers, 'worker')}, "
            f"{_count(self.n_threads, 'thread')})"
        )


def _count(n: int, what: str) -> str:
    plural = "" if n == 1 else "es" if what.endswith("s") else "s"
    return f"{n} {what}{plural}"


def _bytes(n: int) -> str:
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000  # type: ignore[assignment]
    return f"{n:.3g} GB"
