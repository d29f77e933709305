"""The accounts of an archive: users, tokens, projects, and the key that signs sessions."""

from __future__ import annotations

from letopis.archive.archive import Archive
from letopis.catalog.accounts import Accounts, Project, Projects, Token, User

__all__ = ["Accounts", "Project", "Projects", "Token", "User", "accounts_of", "projects_of"]


def accounts_of(archive: Archive) -> Accounts:
    """Its users and their tokens."""
    return Accounts(archive.catalog.database)


def projects_of(archive: Archive) -> Projects:
    """Its named sets of pages."""
    return Projects(archive.catalog.database)
