"""A duebox built against MySQL's own client library, which this Debian does not have.

mysql_client_build() gives its build folder.  The library comes as packages of another suite (servers/engines.py) that
need a later libc than the system's, so the programs carry the path of that suite's dynamic loader and run as they are.
"""

import os
import shutil
import subprocess

from .servers import build_folder
from .servers.engines import fetch
from .servers.server import REPOSITORY

PACKAGE = """\
Name: mysqlclient
Description: MySQL client library
Version: {version}
Cflags: -I{folder}/include -I{folder}/include/mysql
Libs: -L{folder}/lib -lmysqlclient
"""
PLUGINS = ("duebox_amqp", "duebox_http", "duebox_kafka")


def mysql_client_build(*targets):
    """The folder with bin/duebox, plugins/ and the further targets; EngineUnavailable says why there is none."""
    engine = fetch("sid", "libmysqlclient-dev")
    folder = build_folder() / "mysqlclient"
    _run("cmake", "-S", REPOSITORY, "-B", folder, "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_BUILD_TYPE=Debug",
         "-DDUEBOX_MYSQL_CLIENT=mysqlclient", f"-DCMAKE_EXE_LINKER_FLAGS={' '.join(_link_options(engine))}",
         PKG_CONFIG_PATH=_offer(engine, folder / "client"))
    _run("cmake", "--build", folder, "--target", "duebox", *PLUGINS, *targets)
    return folder


def _offer(engine, folder):
    """A folder where pkg-config finds the library, and the linker nothing else of that suite's."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, target in (("include/mysql", engine.path("include/mysql")),
                         ("lib/libmysqlclient.so", engine.path("lib/*/libmysqlclient.so.*"))):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).symlink_to(target)
    (folder / "mysqlclient.pc").write_text(PACKAGE.format(version=engine.version, folder=folder))
    return folder


def _link_options(engine):
    loader = engine.command("lib/*-linux-gnu*/libmysqlclient.so.*")[0]
    own = engine.path("lib/*-linux-gnu*/libmysqlclient.so.*").parent
    system = f"/usr/lib/{own.name}"
    return (f"-Wl,--dynamic-linker={loader}", f"-Wl,--disable-new-dtags,-rpath,{own}:{system}",
            "-Wl,--allow-shlib-undefined")


def _run(*words, **environment):
    done = subprocess.run(list(map(str, words)), env={**os.environ, **{k: str(v) for k, v in environment.items()}},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))} failed:\n{done.stdout[-6000:]}"
