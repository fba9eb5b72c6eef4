"""``--config`` and ``--save-config``: the options of a command in a TOML file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import click

# Options that are not in such files, and those that are written although they have a default.
LEFT_OUT = ("config", "save_config", "help")
ALWAYS = ("name", "seed")


def read_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Take the options of a file as defaults: the command line comes first."""
    if path is None or ctx.resilient_parsing:
        return
    import tomllib

    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise click.UsageError(f"--config {path}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--config {path}: not valid TOML: {error}") from None
    ctx.default_map = _defaults(ctx, _of_command(ctx, found, path), path)


def _of_command(ctx: click.Context, found: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options at the top of a file, and those in the table of this command."""
    group = ctx.parent.command if ctx.parent is not None else None
    commands = group.commands if isinstance(group, click.Group) else {}
    own = {key: value for key, value in found.items() if not isinstance(value, dict)}
    for key, table in found.items():
        if isinstance(table, dict) and key not in commands:
            raise click.UsageError(
                f"--config {path}: there is no command {key!r}{_nearest(key, commands)}."
            )
    return own | dict(found.get(ctx.command.name or "", {}))


def _defaults(ctx: click.Context, found: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the values by the names of the parameters; raise for a key that is no option."""
    params = {key_of(p): p for p in ctx.command.params if p.name not in LEFT_OUT}
    defaults = {}
    for key, value in found.items():
        param = params.get(key) or params.get(key.replace("_", "-"))
        if param is None:
            raise click.UsageError(
                f"--config {path}: {ctx.command.name} has no option {key!r}{_nearest(key, params)}."
            )
        defaults[param.name or ""] = _as_typed(param, value, f"--config {path}: {key}")
    return defaults


def _nearest(key: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    by_case = {name.lower(): name for name in known}
    close = get_close_matches(key.lower().replace("_", "-"), by_case, 1, 0.4)
    return f"; the nearest is {by_case[close[0]]!r}" if close else ""


def _as_typed(param: click.Parameter, value: Any, where: str) -> Any:
    """Return a value as it would be typed on the command line."""
    takes_several = param.nargs != 1 or getattr(param, "multiple", False)
    if isinstance(value, list):
        if not takes_several:
            raise click.UsageError(f"{where} must be one value, got a list.")
        return tuple(str(each) for each in value)
    if isinstance(value, bool) != bool(getattr(param, "is_flag", False)):
        wanted = "true or false" if not isinstance(value, bool) else "a value, not true or false"
        raise click.UsageError(f"{where} must be {wanted}, got {json.dumps(value, default=str)}.")
    if isinstance(value, bool):
        return value
    return (str(value),) if takes_several else str(value)


def key_of(param: click.Parameter) -> str:
    """Return what an option or argument is called in a file."""
    if isinstance(param, click.Argument):
        return (param.name or "").replace("_", "-")
    return max(param.opts, key=len).lstrip("-")


def save_config(path: str | None) -> None:
    """Write the options of this run, where a file is asked for, so that --config repeats it."""
    if path is None:
        return
    from ..persistence.writing import write_text

    context = click.get_current_context()
    lines = [f"# maxmargin {context.command.name} --config {path}\n"]
    for param in context.command.params:
        name = param.name or ""
        source = context.get_parameter_source(name)
        is_given = source is not None and source < click.core.ParameterSource.DEFAULT
        is_given = is_given or source is click.core.ParameterSource.DEFAULT_MAP
        value = context.params.get(name, param.expose_value is False or None)
        if name not in LEFT_OUT and (is_given or name in ALWAYS) and value is not None:
            lines.append(f"{key_of(param)} = {_toml(value)}\n")
    write_text(path, iter(lines))


def _toml(value: Any) -> str:
    r"""Return a value as TOML.

    >>> _toml(True), _toml(float("inf")), _toml(["a", 'b"']), _toml({"pos": 5.0})
    ('true', 'inf', '["a", "b\\""]', '"pos=5.0"')
    """
    if isinstance(value, dict):  # --class-weight
        return _toml(",".join(f"{label}={weight!r}" for label, weight in value.items()))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    # DEL is the only character that TOML does not take where JSON does.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
