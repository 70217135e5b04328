"""The encoder of tables: it turns numbers, categories, booleans, dates and missing values into a float32 matrix."""

from prunus.data.encoder import TableEncoder
from prunus.data.outputs import OutputColumn

__all__ = ["OutputColumn", "TableEncoder"]
