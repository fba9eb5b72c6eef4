"""The group of commands, and the handling of their errors."""

from __future__ import annotations

import sys
from typing import Any

import click

from . import (  # fmt: skip
    comparison,
    conversion,
    demo,
    figures,
    inspection,
    manual,
    prediction,
    reporting,
    serving,
    training,
    tuning,
    verification,
    warmup,
)
from .common import add_common_options


class Commands(click.Group):
    """Commands in the order of their use; errors are one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print errors of the caller in one line, without a traceback."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # do not fail where the encoding lacks a character
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("Aborted!", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader of the output has closed the pipe
            sys.stderr.close()
            ctx.exit(1)
        except (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError) as error:
            raise click.ClickException(_in_one_line(error)) from error


def _in_one_line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {str(error) or 'use fewer rows, or --float32'}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _print_versions(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    for name, version in versions().items():
        click.echo(f"{name} {version}")
    ctx.exit()


def versions() -> dict[str, str]:
    """Return the versions of maxmargin and its dependencies."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from .. import __version__

    found = {"maxmargin": __version__, "python": platform.python_version()}
    for name in (
        "numpy", "scipy", "scikit-learn", "numba", "matplotlib", "safetensors",
        "polars", "fastexcel", "liac-arff", "skl2onnx", "onnxruntime", "piqp", "clarabel", "torch",
    ):  # fmt: skip
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of maxmargin and its dependencies, and exit.",
)
def main() -> None:
    """Separating hyperplanes with proofs: from the perceptron to the kernel SVM.

    \b
    Examples:
      maxmargin demo
      maxmargin fit fruit.csv --target fruit --model svc --C 10 --test 0.25 --out fruit.mm
      maxmargin tune fruit.csv --target fruit --test 0.25 --plot search.png --out fruit.mm
      maxmargin predict fruit.mm new.csv --out labels.csv
      maxmargin separable fruit.csv --target fruit
    """


for module in (
    demo, training, tuning, comparison, prediction, inspection, verification, figures, reporting,
    serving, conversion, warmup, manual,
):  # fmt: skip
    for command in module.COMMANDS:
        main.add_command(add_common_options(command))
