"""Table to float32 matrix: numbers, categories, booleans, dates and missing values; knows nothing of trees."""

from prunus.data.encoder import TableEncoder
from prunus.data.outputs import OutputColumn

__all__ = ["OutputColumn", "TableEncoder"]
