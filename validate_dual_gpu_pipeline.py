"""The same as `myxtts validate`."""

import sys

from myxtts.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["validate", *sys.argv[1:]]))
