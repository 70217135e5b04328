"""Functions within exported Python functions, which read the values of a row."""

__all__ = ["HELPERS", "READERS"]

READERS = {
    "number": "number",
    "boolean": "number",
    "datetime": "seconds",
    "duration": "seconds",
    "category": "text",
}
"""The function that reads a column of each kind."""
HELPERS = {
    "number": (
        "def number(name):  # None if it is missing",
        "    value = row.get(name)",
        "    return None if value is None or value != value else float(value)",
        "",
    ),
    "text": (
        "def text(name):  # 1 and 1.0 have the same text",
        "    value = row.get(name)",
        "    if value is None or value != value:",
        "        return None",
        "    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)",
        "",
    ),
    "seconds": (
        "def seconds(name):  # since 1970 in UTC, or of a duration",
        "    value = row.get(name)",
        "    if value is None or value != value:",
        "        return None",
        '    if hasattr(value, "total_seconds"):',
        "        return value.total_seconds()",
        '    if not hasattr(value, "toordinal") and not hasattr(value, "hour"):',
        "        return float(value)",
        '    total = (value.toordinal() - 719163) * 86400.0 if hasattr(value, "toordinal") else 0.0',
        '    if hasattr(value, "hour"):',
        "        total += value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6",
        "        offset = value.utcoffset()",
        "        total -= 0.0 if offset is None else offset.total_seconds()",
        "    return total",
        "",
    ),
    "limited": (
        "def limited(value, low, high, missing, center=0.0, scale=1.0):",
        "    return missing if value is None else min(max((value - center) / scale, low), high)",
        "",
    ),
}
"""The lines of these functions, and of the one that limits numbers."""
