"""Functions within exported Python functions, which read the values of a row."""

from prunus.data.calendar import LEVELS, Unit

__all__ = ["CALENDARS", "HELPERS", "READERS"]

READERS = {
    "number": "number",
    "boolean": "number",
    "datetime": "seconds",
    "duration": "seconds",
    "category": "text",
}
"""The function that reads a column of each kind."""
CALENDARS: dict[Unit, str] = {"weekday": "weekday_of", "month": "month_of", "hour": "hour_of"}
"""The function that reads each unit of a date."""
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
        "        return value.days * 86400 + value.seconds + value.microseconds / 1e6",
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
    "weekday_of": (
        "def weekday_of(seconds):",
        "    if seconds is None:",
        "        return None",
        f"    names = {list(LEVELS['weekday'])!r}",
        "    return names[(int(seconds // 1) // 86400 + 3) % 7]",
        "",
    ),
    "month_of": (
        "def month_of(seconds):  # by years that begin in March, so that leap days are their last days",
        "    if seconds is None:",
        "        return None",
        "    day = int(seconds // 1) // 86400 + 719468",
        "    century = (4 * day + 3) // 146097",
        "    day += century - century // 4",
        "    day -= 1461 * ((4 * day + 3) // 1461) // 4",
        "    names = [",
        *(f"        {', '.join(map(repr, LEVELS['month'][i : i + 6]))}," for i in (0, 6)),
        "    ]",
        "    return names[((5 * day + 2) // 153 + 2) % 12]",
        "",
    ),
    "hour_of": (
        "def hour_of(seconds):",
        "    return None if seconds is None else str(int(seconds // 1) // 3600 % 24)",
        "",
    ),
    "limited": (
        "def limited(value, low, high, missing, center=0.0, scale=1.0):",
        "    return missing if value is None else min(max((value - center) / scale, low), high)",
        "",
    ),
}
"""The lines of these functions, of those that read the calendar, and of the one that limits numbers."""
