# SPDX-License-Identifier: MIT
"""What objects and shared objects define and ask for, by nm and objdump."""
import re
import subprocess

# Put in by compilers and sanitizers, not by people.
GENERATED = re.compile(r"^(_GLOBAL_OFFSET_TABLE_|_ITM_|__gmon|__stack_chk|__asan|__ubsan|__tsan|__sanitizer|__sancov|"
                       r"__gcov|__llvm|_{1,2}cxa|__isoc\d+_|__odr_asan|\.L|__sanitizer_cov)")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def undefined(archive):
    """(member without suffix, symbol) for every symbol that a member asks for."""
    for line in run("nm", "-A", "-u", "-P", str(archive)).splitlines():
        where, symbol = line.split()[:2]
        member = where.rstrip(":").split("[")[-1].rstrip("]")
        if not GENERATED.match(symbol):
            yield member.split(".")[0], symbol.split("@")[0]


def defined(archive):
    for line in run("nm", "-A", "--defined-only", "-g", "-P", str(archive)).splitlines():
        where, symbol = line.split()[:2]
        yield where.rstrip(":").split("[")[-1].rstrip("]").split(".")[0], symbol


def exported(shared_object):
    for line in run("nm", "-D", "--defined-only", "-P", str(shared_object)).splitlines():
        symbol, kind = line.split()[:2]
        if not GENERATED.match(symbol):
            yield symbol, kind


def writable(archive):
    """(member without suffix, symbol) of every variable that can be written: those in .data, .bss, .tdata, .tbss."""
    member = ""
    for line in run("objdump", "-t", str(archive)).splitlines():
        head = re.match(r"^(\S+\.o):\s+file format", line)
        if head:
            member = head.group(1).split(".")[0]
        fields = re.match(r"^[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+)\s+(\S+)$", line)
        if not fields or int(fields.group(2), 16) == 0 or GENERATED.match(fields.group(3)):
            continue
        section = fields.group(1)
        if section == "*COM*" or (re.match(r"^\.t?(data|bss)", section) and not section.startswith(".data.rel.ro")):
            yield member, re.sub(r"\.\d+$", "", fields.group(3))
