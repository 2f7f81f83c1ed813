"""How each client program of tests/clients gets what it needs, and how it is started.

What is fetched is kept in $DUEBOX_CACHE/clients (~/.cache/duebox/clients), once for each version of the list that names
it. A client that this machine cannot have raises Unavailable, with the reason.
"""
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.servers.jars import JarsUnavailable, fetch
from support.servers.java import find_java

HERE = Path(__file__).resolve().parent


class Unavailable(RuntimeError):
    """This machine cannot have the client; the text says why."""


def _cached(name, sources, make):
    """The folder that make(folder) filled, made anew when one of `sources` has changed."""
    root = Path(os.environ.get("DUEBOX_CACHE") or Path.home() / ".cache" / "duebox") / "clients"
    mark = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = root / f"{name}-{mark}"
    if not folder.exists():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as aside:
            fresh = Path(aside) / name
            fresh.mkdir()
            make(fresh)
            try:
                fresh.rename(folder)
            except OSError:             # another run was first
                pass
    return folder


def _run(*command, cwd, **env):
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"{command[0]} did not end within 10 minutes") from late
    if done.returncode:
        raise Unavailable(f"{' '.join(map(str, command[:3]))} failed: {done.stdout[-1500:]}")


def _program(name):
    path = shutil.which(name)
    if not path:
        raise Unavailable(f"there is no {name}; scripts/packages install clients")
    return path


# -- one function for each client: the command, and what it needs in its environment ------------


def debian_python(name):
    """With the modules of the distribution."""
    done = subprocess.run(["/usr/bin/python3", "-c", f"import pymysql, {name}"], capture_output=True, check=False)
    if done.returncode:
        raise Unavailable(f"there is no python3-{name}; scripts/packages install")
    return ["/usr/bin/python3", HERE / "python" / f"{name}_client.py"], {}


def python(name):
    wanted = HERE / "python" / "requirements.txt"

    def make(folder):
        _run("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--target", folder, "-r", wanted, cwd=folder)
    return ["/usr/bin/python3", HERE / "python" / f"{name}_client.py"], {"PYTHONPATH": _cached("python", [wanted], make)}


def node():
    wanted = HERE / "node" / "package.json"
    npm = _program("npm")

    def make(folder):
        shutil.copy(wanted, folder)
        _run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    folder = _cached("node", [wanted], make)
    return [_program("node"), HERE / "node" / "mysql2_client.js"], {"NODE_PATH": folder / "node_modules"}


def java(program, connector):
    found = find_java()
    javac = found and found.with_name("javac")
    if not javac or not javac.exists():
        raise Unavailable("there is no javac beside a Java of 11 to 23; scripts/packages install clients")
    try:
        jars = fetch(HERE / "java", "clients-jars", found)
    except JarsUnavailable as missing:
        raise Unavailable(str(missing)) from missing
    sources = sorted((HERE / "java").glob("*.java"))
    classes = _cached("java", [*sources, HERE / "java" / "pom.xml"], lambda folder: _run(
        javac, "-nowarn", "-cp", f"{jars}/*", "-d", folder, *sources, cwd=folder))
    return [found, f"-Dconnector={connector}", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", program], {}


def go():
    compiler = _program("go")
    sources = [HERE / "go" / name for name in ("client.go", "go.mod", "go.sum")]

    def make(folder):
        for source in sources:
            shutil.copy(source, folder)
        _run(compiler, "build", "-o", "client", ".", cwd=folder, GOFLAGS="-mod=readonly")
    return [_cached("go", sources, make) / "client"], {}


def php():
    found = _program("php")
    if "pdo_mysql" not in subprocess.run([found, "-m"], capture_output=True, text=True, check=False).stdout:
        raise Unavailable("php has no pdo_mysql; scripts/packages install clients")
    return [found, HERE / "php" / "pdo_client.php"], {}


def ruby():
    found = _program("ruby")
    if subprocess.run([found, "-e", "require 'mysql2'"], capture_output=True, check=False).returncode:
        raise Unavailable("ruby has no mysql2; scripts/packages install clients")
    return [found, HERE / "ruby" / "mysql2_client.rb"], {}


# Those of the distribution's Python run every time, the others with `scripts/test --clients`.
QUICK = {"PyMySQL (Debian)": lambda: debian_python("pymysql"),
         "SQLAlchemy 1.4 (Debian)": lambda: debian_python("sqlalchemy")}
ALL = {"PyMySQL": lambda: python("pymysql"),
       "SQLAlchemy 2.0": lambda: python("sqlalchemy"),
       "Django 5.1": lambda: python("django"),
       "Node mysql2": node,
       "MariaDB Connector/J": lambda: java("Jdbc", "mariadb"),
       "MySQL Connector/J": lambda: java("Jdbc", "mysql"),
       "Hibernate 6.5": lambda: java("Hibernate", "mariadb"),
       "Go go-sql-driver": go,
       "PHP PDO": php,
       "Ruby mysql2": ruby}
