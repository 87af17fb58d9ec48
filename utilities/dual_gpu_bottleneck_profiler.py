"""The same as `myxtts profile`."""

import sys

from myxtts.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["profile", *sys.argv[1:]]))
