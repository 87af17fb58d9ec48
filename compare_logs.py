"""The same as `myxtts compare`."""

import sys

from myxtts.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["compare", *sys.argv[1:]]))
