"""`python -m decant`, and the script `decant`: the command line."""

from __future__ import annotations

import signal
import sys

from decant import _native


def main() -> int:
    # The interpreter's own handling would keep Ctrl-C and closed pipes from ending a command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return _native.run_command(["decant", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
