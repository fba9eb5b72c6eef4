"""Options of every command: how much is printed, and a file of options."""

from __future__ import annotations

import click

from . import console
from .config import read_config

# Commands that print more on request, and those that have nothing to leave out.
SAY_MORE = ("fit", "tune", "evaluate")
PLAIN = ("lab", "completion", "man")


def _set_level(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value:
        return
    if ctx.meta.setdefault(console.LEVEL, param.name) != param.name:
        raise click.UsageError("pass either --quiet or --verbose, not both.")


QUIET = click.Option(
    ["-q", "--quiet"],
    is_flag=True,
    expose_value=False,
    callback=_set_level,
    help="Print results and errors only: no progress, summary, notes or warnings.",
)
VERBOSE = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    expose_value=False,
    callback=_set_level,
    help="Print tables by class also of more than 20 classes.",
)


CONFIG = click.Option(
    ["--config"],
    type=click.Path(),
    metavar="FILE",
    expose_value=False,
    is_eager=True,
    callback=read_config,
    help="Read options from a TOML file, such as C = 10; those of the command line come first.",
)
# What completion in a shell offers files for; readers say what is wrong with them.
FILES = click.Path(readable=False)


def add_common_options(command: click.Command) -> click.Command:
    """Add the options that commands share to one of them."""
    for param in command.params:
        if param.name in ("data", "model_file", "source"):
            param.type = FILES
    command.params.append(CONFIG)
    if command.name not in PLAIN:
        command.params.append(QUIET)
    if command.name in SAY_MORE:
        command.params.append(VERBOSE)
    return command
