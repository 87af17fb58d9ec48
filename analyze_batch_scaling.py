"""The same as `myxtts scaling`."""

import sys

from myxtts.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["scaling", *sys.argv[1:]]))
