"""What goes in and out of the REST routes, as the OpenAPI document describes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from letopis.model import Check, Version, rfc3339

Time = Annotated[datetime, PlainSerializer(rfc3339, return_type=str, when_used="json")]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.@+-]+$")]
Url = Annotated[str, Field(min_length=1, max_length=8192)]


class RequestBody(BaseModel):
    """A body that came in: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class CheckBody(RequestBody):
    """What to look at, and for whom."""

    url: Url
    uid: str = Field("default", alias="as", min_length=1, max_length=200)
    now: bool = False
    force: bool = False
    browser: bool = Field(False, description="look at the page as a browser shows it, after its scripts have run")


class HopShape(BaseModel):
    """One redirect."""

    url: str
    status: int
    location: str


class CheckShape(BaseModel):
    """One check, as `letopis check --json` prints it."""

    url: str
    final_url: str
    checked_at: Time
    available: bool
    status: int
    outcome: str
    version: int | None
    digest: str
    length: int
    content_type: str
    redirects: list[HopShape]
    error: str
    warnings: list[str]
    meaningful: bool | None
    score: float | None
    blocks: list[str]
    cached: bool
    changed_for_you: bool | None

    @classmethod
    def of(cls, check: Check) -> CheckShape:
        """From the model's value."""
        fields = {name: getattr(check, name) for name in cls.model_fields if name != "redirects"}
        hops = [HopShape(url=hop.url, status=hop.status, location=hop.location) for hop in check.redirects]
        return cls(**fields, redirects=hops)


class VersionShape(BaseModel):
    """One version, as `letopis versions --json` prints it."""

    number: int
    time: Time
    valid_until: Time | None
    digest: str
    raw_bytes: int
    stored_bytes: int
    method: str
    content_type: str
    last_modified: str

    @classmethod
    def of(cls, version: Version) -> VersionShape:
        """From the model's value."""
        return cls(**{name: getattr(version, name) for name in cls.model_fields})


class VersionsShape(BaseModel):
    """A part of the versions of a URL; `cursor` leads to the next part."""

    url: str
    versions: list[VersionShape]
    cursor: str | None = None


class HistoryRow(BaseModel):
    """One check in a history."""

    time: Time
    status: int
    available: bool
    outcome: str
    version: int | None
    meaningful: bool | None
    score: float | None
    error: str


class HistoryShape(BaseModel):
    """A part of the checks of a URL; `cursor` leads to the next part."""

    url: str
    history: list[HistoryRow]
    cursor: str | None = None


class LinkShape(BaseModel):
    """One link of a page."""

    source: str
    target: str
    type: str
    text: str


class LinksShape(BaseModel):
    """The links of a page at a time."""

    url: str
    version: int
    time: Time
    links: list[LinkShape]


class StatsShape(BaseModel):
    """Totals of the archive."""

    documents: int
    versions: int
    checks: int
    contents: int
    raw_bytes: int
    pack_bytes: int
    catalog_bytes: int
    links: int
    hosts: int
    ratio: float | None


class ChangeShape(BaseModel):
    """A version that is new to a client."""

    url: str
    title: str
    version: int
    time: Time
    outcome: Literal["new", "changed"]
    meaningful: bool | None
    digest: str


class ChangesShape(BaseModel):
    """What is new to a client; `cursor` is what it acknowledges."""

    changes: list[ChangeShape]
    cursor: str


class AckBody(RequestBody):
    """How far a client has come."""

    client: Name
    cursor: str = Field(pattern=r"^v[0-9]{1,18}$")


class AckShape(BaseModel):
    """Where the client stands now."""

    client: str
    cursor: str


class UserBody(RequestBody):
    """A new user."""

    name: Name
    role: Literal["guest", "user", "owner"] = "user"
    password: str | None = Field(None, min_length=8, max_length=1024)
    email: str = Field("", max_length=200)
    group: Name | None = None


class PasswordBody(RequestBody):
    """A new password."""

    password: str = Field(min_length=8, max_length=1024)


class UserShape(BaseModel):
    """A user, as others may see it."""

    name: str
    role: str
    email: str
    group: str
    created: Time


class UsersShape(BaseModel):
    """All users."""

    users: list[UserShape]


class TokenBody(RequestBody):
    """A new token."""

    name: Name
    scope: Literal["read", "write"] = "read"
    user: Name | None = None


class TokenShape(BaseModel):
    """A token without its secret."""

    name: str
    user: str | None
    scope: str
    created: Time


class TokensShape(BaseModel):
    """Tokens of whoever asks; an owner sees all."""

    tokens: list[TokenShape]


class NewTokenShape(BaseModel):
    """A token, told this once."""

    name: str
    scope: str
    token: str


class ProjectBody(RequestBody):
    """A project, or more addresses for one."""

    name: Name
    urls: list[Url] = Field(default_factory=list, max_length=10_000)


class ProjectShape(BaseModel):
    """A project."""

    name: str
    owner: str
    created: Time
    urls: list[str]


class ProjectsShape(BaseModel):
    """All projects."""

    projects: list[ProjectShape]


class AuditEntry(BaseModel):
    """One line of the audit log."""

    time: Time
    who: str
    action: str
    subject: str
    address: str


class AuditShape(BaseModel):
    """The end of the audit log, newest first."""

    audit: list[AuditEntry]
