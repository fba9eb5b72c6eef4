"""Options of every command: how much is printed, and a file of options."""

from __future__ import annotations

import click

from . import console

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


def add_common_options(command: click.Command) -> click.Command:
    """Add the options that commands share to one of them."""
    if command.name not in PLAIN:
        command.params.append(QUIET)
    if command.name in SAY_MORE:
        command.params.append(VERBOSE)
    return command
