"""Private servers for tests, benches and the demo; see README.md."""

from .server import REPOSITORY, Server, ServerError, build_folder, run_folder

__all__ = ["REPOSITORY", "Server", "ServerError", "build_folder", "run_folder"]
