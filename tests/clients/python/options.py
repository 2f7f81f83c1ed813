"""What every Python client here is told: `<program> insert|cancel <key>`, and where the server is in the environment."""
import os
import sys
from types import SimpleNamespace

CONNECTION = {"host": os.environ["DUEBOX_CLIENT_HOST"], "port": int(os.environ["DUEBOX_CLIENT_PORT"]),
              "user": os.environ["DUEBOX_CLIENT_USER"], "password": os.environ["DUEBOX_CLIENT_PASSWORD"],
              "database": os.environ["DUEBOX_CLIENT_DATABASE"]}
ROUTES = SimpleNamespace(delay="clients.delay", at="clients.at", null="clients.null")


def main(insert, cancel):
    """Prints what the verb returns: the ids that were read back, or the numbers of rows changed."""
    verb, key = sys.argv[1:]
    for line in {"insert": insert, "cancel": cancel}[verb](key):
        print(line)
