"""The encoder of tables, which turns what they hold into a float32 matrix, and tables in files beyond memory."""

from prunus.data.encoder import TableEncoder
from prunus.data.file_table import FileTable
from prunus.data.outputs import OutputColumn

__all__ = ["FileTable", "OutputColumn", "TableEncoder"]
