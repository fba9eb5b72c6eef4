"""How a data file is written: options that all commands with DATA share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .console import note

if TYPE_CHECKING:
    from ..files import DataTable
    from ..files.dialect import Dates, Header

# Options of formats with columns that the workers of a cluster do not have.
ALONE = ("encoding", "decimal", "thousands", "missing", "sheet", "dates", "date_format", "text")
Command = TypeVar("Command", bound=Callable[..., Any])
HEADERS: dict[str, Any] = {"yes": True, "no": False, "auto": "auto"}


def _one_mark(ctx: Any, param: Any, value: str | None) -> str | None:
    """Return one character, or nothing."""
    if value is not None and len(value) > 1:
        raise click.BadParameter(f"must be one character, got {value!r}.")
    return value


def listed(ctx: Any, param: Any, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts that are given apart, or with commas between them."""
    return tuple(text.strip() for value in values for text in value.split(",") if text.strip())


# Examples for the help of every command, by what comes before the file and after it.
USES = {
    "predict": ("m.mm ", ""),
    "evaluate": ("m.mm ", ""),
    "verify": ("m.mm ", ""),
    "report": ("m.mm ", ""),
}
READING_EXAMPLES = (
    "bare.data{} --header no",
    "messwerte.csv{} --separator ';' --decimal , --thousands . --encoding latin-1",
    "survey.xlsx{} --sheet answers --missing 'n/a,-,#N/A'",
)
CHOOSING_EXAMPLES = (
    "visits.csv{} --dates parts --date-format %d/%m/%Y",
    "visits.csv{} --dates numbers --keep-index --impute",
    "reviews.csv{} --text review --drop id",
)


def reading_examples(command: Command) -> Command:
    """Add examples of files that are not plain CSV to the help of a command."""
    return _with_examples(command, READING_EXAMPLES)


def choosing_examples(command: Command) -> Command:
    """Add examples of columns that are not numbers or categories to the help of a command."""
    return _with_examples(command, CHOOSING_EXAMPLES)


def _with_examples(command: Command, examples: tuple[str, ...]) -> Command:
    name = command.__name__
    before, after = USES.get(name, ("", " --target y"))
    lines = [f"      maxmargin {name} {before}{example.format(after)}" for example in examples]
    lines = [line.replace("bare.data --target y", "bare.data --target -1") for line in lines]
    text = (command.__doc__ or "").rstrip()
    command.__doc__ = "\n".join([text, *lines]) + "\n    "
    return command


READING = (
    reading_examples,
    click.option(
        "--header",
        type=click.Choice(["yes", "no", "auto"]),
        default="auto",
        show_default=True,
        help="Whether the first line names the columns; auto: unless it has numbers where names "
        "should be.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text, such as latin-1 or cp1250; by default inferred.",
    ),
    click.option(
        "--decimal", metavar="CHAR", callback=_one_mark, help="Decimal mark, such as ','."
    ),
    click.option(
        "--thousands",
        metavar="CHAR",
        callback=_one_mark,
        help="Separator of thousands, such as '.' or ','.",
    ),
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT,…",
        callback=listed,
        help="Texts that mark missing values, besides NA, NaN, null, None, ? and nothing.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of an xlsx or ods file, or its number."),
)
CHOOSING = (
    choosing_examples,
    click.option(
        "--keep-index",
        is_flag=True,
        help="Keep columns that number or name the rows, such as 'Unnamed: 0' or id.",
    ),
    click.option(
        "--dates",
        type=click.Choice(["parts", "numbers"]),
        help="Columns of dates as year, month, day, weekday (hour, minute), or as days since 1970.",
    ),
    click.option("--date-format", metavar="FORMAT", help="Form of the dates, such as %d/%m/%Y."),
    click.option(
        "--text",
        multiple=True,
        metavar="COL",
        help="Column of free text, as tf-idf features of its words; may be repeated.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """Options that tell how a file is written."""

    format: str | None = None
    separator: str | None = None
    no_header: bool = False
    header: str = "auto"
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    first_index: int | None = None

    @property
    def has_header(self) -> Header:
        """Whether the first line names the columns."""
        if self.no_header and self.header == "yes":
            raise click.UsageError("pass either --header yes or --no-header, not both.")
        return False if self.no_header else HEADERS[self.header]

    def form(self) -> dict[str, Any]:
        """Return the options of `maxmargin.files.read` and `batches`, but for the first index."""
        return {
            "format": self.format,
            "separator": self.separator,
            "header": self.has_header,
            "encoding": self.encoding,
            "decimal": self.decimal,
            "thousands": self.thousands,
            "missing": self.missing,
            "sheet": self.sheet,
        }


@dataclass(frozen=True, kw_only=True)
class ColumnChoice:
    """Options that tell which columns are features, and what becomes of them."""

    drop: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    keep_index: bool = False
    dates: Dates | None = None
    date_format: str | None = None
    text: tuple[str, ...] = ()

    def choice(self) -> dict[str, Any]:
        """Return the options of `maxmargin.files.read`."""
        if self.date_format is not None and self.dates is None:
            raise click.UsageError("--date-format has no effect without --dates.")
        both = set(self.text) & set(self.words)
        if both:
            raise click.UsageError(f"--text {min(both)}: pass either --text or --words, not both.")
        return {
            "drop": self.drop,
            "words": self.words,
            "keep_index": self.keep_index,
            "dates": self.dates,
            "date_format": self.date_format,
            "text": self.text,
        }


def tell(table: DataTable) -> None:
    """Print what was found out about a file, and warn of columns that may be an index."""
    from ..files.table import cut

    for text in table.notes:
        note(f"note: {text}")
    for name in table.index_like:
        note(
            f"warning: column {cut(name)} has a different value in every row, as an index has: "
            f"pass --drop {name or 0} to leave it out, or --keep-index to keep it without this "
            "warning."
        )


def look_at_first(
    file: str, form: FileForm, wanted: tuple[str, ...], *, keep_index: bool
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the first of many files has a header, and its columns that are an index."""
    from ..files.dialect import TEXT, Dialect
    from ..files.index_columns import OF_PANDAS, dropped_note
    from ..files.reading import local
    from ..files.table import DOUBLE
    from ..files.tables import opened

    header = form.has_header
    with local(file, form.format) as (path, kind, source):
        if kind not in (*TEXT, "parquet"):
            return header is not False, ()
        how = Dialect(form.separator, header)
        with opened(path, kind, source, how, DOUBLE, wanted) as table:
            notes, names = list(table.notes), table.text.names
            header = table.text.header if kind in TEXT else header is not False
    index = [] if keep_index else [n for n in names if OF_PANDAS.fullmatch(n) and n not in wanted]
    notes += [f"{source}: {dropped_note(index)}"] if index else []
    for text in notes:
        note(f"note: {text}")
    return bool(header), tuple(index)
