"""The accounts of an archive: users, tokens, projects, and who is signed in."""

from __future__ import annotations

from letopis.archive.archive import Archive
from letopis.catalog.accounts import HASHINGS, Accounts, Project, Projects, Token, User
from letopis.catalog.sessions import SessionRows

__all__ = [
    "HASHINGS",
    "Accounts",
    "Project",
    "Projects",
    "SessionRows",
    "Token",
    "User",
    "accounts_of",
    "projects_of",
    "session_rows_of",
]


def accounts_of(archive: Archive) -> Accounts:
    """Its users and their tokens."""
    return Accounts(archive.catalog.database)


def session_rows_of(archive: Archive) -> SessionRows:
    """Who is signed in."""
    return SessionRows(archive.catalog.database)


def projects_of(archive: Archive) -> Projects:
    """Its named sets of pages."""
    return Projects(archive.catalog.database)
