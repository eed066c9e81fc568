"""measure.py FD COMMAND...: runs a command from a small process; writes its exit status and peak memory to FD as JSON.

A child's ru_maxrss starts at the size of the process it was forked from, so a test that has PyTorch loaded cannot
measure its own children; this launcher is a few megabytes.
"""

import json
import os
import resource
import sys

if os.environ.get("MEASURE_ADDRESS_SPACE"):
    limit = int(os.environ["MEASURE_ADDRESS_SPACE"])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))  # what outlives its test ends by itself
descriptor = int(sys.argv[1])
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, descriptor)])
_, status, usage = os.wait4(pid, 0)
report = {"returncode": os.waitstatus_to_exitcode(status), "peak_rss_bytes": usage.ru_maxrss * 1024}
os.write(descriptor, json.dumps(report).encode())
