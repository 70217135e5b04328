"""Tables in delimited text: separator, header, decimal comma, missing values, and lines with missing fields."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prunus.cli.errors import CliError, require
from prunus.cli.formats import SAMPLE

__all__ = ["TextOptions", "read_delimited"]

_QUOTED = r'"[^"]*(?:""[^"]*)*'
"""A field in quotes up to its closing quote."""
_SPACES = re.compile(rf'(?P<field>(?:^|(?<=[ \t])){_QUOTED}")|(?P<edge>^[ \t]+|[ \t]+$)|[ \t]+', re.MULTILINE)
"""Fields in quotes, spaces at the ends of lines, and spaces between fields."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
SAMPLE_LINES = 50
"""Number of lines from which separators are guessed, at most."""
MISSING = ("?", "None", "none", "NONE", "NaT", "<NA>")
"""Texts for missing values, besides those that pyarrow knows, such as NA and the empty text."""
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_COMMA_NUMBER = re.compile(r"\s*[-+]?\d+,\d+\s*")
MOSTLY_NUMBERS = 0.9
"""In a column with a larger share of numbers than this, other text is probably a mistake."""


def normalized(text: str, separator: str) -> str:
    r"""Rewrite text for pyarrow: lines end in line feeds, one space separates fields, and none is before a quote.

    Examples
    --------
    >>> normalized('a, "x  y\r\nz"\r\n', ",")
    'a,"x  y\r\nz"\n'
    """
    text = _with_line_feeds(text, separator)
    if separator == " ":
        return _SPACES.sub(lambda found: found["field"] or ("" if found["edge"] else " "), text)
    return _fields(separator).sub(r"\1\2", text) if ' "' in text else text


def check_quotes(text: str, separator: str, file: str) -> None:
    """Raise an error that names the line if a field in quotes does not end."""
    for found in _fields(separator).finditer(text) if '"' in text else ():
        if not found[2]:
            line = text.count("\n", 0, found.start()) + 1
            raise CliError(
                f"{file}, line {line}: a field in quotes must end with a quote, got none up to the end of the file; "
                "close it, or remove the quote"
            )


def _fields(separator: str) -> re.Pattern[str]:
    """Find fields in quotes, and the spaces before them: groups are the field and its closing quote, if any."""
    return re.compile(rf'(?:^|(?<={re.escape(separator)})) *({_QUOTED})("|\Z)', re.MULTILINE)


def _with_line_feeds(text: str, separator: str) -> str:
    if "\r" not in text:
        return text
    if '"' not in text:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    pattern = rf'((?:\A|(?<=[\r\n{re.escape(separator)}])) *{_QUOTED}")|\r\n?'
    return re.sub(pattern, lambda found: found[1] or "\n", text)


@dataclass(frozen=True)
class TextOptions:
    """Options for reading delimited text.

    Parameters
    ----------
    separator : str or None
        The character between fields; None finds it.
    header : bool
        Whether the first line has the names of the columns.
    text_columns : frozenset of str
        Columns that remain text, also if they hold numbers.
    missing : frozenset of str or None
        Texts for missing values; None are those that pyarrow knows, and `MISSING`.
    """

    separator: str | None = None
    header: bool = True
    text_columns: frozenset[str] = frozenset()
    missing: frozenset[str] | None = None


@dataclass
class TextTable:
    """A table read from text.

    Parameters
    ----------
    frame : pandas.DataFrame
    first_line : int or None
        Number of the line with the first row; None if rows may span several lines.
    written : callable
        Returns the fields of a column as they are written in the text.
    notes : list of str
        What was found out about the text, for the user.
    """

    frame: Any
    first_line: int | None
    written: Callable[[str], Any]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Layout:
    """A text, and how its fields are arranged."""

    text: str
    file: str
    separator: str
    names: list[str]
    skipped: int
    """Number of lines before the data."""

    @property
    def data(self) -> str:
        """The lines of the data. Only line feeds end lines here: pyarrow would count carriage returns in quotes."""
        start = 0
        for _ in range(self.skipped):
            start = self.text.find("\n", start) + 1 or len(self.text)
        return self.text[start:]


def read_delimited(text: str, file: str, options: TextOptions) -> TextTable:
    r"""Read a table from delimited text.

    Parameters
    ----------
    text : str
        The text; its lines may end in line feeds, carriage returns or both.
    file : str
        Name of the file, for messages.
    options : TextOptions

    Returns
    -------
    TextTable

    Examples
    --------
    >>> table = read_delimited("a;b\n01,50;x\n", "table.csv", TextOptions())
    >>> table.frame.to_dict("list"), table.written("a").tolist()
    ({'a': [1.5], 'b': ['x']}, ['01,50'])
    """
    notes: list[str] = []
    separator = options.separator or _find_separator(text[: SAMPLE + 1].replace("\r\n", "\n").replace("\r", "\n"))
    if len(separator) != 1 or separator in '"\r\n':
        raise CliError(f"--separator must be one character or 'tab', but no quote, got {separator!r}")
    if separator != ",":
        notes.append(f"fields are separated by {SEPARATORS.get(separator, repr(separator))}")
    text = normalized(text, separator)
    check_quotes(text, separator, file)
    layout = _Layout(text, file, separator, *_names(text, separator, file, header=options.header))
    decimal = _find_decimal(text, separator)
    if decimal == ",":
        notes.append("numbers have decimal commas")
    missing = _usual_missing() if options.missing is None else options.missing
    frame = _parse(layout, decimal, options.text_columns, missing)
    if options.missing is not None:
        _restore_nan(frame, layout, missing)
    lines = text.count("\n") + (not text.endswith("\n")) - layout.skipped
    first_line = layout.skipped + 1 if lines == len(frame) else None
    table = TextTable(frame, first_line, partial(_written, layout), notes)
    _clean_text(table, options.text_columns, missing)
    return table


def _sample(text: str) -> list[str]:
    """Return the first lines that are not empty, without a last line that is cut off."""
    lines = text[:SAMPLE].split("\n")
    if len(text) > SAMPLE and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line.strip()][:SAMPLE_LINES]


def _find_separator(text: str) -> str:
    """Find the separator by which most lines have the same number of fields as the first, and more than one."""
    lines = _sample(text)
    found: list[tuple[float, int, str]] = []
    for separator in (",", ";", "\t", "|"):
        counts = [len(row) for row in csv.reader(lines, delimiter=separator)]
        if counts and counts[0] > 1:
            found.append((counts.count(counts[0]) / len(counts), counts[0], separator))
    if found:
        return max(found, key=lambda entry: entry[:2])[2]
    widths = {len(line.split()) for line in lines}
    return " " if len(widths) == 1 and widths != {1} and len(lines) > 1 and '"' not in text[:SAMPLE] else ","


def _rows(text: str, separator: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over rows that are not empty: the line in which a row ends, and its fields."""
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise CliError(
            f"{file}, line {reader.line_num}: a field must have at most {csv.field_size_limit():,} characters here, "
            "got more; shorten it, or correct a quote that is not closed"
        ) from error


def _names(text: str, separator: str, file: str, *, header: bool) -> tuple[list[str], int]:
    """Return the names of the columns, and the number of lines before the data."""
    line, first = next(_rows(text, separator, file))
    if not header:
        return [f"x{i}" for i in range(len(first))], len(text) - len(text.lstrip("\n"))
    names = [field.strip() or f"column {i + 1}" for i, field in enumerate(first)]
    if all(_NUMBER.fullmatch(field) for field in first):
        raise CliError(
            f"{file}, line {line}: these are numbers, not names of columns; add a line with names, or use --no-header"
        )
    for i, column in enumerate(names):
        if column in names[:i]:
            raise CliError(
                f"{file}, line {line}: fields {names.index(column) + 1} and {i + 1} are both named {column!r}; "
                "rename one"
            )
    return names, line


def _find_decimal(text: str, separator: str) -> str:
    if separator == ",":
        return "."
    fields = [field for row in csv.reader(_sample(text)[1:], delimiter=separator) for field in row]
    commas = sum(_COMMA_NUMBER.fullmatch(field) is not None for field in fields)
    points = sum("." in field and _NUMBER.fullmatch(field) is not None for field in fields)
    return "," if commas > points else "."


def _usual_missing() -> frozenset[str]:
    return frozenset([*require("pyarrow.csv", "tables").ConvertOptions().null_values, *MISSING])


def _parse(layout: _Layout, decimal: str, text_columns: frozenset[str], missing: frozenset[str]) -> Any:
    arrow, arrow_csv = require("pyarrow", "tables"), require("pyarrow.csv", "tables")
    convert = arrow_csv.ConvertOptions(
        null_values=sorted(missing),
        strings_can_be_null=True,
        decimal_point=decimal,
        column_types={column: arrow.string() for column in text_columns},
    )
    return _read_csv(layout, convert)


def _restore_nan(frame: Any, layout: _Layout, missing: frozenset[str]) -> None:
    """Make columns of numbers text again if they have a nan that is not a text for missing values."""
    for column in frame.select_dtypes("float").columns:
        unknown = frame[column].isna()
        if unknown.any():
            texts = _written(layout, column)
            if not texts[unknown].str.strip().isin(missing).all():
                frame[column] = texts.astype("str")


def _written(layout: _Layout, column: str) -> Any:
    """Return the fields of a column as they are written, without quotes around them."""
    arrow, arrow_csv = require("pyarrow", "tables"), require("pyarrow.csv", "tables")
    convert = arrow_csv.ConvertOptions(
        include_columns=[column], column_types={column: arrow.string()}, strings_can_be_null=False
    )
    return _read_csv(layout, convert)[column].astype(object)


def _read_csv(layout: _Layout, convert: Any) -> Any:
    arrow, arrow_csv = require("pyarrow", "tables"), require("pyarrow.csv", "tables")
    content = layout.data.encode()
    read = arrow_csv.ReadOptions(column_names=layout.names, block_size=_block_size(content))
    parse = arrow_csv.ParseOptions(delimiter=layout.separator, newlines_in_values='"' in layout.text)
    try:
        table = arrow_csv.read_csv(
            arrow.BufferReader(content), read_options=read, parse_options=parse, convert_options=convert
        )
    except arrow.ArrowInvalid as error:
        if "Empty CSV" in str(error):  # raised also if there are only names
            return require("pandas", "tables").DataFrame(columns=layout.names)
        raise _ragged_line_error(error, layout) from error
    return table.to_pandas(date_as_object=False)


def _block_size(content: bytes) -> int:
    """Return the size of pyarrow's blocks, large enough for long lines: a line must fit into two blocks."""
    return min(max(len(content), 1 << 10), 1 << 26)


def _ragged_line_error(error: Exception, layout: _Layout) -> CliError:
    """Make the error that names the first line with a wrong number of fields; pyarrow's numbers skip empty lines."""
    expected = len(layout.names)
    for line, row in _rows(layout.text, layout.separator, layout.file):
        if len(row) != expected:
            fields = "field" if len(row) == 1 else "fields"
            return CliError(
                f"{layout.file}, line {line}: {len(row)} {fields} instead of {expected}; correct the line, or put a "
                f"field that contains the separator {layout.separator!r} in double quotes"
            )
    return CliError(f"{layout.file}: {error}")


def _clean_text(table: TextTable, text_columns: frozenset[str], missing: frozenset[str]) -> None:
    """Strip spaces around text, turn columns of numbers into numbers, and note text among numbers."""
    pandas, frame = require("pandas", "tables"), table.frame
    for column in frame.columns:
        if not pandas.api.types.is_string_dtype(frame[column]) or frame[column].isna().all():
            continue
        stripped = frame[column].str.strip()
        stripped = stripped.mask(stripped.isin(missing))
        frame[column] = stripped
        if column in text_columns:
            continue
        numbers = pandas.to_numeric(stripped, errors="coerce")
        given = stripped.notna()
        if numbers[given].notna().all():
            frame[column] = numbers
        elif numbers[given].notna().mean() > MOSTLY_NUMBERS:
            row = int((given & numbers.isna()).to_numpy().argmax())
            place = f"row {row + 1}" if table.first_line is None else f"line {table.first_line + row}"
            table.notes.append(f"column {column!r} is read as text: {stripped.iloc[row]!r} in {place} is not a number")
