"""``python -m prunus`` is the command ``prunus``."""

import sys

from prunus.cli import main

if __name__ == "__main__":
    sys.exit(main())
