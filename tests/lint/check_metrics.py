#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every metric that is exported has its row in docs/OPERATIONS.md; that page and the README name no other one."""
import re

import tree

PAGE = "docs/OPERATIONS.md"
# A name as it is given to exposition_begin() or stands in a table of series, with its type.
EXPORTED = re.compile(r'"((?:duebox|process)_[a-z_]+)",\s*METRIC_([A-Z]+)')
GAUGE = re.compile(r'"((?:duebox|process)_[a-z_]+)",\s*"')      # tables of gauges: name and help
ROW = re.compile(r"^\| `([a-z_]+)(?:\{[a-z, ]+\})?` \|", re.M)
NAMED = re.compile(r"\b((?:duebox|process)_[a-z_]+)")
PARTS = {"COUNTER": ["_total"], "INFO": ["_info"], "HISTOGRAM": ["", "_bucket", "_sum", "_count"]}
NOT_METRICS = {"duebox_migrate", "duebox_plugin_v"}     # a database user, the descriptor of plugins


def exported(text):
    """{name as it is read: name as a row shows it}"""
    names = {}
    for name, kind in EXPORTED.findall(text):
        for part in PARTS.get(kind, [""]):
            names[name + part] = name + PARTS.get(kind, [""])[0]
    return {**{name: name for name in GAUGE.findall(text)}, **names}


def judge(source, page, others):
    names = exported(source)
    listed = ROW.findall(page)
    wrong = [f"{PAGE}: {name} has no row" for name in set(names.values()) - set(listed)]
    wrong += [f"{PAGE}: {name} has a row and is not exported" for name in set(listed) - set(names)]
    return wrong + [f"{where}: {name} is not exported" for where, text in {PAGE: page, **others}.items()
                    for name in set(NAMED.findall(text)) - set(names) - NOT_METRICS]


def main():
    source = '{"duebox_x", METRIC_COUNTER, PLAIN}'
    assert judge(source, "", {}) and judge(source, "| `duebox_x_total` | . |\nduebox_y\n", {})
    assert not judge(source, "| `duebox_x_total` | . |\n", {})
    text = "".join(tree.text(name) for name in tree.files(["admin"], (".c",)))
    assert len(exported(text)) > 40, "the patterns of this test find too few metrics"
    page = tree.text(PAGE)
    return tree.report(judge(text, page, {"README.md": tree.text("README.md")}),
                       f"{len(ROW.findall(page))} metrics are documented")


if __name__ == "__main__":
    tree.finish(main())
