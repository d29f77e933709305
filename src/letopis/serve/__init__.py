"""HTTP: pages for people, REST, Memento, CDX and feeds for programs."""

from letopis.serve.app import create_app
from letopis.serve.server import Server, listen, run_serving

__all__ = ["Server", "create_app", "listen", "run_serving"]
