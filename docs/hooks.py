"""A hook for mkdocs that hides a warning of griffe, which reads the docstrings."""

import logging


def _worth_saying(record: logging.LogRecord) -> bool:
    """Whether to show a message; griffe need not warn that older versions of scikit-learn lack callbacks."""
    return "sklearn.callback." not in record.getMessage()


def on_startup(**_options: object) -> None:
    """Install the filter before mkdocs counts warnings."""
    logging.getLogger("mkdocs.plugins.griffe").addFilter(_worth_saying)
