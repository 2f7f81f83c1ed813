#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dependency rules of the house, judged by #include lines. See docs/ARCHITECTURE.md.

Each rule names the files it is for and all that they may include; the first rule that fits a file holds. A system
header that no list knows is a violation too: whoever brings in a new one decides here where it may be used. Before the
tree is judged, one planted violation per rule must be caught.
"""
import re
from fnmatch import fnmatchcase

import tree

C_STANDARD = set("""assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h
    setjmp.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h
    string.h tgmath.h threads.h time.h uchar.h wchar.h wctype.h""".split())
SYSTEM = C_STANDARD | set("""arpa/inet.h dirent.h dlfcn.h elf.h fcntl.h fnmatch.h getopt.h glob.h grp.h libgen.h link.h
    linux/sock_diag.h linux/tcp.h net/if.h netdb.h netinet/in.h netinet/tcp.h poll.h pthread.h pwd.h sched.h search.h spawn.h
    strings.h sys/auxv.h sys/epoll.h sys/eventfd.h sys/file.h sys/inotify.h sys/ioctl.h sys/mman.h sys/prctl.h sys/queue.h
    sys/random.h sys/resource.h sys/select.h sys/socket.h sys/stat.h sys/statvfs.h sys/syscall.h sys/time.h sys/timerfd.h sys/types.h
    sys/uio.h sys/un.h sys/utsname.h sys/wait.h sys/xattr.h sysexits.h syslog.h termios.h unistd.h""".split())
VENDORS = {
    "mysql": ["mysql.h", "mysql/*", "mariadb/*", "mariadb_*", "errmsg.h", "mysqld_error.h"],
    "rdkafka": ["librdkafka/*"],
    "rabbitmq": ["amqp.h", "amqp_*", "rabbitmq-c/*"],
    "curl": ["curl/*"],
    "microhttpd": ["microhttpd.h"],
    "jansson": ["jansson.h"],
    "yaml": ["yaml.h"],
    "openssl": ["openssl/*"],
    "smartcols": ["libsmartcols.h", "libsmartcols/*"],
    "uthash": ["uthash.h", "utlist.h", "utarray.h"],
    "valgrind": ["valgrind/*"],
}

# Pure rules: no threads, files, clock, dlopen or database; they run under a simulated clock. check_pure.py judges the
# same modules by the functions they call.
PURE = ["admin_url", "callback_id", "config_rows", "headers", "health", "held_claim", "json_salvage", "json_scan", "mask", "mask_escape", "mask_words", "option_parse", "option_print",
        "options", "plugin_check", "readiness", "record", "refusals", "result_origin", "retry", "rules", "task_state", "task_time", "template", "url_login", "yaml_node"]
PURE_FILES = [f"core/{name}.[ch]" for name in PURE]
# Declarations that the pure core may see, without the code behind them.
PURE_MAY_SEE = ["core/base/attr.h", "core/base/err.h", "core/base/arena.h", "core/base/utf8.h", "core/base/hash.h", "core/task_state.def", "core/task.h",
                "core/store.h", "core/config.h", "core/yaml.h"] + [f"core/{name}.h" for name in PURE]
PURE_SYSTEM = C_STANDARD - {"threads.h", "signal.h", "setjmp.h", "locale.h", "time.h"} | {"strings.h"}

BASE = "core/base/*"
PORTS = ["core/store.h", "core/operator.h", "core/task.h", "core/task_state.h", "core/record.h", "core/config.h",
         "core/retry.h"]
# The wiring: the only files that see the database's side and the running core together.
WIRING = ["cli/run.c", "cli/main.c"]
# Commands that open the database themselves. They see its side, and never the running core.
OPENS_DATABASE = ["cli/cli.c", "cli/config.c", "cli/doctor.c", "cli/migrate.c", "cli/task_result.c"]
COMMANDS = ["cli/*", BASE, *PORTS, "core/admin_url.h", "core/headers.h", "core/options.h", "core/mask.h", "core/modules.h", "core/config_show.h",
            "core/result_origin.h", "core/rules.h", "core/task_time.h", "core/template.h", "core/plugin_check.h", "admin/admin.h"]


class Rule:
    def __init__(self, name, where, quoted, system=None, vendors=(), api=True):
        self.name, self.where, self.quoted = name, where, quoted
        self.system = SYSTEM if system is None else system
        self.vendors, self.api = vendors, api

    def covers(self, path):
        return any(fnmatchcase(path, pattern) for pattern in self.where)

    def judge(self, path, form, header):
        """Why this file may not include this header, or None."""
        if form == '"':
            allowed = any(fnmatchcase(header, pattern.replace("{folder}", path.rsplit("/", 1)[0])) for pattern in self.quoted)
            return None if allowed else f'"{header}" is not for {self.name}'
        if header.startswith("duebox/"):
            return None if self.api else f"<{header}> is not for {self.name}"
        vendor = next((v for v, patterns in VENDORS.items() if any(fnmatchcase(header, p) for p in patterns)), None)
        if vendor:
            return None if vendor in self.vendors else f"<{header}> ({vendor}) is not for {self.name}"
        if header in self.system:
            return None
        known = "is not for" if header in SYSTEM else "is in no list of check_includes.py; not for"
        return f"<{header}> {known} {self.name}"


RULES = [
    Rule("the public headers", ["include/duebox/*"], [], system=C_STANDARD),
    Rule("the base layer", [BASE], [BASE], api=False),
    Rule("the pure core", PURE_FILES, PURE_MAY_SEE, system=PURE_SYSTEM, vendors=("uthash",)),
    Rule("the core", ["core/*"], ["core/*"], vendors=("jansson", "yaml", "openssl", "uthash")),
    Rule("the store", ["outbox/*"], ["outbox/*", BASE, "core/mask.h", "core/refusals.h", "query.h", "schema_text.h", "schema_repair.h", "opsql.h", *PORTS],
         vendors=("mysql", "openssl", "uthash", "jansson")),
    Rule("the Kafka plugin", ["plugins/kafka/*"], ["kafka_*.h"], vendors=("rdkafka",)),
    Rule("the AMQP plugin", ["plugins/amqp/*"], ["amqp_*.h", "tls_limit.h"], vendors=("rabbitmq", "openssl")),
    Rule("the HTTP plugin", ["plugins/http/*"], ["http_*.h", "tls_limit.h"], vendors=("curl", "openssl")),
    Rule("what plugins with OpenSSL share", ["plugins/tls/*"], ["tls_*.h"], vendors=("openssl",)),
    Rule("the admin listener", ["admin/*"], ["admin/*", BASE, "core/engine.h", "core/operator.h", "core/metrics.h", "core/config.h",
                                             "core/store.h", "core/task_state.h", "core/task_time.h", "core/record.h",
                                             "core/callback_id.h", "core/result_origin.h", "web.h"],
         vendors=("microhttpd", "jansson", "openssl")),
    Rule("the wiring", WIRING, ["cli/*", "core/*", "admin/*", "outbox/*"], vendors=("jansson",)),
    Rule("commands that open the database", OPENS_DATABASE, [*COMMANDS, "outbox/*"],
         vendors=("jansson", "smartcols", "openssl")),
    Rule("the other commands", ["cli/*"], COMMANDS, vendors=("jansson", "smartcols", "curl", "openssl")),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def check(contents):
    """contents: path -> text. Returns the violations."""
    wrong = []
    for path, text in contents.items():
        rule = next((rule for rule in RULES if rule.covers(path)), None)
        if rule is None:
            wrong.append(f"{path}: no rule of check_includes.py covers it")
            continue
        for match in INCLUDE.finditer(COMMENT.sub(lambda c: "\n" * c.group().count("\n"), text)):
            reason = rule.judge(path, match.group(1), match.group(2))
            line = text.count("\n", 0, match.start(2)) + 1
            if reason:
                wrong.append(f"{path}:{line}: {reason}")
    return wrong


PLANTED = [
    ("include/duebox/task.h", "<sys/types.h>"), ("include/duebox/task.h", '"core/task.h"'),
    ("core/base/err.c", '"core/task.h"'), ("core/base/err.c", "<jansson.h>"), ("core/base/err.c", "<duebox/task.h>"),
    ("core/retry.c", "<pthread.h>"), ("core/retry.c", "<time.h>"), ("core/retry.c", '"core/base/clock.h"'),
    ("core/rules.c", '"core/scheduler.h"'), ("core/record.c", "<fcntl.h>"), ("core/plugin_check.c", "<dlfcn.h>"),
    ("core/template.c", "<mysql.h>"), ("core/scheduler.c", "<mysql.h>"), ("core/driver.c", "<librdkafka/rdkafka.h>"),
    ("core/driver.c", '"outbox/outbox.h"'), ("core/engine.c", '"admin/admin.h"'), ("core/host.c", '"cli/cli.h"'),
    ("core/host.c", "<curl/curl.h>"), ("core/host.c", "<sys/sysinfo.h>"),
    ("outbox/read.c", '"core/engine.h"'), ("outbox/read.c", '"core/scheduler.h"'), ("outbox/read.c", "<amqp.h>"),
    ("outbox/read.c", '"kafka_common.h"'), ("outbox/read.c", '"cli/cli.h"'),
    ("plugins/kafka/kafka_sink.c", '"core/task.h"'), ("plugins/kafka/kafka_sink.c", '"core/base/err.h"'),
    ("plugins/kafka/kafka_sink.c", "<amqp.h>"), ("plugins/amqp/amqp_sink.c", "<curl/curl.h>"),
    ("plugins/amqp/amqp_sink.c", '"http_text.h"'), ("plugins/http/http_sink.c", "<mysql.h>"),
    ("plugins/http/http_sink.c", "<jansson.h>"), ("plugins/tls/tls_limit.c", "<curl/curl.h>"),
    ("plugins/kafka/kafka_sink.c", '"tls_limit.h"'), ("plugins/smtp/smtp_sink.c", "<stdio.h>"),
    ("admin/status.c", '"outbox/outbox.h"'), ("admin/status.c", '"core/scheduler.h"'), ("admin/status.c", "<mysql.h>"),
    ("cli/task.c", '"outbox/outbox.h"'), ("cli/task.c", '"core/engine.h"'), ("cli/task.c", "<mysql.h>"),
    ("cli/cli.c", '"core/engine.h"'), ("cli/migrate.c", '"core/daemon.h"'), ("cli/doctor.c", "<mysql.h>"), ("cli/run.c", "<mysql.h>"),
]


def self_test():
    missed = [f"{path} with {header}" for path, header in PLANTED if not check({path: f"/* x */\n#  include {header}\n"})]
    assert not missed, f"planted violations that were not caught: {missed}"
    assert not check({"core/host.c": '/*\n#include <mysql.h>\n*/\n#include "core/host.h"\n'})


def main():
    self_test()
    paths = [str(name) for name in tree.files(tree.PRODUCT, (".c", ".h", ".def"))]
    wrong = check({path: tree.text(path) for path in paths})
    return tree.report(wrong, f"{len(paths)} files keep the rules; {len(PLANTED)} planted violations were caught")


if __name__ == "__main__":
    tree.finish(main())
