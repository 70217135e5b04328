"""Trees as code of other languages: SQL statements, and Python functions without imports."""

from prunus.code.python import export_python
from prunus.code.sql import export_sql

__all__ = ["export_python", "export_sql"]
