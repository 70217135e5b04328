"""For mkdocs: what griffe, which reads the docstrings, need not say."""

import logging


def _worth_saying(record: logging.LogRecord) -> bool:
    """Not that it does not follow scikit-learn's callbacks, which older versions lack, into scikit-learn."""
    return "sklearn.callback." not in record.getMessage()


def on_startup(**_options: object) -> None:
    """Before mkdocs counts warnings."""
    logging.getLogger("mkdocs.plugins.griffe").addFilter(_worth_saying)
