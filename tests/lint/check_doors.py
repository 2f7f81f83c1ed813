#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The running core leaves its own code by few doors only: check_doors.py <running core> <other archives>..

Threads and waiting are core/base/sync, time is core/base/clock, chance is core/base/random; the database is the store
port and destinations are plugins. All else that an object of the core asks of the system is named below, with the
module that may: whoever replaces the doors has the core in hand, every wait and every switch of threads.
"""
import sys

import check_pure
import symbols
import tree

# Cannot wait, cannot tell the time, and gives the same answer each time.
HARMLESS = check_pure.MEMORY_AND_TEXT | set("""sprintf tolower strerror strftime strcat strncat __sprintf_chk __strncat_chk
    fprintf stderr __fprintf_chk strerror_r __xpg_strerror_r __popcountdi2""".split())
DIGESTS = set("CRYPTO_memcmp EVP_EncodeBlock EVP_sha256 HMAC".split())
DOORS = {
    "callback": DIGESTS,
    # The process: signals, limits, the service manager. Nothing of it decides about a task.
    "daemon": set("_exit pthread_sigmask sigaddset sigemptyset signal sigtimedwait getrlimit setrlimit".split()),
    "notify": set("close getenv sendto socket".split()),
    "realtime": set("prctl pthread_self pthread_setschedparam sched_setaffinity".split()),
    "engine": {"getpid"},  # for the eyes of operators
}


def judge(asked, own):
    """asked: (module, symbol) pairs; own: symbols that the project defines."""
    return [f"core/{module}.c calls {symbol}()" for module, symbol in sorted(set(asked))
            if symbol not in own and symbol not in HARMLESS and symbol not in DOORS.get(module, ())]


def main():
    asked = list(symbols.undefined(sys.argv[1]))
    own = {symbol for archive in sys.argv[1:] for _, symbol in symbols.defined(archive)}
    for planted in ("pthread_mutex_lock", "pthread_create", "nanosleep", "usleep", "poll", "clock_gettime", "time", "rand",
                    "getrandom", "fopen", "getenv", "mysql_query", "dlopen", "sem_wait", "futex"):
        assert judge([("scheduler", planted)], own), f"a planted call of {planted} was not caught"
    return tree.report(judge(asked, own), f"{len(asked)} calls go through the doors")


if __name__ == "__main__":
    tree.finish(main())
