"""Loads a framework once, which takes seconds, and runs a program in forks of this process.

Arguments: the program and the modules to load. A line of input is a list of runs, which run at the same time; a line of output
is the list of their exit codes.
"""

import gc
import importlib
import json
import os
import runpy
import sys
from typing import Any

program, *modules = sys.argv[1:]
for module in modules:
    importlib.import_module(module)
# Freeze the loaded objects. Otherwise the garbage collection of each fork would write to all of them, and so copy their memory.
gc.collect()
gc.freeze()


def forked(run: dict[str, Any]) -> int:
    """Returns the process in which the program runs. Does not return in that process."""
    process = os.fork()
    if process != 0:
        return process
    quiet = os.open(os.devnull, os.O_RDWR)
    errors = os.open(run["stderr"], os.O_WRONLY | os.O_CREAT, 0o600)
    for to, place in enumerate([quiet, quiet, errors]):
        os.dup2(place, to)
    os.environ.clear()
    os.environ.update(run["variables"])
    sys.argv = [program, *run["arguments"]]
    runpy.run_path(program, run_name="__main__")
    sys.exit()


for line in sys.stdin:
    processes = [forked(run) for run in json.loads(line)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    print(json.dumps(codes), flush=True)
