"""The encoder of tables, which turns what they hold into a float32 matrix, and tables in files beyond memory."""

from prunus.data.encoder import TableEncoder
from prunus.data.file_table import FileTable
from prunus.data.outputs import OutputColumn
from prunus.data.source import Source, open_source

__all__ = ["FileTable", "OutputColumn", "Source", "TableEncoder", "open_source"]
