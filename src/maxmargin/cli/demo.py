"""``demo``: all algorithms on all pairs of the bundled fruits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options
from .comparison import print_comparison, record_of, warm
from .data import fit_features

if TYPE_CHECKING:
    from ..arrays import Labels, Matrix


@click.command()
@click.option("--pair", nargs=2, metavar="FRUIT FRUIT", help="Only this pair, such as apple pear.")
@click.option("--out", type=options.out_folder, default="maxmargin-demo", show_default=True,
              help="Folder of the figures.")  # fmt: skip
@click.option("--no-pictures", is_flag=True, help="Draw no figures.")
@options.as_json
def demo(pair: tuple[str, str] | None, out: str, no_pictures: bool, as_json: bool) -> None:
    """Train all algorithms on all pairs of the bundled fruits, with certificates and figures.

    \b
    Examples:
      maxmargin demo
      maxmargin demo --pair apple lemon --out pictures
      maxmargin demo --no-pictures --json > fruit.jsonl
    """
    with console.progress("loading"):
        from ..diagnostics.summary import linear_verdict

    pairs = _pairs(pair)
    for first, second in pairs:
        X, y = _two(first, second)
        verdict, rows = _verdict(X, y), list(_compared(X, y))
        if as_json:
            proof = {"pair": [first, second], "separability": str(verdict)}
            for row in rows:
                console.print_json(proof | row)
        else:
            title = f"{first} against {second}"
            print_comparison(rows, title, caption=linear_verdict(verdict), tested=False)
    if not no_pictures:
        for path in _pictures(pairs, Path(out)):
            click.echo(f"picture: {path}", err=as_json)


def _fruit() -> Any:
    from ..datasets import load_fruit

    return load_fruit()


def _pairs(pair: tuple[str, str] | None) -> list[tuple[str, str]]:
    names = [str(name) for name in _fruit().target_names]
    for name in pair or ():
        if name not in names:
            raise click.BadParameter(
                f"{name!r} is not one of {', '.join(names)}.", param_hint="pair"
            )
    if pair and pair[0] == pair[1]:
        raise click.BadParameter("name two different fruits.", param_hint="pair")
    if pair:
        first, second = sorted(pair, key=names.index)
        return [(first, second)]
    return list(combinations(names, 2))


def _two(first: str, second: str) -> tuple[Any, Any]:
    """Return the standardised rows of two fruits."""
    import numpy as np

    fruit = _fruit()
    y = fruit.target_names[fruit.target]
    chosen = np.isin(y, (first, second))
    X = fruit.data[chosen]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[chosen]


def _verdict(X: Matrix, y: Labels) -> Any:
    from ..solvers.separability import separability

    return separability(X, y, maximum_margin=True)


def _compared(X: Matrix, y: Labels) -> Iterator[dict[str, Any]]:
    """Yield the result of every algorithm; the table replaces warnings."""
    from ..estimators.registry import MACHINES, SEPARATING

    for name, variant in (SEPARATING | MACHINES).items():
        model = variant()
        warm(model, X, y)
        trained = fit_features(X, y, model)
        yield record_of(name, trained, X, y) | {"updates": int(trained.model.n_updates_)}


def _pictures(pairs: list[tuple[str, str]], folder: Path) -> Iterator[Path]:
    """Draw and save figures, and yield the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(pairs) > 1:
        yield _all_fruits(folder / "fruits.png")
        # A separable pair and one that is not.
        pairs = [("apple", "lemon"), ("apple", "orange")]
    for first, second in pairs:
        yield from _of_pair(first, second, folder)


def _all_fruits(path: Path) -> Path:
    from .. import plots
    from ..estimators.svc import SVC

    fruit = _fruit()
    columns = [1, 2]
    model = SVC(kernel="linear", C=10).fit(fruit.data[:, columns], fruit.target_names[fruit.target])
    names = [fruit.feature_names[k] for k in columns]
    display = plots.boundary(
        model, fruit.data[:, columns], fruit.target_names[fruit.target], feature_names=names
    )
    return display.save(path)


def _of_pair(first: str, second: str, folder: Path) -> Iterator[Path]:
    import numpy as np

    from .. import plots
    from ..estimators.linear_svc import LinearSVC
    from ..estimators.svc import SVC

    X, y = _two(first, second)
    names = [f"{name}, standardised" for name in _fruit().feature_names]
    verdict, stem = _verdict(X, y), f"{first}-{second}"
    machine = SVC(kernel="linear", C=np.inf if verdict.separable else 1.0).fit(X, y)
    yield plots.boundary(machine, X, y, feature_names=names).save(folder / f"{stem}-boundary.png")
    yield plots.separability(verdict, X, y).save(folder / f"{stem}-separability.png")
    yield plots.margins(machine, X, y).save(folder / f"{stem}-margins.png")
    solvers: tuple[Any, ...] = ("newton", "interior-point", "coordinate-descent")
    racing = {name: LinearSVC(loss="hinge", C=10, solver=name).fit(X, y) for name in solvers}
    yield plots.convergence(racing).save(folder / f"{stem}-convergence.png")


COMMANDS = [demo]
