#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pure core calls nothing but itself and the C library's own arithmetic on memory: check_pure.py <archive>..

What includes only suggest, the undefined symbols of the objects prove: no thread, file, clock, dlopen, environment,
randomness or database. A function that is missing in the list below is either pure, and is added, or has no business
there.
"""
import sys

import check_includes
import symbols
import tree

MEMORY_AND_TEXT = set("""memcpy memmove memset memcmp memchr memrchr memmem strlen strnlen strcmp strncmp strcasecmp
    strncasecmp strchr strrchr strstr strcasestr strspn strcspn strpbrk strcpy strncpy strdup strndup strtol strtoul
    strtoll strtoull strtod strsep strtok_r snprintf vsnprintf sscanf malloc calloc realloc reallocarray free qsort
    bsearch explicit_bzero abort __errno_location __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc tolower toupper
    pow floor ceil round lround llround fmod isnan isinf ldexp timegm gmtime_r mempcpy stpcpy rawmemchr
    __memcpy_chk __memmove_chk __memset_chk __strcpy_chk __strncpy_chk __snprintf_chk __vsnprintf_chk __stpcpy_chk
    __strcat_chk""".split())
BASE = ("err_", "arena_", "utf8_", "hash_")  # core/base: text of failures, memory that is freed at once, characters, digests of texts
# A look-up in the immutable configuration, which is data to the rules; the file it stands in reads files.
LOOK_UPS = {("rules", "config_route"), ("rules", "config_answers_on"), ("rules", "config_answer_to")}
# Checks of the programmer's own rows at their first use may say what is wrong before abort().
LAST_WORDS = {("options", "fprintf"), ("options", "stderr"), ("options", "__fprintf_chk")}


def judge(asked, own):
    """asked: (module, symbol) pairs; own: symbols that pure modules define."""
    return [f"core/{module}.c calls {symbol}()" for module, symbol in sorted(set(asked))
            if module in check_includes.PURE and symbol not in own and symbol not in MEMORY_AND_TEXT
            and not symbol.startswith(BASE) and (module, symbol) not in LAST_WORDS | LOOK_UPS]


def main():
    asked = [pair for archive in sys.argv[1:] for pair in symbols.undefined(archive)]
    own = {symbol for archive in sys.argv[1:] for module, symbol in symbols.defined(archive)
           if module in check_includes.PURE}
    for planted in ("pthread_mutex_lock", "fopen", "open", "clock_gettime", "time", "dlopen", "mysql_query", "getenv",
                    "rand", "log_write", "clock_mono_us", "getrandom"):
        assert judge([("retry", planted)], own), f"a planted call of {planted} was not caught"
    modules = {module for archive in sys.argv[1:] for module, _ in symbols.defined(archive)}
    wrong = judge(asked, own)
    wrong += [f"core/{name}.c is in none of the archives given" for name in check_includes.PURE if name not in modules]
    return tree.report(wrong, f"{len(check_includes.PURE)} modules are pure")


if __name__ == "__main__":
    tree.finish(main())
