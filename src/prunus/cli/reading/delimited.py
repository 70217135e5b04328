"""Tables in delimited text: encoding, separator, header, decimal comma, and lines with missing fields."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from prunus.cli.extras import require
from prunus.cli.mistakes import Mistake

__all__ = ["TextOptions", "TextTable", "read_delimited"]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
SAMPLE = 1 << 16
"""Number of characters from which separators are guessed."""
SAMPLE_LINES = 50
"""Number of lines from which separators are guessed, at most."""
MISSING = ("?", "None", "none", "NONE", "NaT", "<NA>")
"""Texts for missing values, besides those that pyarrow knows, such as NA and the empty text."""
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_COMMA_NUMBER = re.compile(r"\s*[-+]?\d+,\d+\s*")
MOSTLY_NUMBERS = 0.9
"""In a column with a larger share of numbers than this, other text is probably a mistake."""


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
    """

    separator: str | None = None
    header: bool = True
    text_columns: frozenset[str] = frozenset()


@dataclass
class TextTable:
    """A table read from text.

    Parameters
    ----------
    frame : pandas.DataFrame
    first_line : int or None
        Number of the line with the first row; None if rows may span several lines.
    notes : list of str
        What was found out about the text, for the user.
    """

    frame: Any
    first_line: int | None
    notes: list[str] = field(default_factory=list)


def read_delimited(content: bytes, name: str, options: TextOptions) -> TextTable:
    r"""Read a table from delimited text.

    Parameters
    ----------
    content : bytes
        The text, in UTF-8, UTF-16 or Windows-1252.
    name : str
        Name of the file, for messages.
    options : TextOptions

    Returns
    -------
    TextTable

    Examples
    --------
    >>> read_delimited(b"a;b\n1,5;x\n", "table.csv", TextOptions()).frame.to_dict("list")
    {'a': [1.5], 'b': ['x']}
    """
    notes: list[str] = []
    text = _decode(content, name, notes)
    separator = options.separator or _find_separator(text)
    if len(separator) != 1:
        raise Mistake(f"--separator must be one character or 'tab', got {separator!r}")
    if separator != ",":
        notes.append(f"fields are separated by {SEPARATORS.get(separator, repr(separator))}")
    text = _normalized(text, separator)
    names, skipped = _names(text, separator, name, header=options.header)
    decimal = _find_decimal(text, separator)
    if decimal == ",":
        notes.append("numbers have decimal commas")
    frame = _parse(text, name, names, skipped, separator, decimal, options.text_columns)
    lines = text.count("\n") + (not text.endswith("\n")) - skipped
    table = TextTable(frame, skipped + 1 if lines == len(frame) else None, notes)
    _clean_text(table, options.text_columns)
    return table


def _decode(content: bytes, name: str, notes: list[str]) -> str:
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not wide and b"\0" in content[:SAMPLE]:
        raise Mistake(f"{name} is neither text nor Parquet or Feather; save the table as CSV")
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
        notes.append("the text is not UTF-8; it was read as Windows-1252")
    return text.replace("\r\n", "\n").replace("\r", "\n")


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


def _normalized(text: str, separator: str) -> str:
    """Rewrite text for pyarrow: one space between fields, and no space before a quote."""
    if separator == " ":
        return "\n".join(" ".join(line.split()) for line in text.split("\n"))
    if f'{separator} "' not in text:
        return text
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, lineterminator="\n")
    writer.writerows(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
    return written.getvalue()


def _rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over rows that are not empty: the line in which a row ends, and its fields."""
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    return ((reader.line_num, row) for row in reader if row)


def _names(text: str, separator: str, name: str, *, header: bool) -> tuple[list[str], int]:
    """Return the names of the columns, and the number of lines before the data."""
    line, first = next(_rows(text, separator))
    if not header:
        return [f"x{i}" for i in range(len(first))], line - 1
    names = [field.strip() or f"column {i + 1}" for i, field in enumerate(first)]
    if all(_NUMBER.fullmatch(field) for field in first):
        raise Mistake(
            f"{name}, line {line}: these are numbers, not names of columns; add a line with names, or use --no-header"
        )
    for i, column in enumerate(names):
        if column in names[:i]:
            raise Mistake(
                f"{name}, line {line}: fields {names.index(column) + 1} and {i + 1} are both named {column!r}; "
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


def _parse(
    text: str, name: str, names: list[str], skipped: int, separator: str, decimal: str, text_columns: frozenset[str]
) -> Any:
    arrow, arrow_csv = require("pyarrow", "tables"), require("pyarrow.csv", "tables")
    content = text.encode()
    convert = arrow_csv.ConvertOptions()
    convert = arrow_csv.ConvertOptions(
        null_values=[*convert.null_values, *MISSING],
        strings_can_be_null=True,
        decimal_point=decimal,
        column_types={column: arrow.string() for column in text_columns},
    )
    try:
        table = arrow_csv.read_csv(
            arrow.BufferReader(content),
            read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=skipped, block_size=_block_size(content)),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values='"' in text),
            convert_options=convert,
        )
    except arrow.ArrowInvalid as error:
        if "Empty CSV" in str(error):  # raised also if there are only names
            return require("pandas", "tables").DataFrame(columns=names)
        raise _ragged_line_mistake(error, text, separator, len(names), name) from error
    return table.to_pandas(date_as_object=False)


def _block_size(content: bytes) -> int:
    """Return the size of pyarrow's blocks, large enough for long lines: a line must fit into two blocks."""
    return min(max(len(content), 1 << 10), 1 << 26)


def _ragged_line_mistake(error: Exception, text: str, separator: str, expected: int, name: str) -> Mistake:
    """Make the error that names the first line with a wrong number of fields; pyarrow's numbers skip empty lines."""
    for line, row in _rows(text, separator):
        if len(row) != expected:
            fields = "field" if len(row) == 1 else "fields"
            return Mistake(
                f"{name}, line {line}: {len(row)} {fields} instead of {expected}; correct the line, or put a field "
                f"that contains the separator {separator!r} in double quotes"
            )
    return Mistake(f"{name}: {error}")


def _clean_text(table: TextTable, text_columns: frozenset[str]) -> None:
    """Strip spaces around text, turn columns of numbers into numbers, and note text among numbers."""
    pandas, frame = require("pandas", "tables"), table.frame
    for column in frame.columns:
        if not pandas.api.types.is_string_dtype(frame[column]) or frame[column].isna().all():
            continue
        stripped = frame[column].str.strip()
        stripped = stripped.mask(stripped.isin(["", *MISSING]))
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
