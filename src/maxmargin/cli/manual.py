"""``completion`` and ``man``: scripts for shells, and pages for ``man``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script with which a SHELL completes commands, options and files.

    \b
    Examples:
      maxmargin completion bash > ~/.local/share/bash-completion/completions/maxmargin
      maxmargin completion zsh > ~/.zfunc/_maxmargin
      maxmargin completion fish > ~/.config/fish/completions/maxmargin.fish

    Begin a new shell afterwards. bash needs the package bash-completion; zsh needs the lines
    fpath+=~/.zfunc and autoload -Uz compinit && compinit in ~/.zshrc.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.get_current_context().find_root().command, {}, "maxmargin",
                  "_MAXMARGIN_COMPLETE")  # fmt: skip
    click.echo(script.source())


@click.command()
@click.argument("command", required=False, metavar="[COMMAND]")
@click.option("--out", type=click.Path(file_okay=False), metavar="FOLDER",
              help="Write the pages of maxmargin and of all commands into this folder.",
              )  # fmt: skip
def man(command: str | None, out: str | None) -> None:
    """Print the manual page of maxmargin or of a COMMAND, as man reads it.

    With --out all pages are written; those in ~/.local/share/man are found by man maxmargin and man
    maxmargin-fit.

    \b
    Examples:
      maxmargin man fit | man -l -
      maxmargin man --out ~/.local/share/man/man1
    """
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    if out is not None:
        if command is not None:
            raise click.UsageError("pass either COMMAND or --out, which writes all pages.")
        _write_all(root, Path(out))
        return
    if command is not None and command not in root.commands:
        known = ", ".join(root.commands)
        raise click.UsageError(f"COMMAND must be one of {known}, got {command!r}.")
    click.echo(page(root, command), nl=False)


def _write_all(root: click.Group, folder: Path) -> None:
    from ..persistence.writing import write_text

    folder.mkdir(parents=True, exist_ok=True)
    for name in (None, *root.commands):
        write_text(folder / f"{_title(name)}.1", iter([page(root, name)]))
    click.echo(f"{len(root.commands) + 1} pages: {folder}")


def _title(name: str | None) -> str:
    return "maxmargin" if name is None else f"maxmargin-{name}"


def page(root: click.Group, name: str | None) -> str:
    """Return the manual page of a command, or of all of them, in the language of man."""
    from .. import __version__

    command = root if name is None else root.commands[name]
    parent = click.Context(root, info_name="maxmargin")
    context = parent if name is None else click.Context(command, parent, name)
    usage = [*command.collect_usage_pieces(context)]
    title = _title(name)
    lines = [
        f'.TH "{title.upper()}" "1" "" "maxmargin {__version__}" "maxmargin"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(command.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f".B {_escaped(context.command_path)}",
        _escaped(" ".join(usage)),
        ".SH DESCRIPTION",
        *_paragraphs(cleandoc(command.help or "")),
        ".SH OPTIONS",
        *_options(command, context),
    ]
    if name is None:
        lines.append(".SH COMMANDS")
        for each in root.commands.values():
            lines += [".TP", f".B {_escaped(_title(each.name))}(1)",
                      _escaped(each.get_short_help_str(200))]  # fmt: skip
    else:
        lines += [".SH SEE ALSO", ".BR maxmargin (1)"]
    return "\n".join(lines) + "\n"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and isinstance(param, click.Option):
            yield from (".TP", f".B {_escaped(record[0])}", _escaped(" ".join(record[1].split())))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text; what follows \\b keeps its lines."""
    for paragraph in re.split(r"\n\n|\n(?=\x08)", text):
        if paragraph.startswith("\b"):
            lines = [line.strip() for line in paragraph.splitlines()[1:]]
            is_section = lines[0] in ("Example:", "Examples:")
            lines = lines[1:] if is_section else lines
            yield ".SH EXAMPLES" if is_section else ".PP"
            yield from (".nf", *map(_escaped, lines), ".fi")
        else:
            yield from (".PP", _escaped(" ".join(paragraph.split())))


def _escaped(text: str) -> str:
    """Return text without what the language of man reads as its own."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


COMMANDS = [completion, man]
