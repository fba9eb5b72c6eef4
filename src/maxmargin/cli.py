"""The command line: parse, call the public API, print."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import click

from . import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="maxmargin")
def main() -> None:
    """Separating hyperplanes with proofs: from the perceptron to the kernel SVM."""


@main.command()
@click.option("--pair", nargs=2, metavar="FRUIT FRUIT", help="Only this pair, such as apple pear.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON record a line.")
def demo(pair: tuple[str, str] | None, as_json: bool) -> None:
    """Train every separating algorithm on every pair of the bundled fruits.

    \b
    Examples:
      maxmargin demo
      maxmargin demo --pair apple lemon
      maxmargin demo --json > fruit.jsonl
    """
    for first, second, verdict, rows in _compare_fruits(pair):
        if as_json:
            for row in rows:
                proof = {"pair": [first, second], "separability": str(verdict)}
                click.echo(json.dumps(proof | row, ensure_ascii=False))
        else:
            _print_pair(first, second, verdict, rows)


def _compare_fruits(pair: tuple[str, str] | None) -> Iterator[tuple[str, str, Any, list[Any]]]:
    from .datasets import load_fruit
    from .gordan import separability

    fruit = load_fruit()
    names = [str(name) for name in fruit.target_names]
    for name in pair or ():
        if name not in names:
            raise click.BadParameter(
                f"{name!r} is not one of {', '.join(names)}.", param_hint="pair"
            )
    if pair and pair[0] == pair[1]:
        raise click.BadParameter("name two different fruits.", param_hint="pair")
    wanted = [tuple(sorted(pair, key=names.index))] if pair else list(combinations(names, 2))
    for first, second in wanted:
        chosen = [k for k, code in enumerate(fruit.target) if names[code] in (first, second)]
        X, y = fruit.data[chosen], fruit.target_names[fruit.target[chosen]]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        yield first, second, separability(X, y), [*_compare(X, y)]


def _compare(X: Any, y: Any) -> Iterator[dict[str, Any]]:
    from .estimators.registry import SEPARATING

    for name, make in SEPARATING.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table says what a warning would
            model = make().fit(X, y)
        certificate: Any = model.certificate_
        yield {
            "algorithm": name,
            "error": certificate.n_errors / certificate.n_samples,
            "updates": int(model.n_updates_),
            "margin": certificate.geometric_margin,
            "outcome": _outcome(certificate),
            "ended": str(model.status_),
        }


def _outcome(certificate: Any) -> str:
    if certificate.separates:
        return "separated"
    return "refuted" if certificate.refutes else "not separated"


def _print_pair(first: str, second: str, verdict: Any, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{first} against {second}", caption=str(verdict), title_justify="left")
    table.add_column("algorithm")
    for heading in ("error", "updates", "margin"):
        table.add_column(heading, justify="right")
    table.add_column("outcome")
    colours = {"separated": "green", "refuted": "yellow", "not separated": "red"}
    for row in rows:
        colour = colours[row["outcome"]]
        table.add_row(
            row["algorithm"],
            f"{100 * row['error']:.1f} %",
            str(row["updates"]),
            f"{row['margin']:.3f}",
            f"[{colour}]{row['outcome']}[/{colour}]",
        )
    Console().print(table)
