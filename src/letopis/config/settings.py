"""Every setting with its default and one line of help: the only place they are named.

Durations are seconds and are written as `10s`, `1h` or a bare number; sizes
are bytes and are written as `10MiB` or a bare number. `settings_table()` lists all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal, dataclass_transform, get_args, get_type_hints

from letopis.errors import SettingError
from letopis.tuples import FrozenFields, NamedTuple


@dataclass_transform(frozen_default=True, kw_only_default=True)
class SettingsSection(FrozenFields):
    """A group of settings, each with a default; made by name, never changed, compared by value."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        """Finds the fields of a section."""
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        """The defaults but for what is given."""
        known = self.__dataclass_fields__
        unknown = values.keys() - known.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(sorted(unknown))}")
        for name, value in values.items():
            _refuse_unfit(type(self), known[name], value)
        vars(self).update({name: row.default for name, row in known.items()} | values)


MOST_NUMBER = float(1 << 53)


def _refuse_unfit(section: type[SettingsSection], row: Field[Any], value: Any) -> None:
    """SettingError for a number out of its bounds, a word that is not allowed, and another type."""
    default, called = row.default, f"{section.__name__}({row.name}={value!r})"
    if str(row.type).startswith("Literal"):
        if value not in (allowed := get_args(get_type_hints(section)[row.name])):
            raise SettingError(f"{called} does not fit: allowed are {', '.join(map(str, allowed))}")
    elif isinstance(default, bool | str | tuple):
        if not isinstance(value, type(default)):
            raise SettingError(f"{called} does not fit: {type(default).__name__} is required")
    elif isinstance(default, int | float):
        least = min(0, default)
        if isinstance(value, bool) or not isinstance(value, int | type(default)):
            raise SettingError(f"{called} does not fit: {type(default).__name__} is required")
        if not least <= value <= MOST_NUMBER:
            raise SettingError(f"{called} does not fit: write a number from {least:g} to {MOST_NUMBER:g}")


KiB = 1024
MiB = 1024 * KiB
DAY = 86400.0


def setting(default: Any, text: str, unit: Literal["", "seconds", "bytes"] = "") -> Any:
    """A setting: its default, its help, and the unit its text form may carry."""
    return field(default=default, metadata={"help": text, "unit": unit})


class ArchiveSettings(SettingsSection):
    """Where the archive is."""

    path: str = setting("letopis-archive", "folder of the archive")


class StoreSettings(SettingsSection):
    """How contents are kept."""

    same: Literal["skip", "record"] = setting(
        "skip", ("what to do with a version equal to the newest: skip it, or record it again")
    )
    hot_min: int = setting(1, "number of newest versions of a document that compact never stores as deltas")
    newest_growth: float = setting(
        0.0, "how much larger the newest version may be stored to be read faster, as a fraction"
    )
    chain: int = setting(
        20, "maximum length of a version's chain of deltas after compact, 0 for as long as reads stay fast"
    )
    level: Literal[0, 1, 2, 3] = setting(
        0,
        (
            "units that deltas are made of: 1 lines and tags, 2 also parts of addresses, 3 also "
            "parameters, 0 whichever is smallest"
        ),
    )
    methods: tuple[str, ...] = setting(
        ("stored", "zstd", "brotli"), ("codecs tried for each version: brotli in compact, the others when it is stored")
    )
    pack_bytes: int = setting(256 * MiB, "size at which a pack is closed and a new one started", "bytes")
    max_bytes: int = setting(0, "maximum size of all packs, 0 for no limit", "bytes")
    keep_versions: int = setting(0, "number of versions per document that compact keeps, 0 for all")
    keep_for: float = setting(0.0, "age after which compact drops old versions, 0 for never", "seconds")
    thin_after: float = setting(0.0, "age after which compact keeps one version a day, 0 for never", "seconds")
    url: str = setting("", "object store of the packs (s3://bucket/prefix); empty: files in the archive")
    endpoint: str = setting("", "endpoint of the object store (https://...); empty: Amazon S3 in the given region")
    access_key: str = setting("", "access key ID for the object store; empty: from the environment")
    secret_key: str = setting("", "secret access key for the object store")
    region: str = setting("us-east-1", "region of the object store")
    cache_bytes: int = setting(1024 * MiB, "size of the local cache of the object store, 0 for none", "bytes")


class DatabaseSettings(SettingsSection):
    """Where the catalogue is."""

    url: str = setting("", "database of the catalogue (postgresql://...); empty: SQLite in the archive")
    partitions: int = setting(
        1, ("number of hash partitions of tables that grow with every check; 'letopis init' creates them")
    )


class FetchSettings(SettingsSection):
    """Bounds and manners of one HTTP exchange."""

    max_bytes: int = setting(10 * MiB, "maximum size of a document", "bytes")
    max_hops: int = setting(30, "maximum number of redirects to follow")
    connect: float = setting(10.0, "time limit for a connection", "seconds")
    first_byte: float = setting(30.0, "time limit for the first byte of a response", "seconds")
    total: float = setting(120.0, "time limit for a whole fetch", "seconds")
    slow: float = setting(20.0, "time after which a body slower than 256 bytes per second is abandoned", "seconds")
    retries: int = setting(2, "retries after a temporary failure")
    retry_wait: float = setting(1.0, "pause before the first retry, doubled for each later one", "seconds")
    retry_after: float = setting(30.0, "maximum Retry-After to wait for within one fetch", "seconds")
    retry_status: tuple[str, ...] = setting(("502", "503", "504"), "HTTP statuses to retry")
    proxy: str = setting("", "proxy for all requests (http://, socks5://)")
    headers: tuple[str, ...] = setting((), "additional request headers, 'Name: value'")
    verify_tls: bool = setting(True, "verify TLS certificates")
    ca_file: str = setting("", "file with the certificate authorities to trust; empty: those of the system")
    cookies: bool = setting(True, "keep cookies in the archive's cookie jar")
    chromium: str = setting("", "executable of the browser that renders pages; empty: Chromium from the PATH")
    private: Literal["cli", "always", "never"] = setting(
        "cli", "where private and loopback addresses are allowed: on the command line only, always, or never"
    )


class CaptureSettings(SettingsSection):
    """Whole pages: what of a page is taken, and how a browser looks at it."""

    take: tuple[str, ...] = setting(
        ("images", "styles", "fonts", "scripts", "media", "data", "frames"), ("kinds of resources of a page to fetch")
    )
    resources: int = setting(300, "maximum number of resources per page; further requests are refused")
    bytes: int = setting(64 * MiB, "maximum total size of the resources of a page", "bytes")
    media_bytes: int = setting(8 * MiB, "maximum size of an image, audio or video file", "bytes")
    load: float = setting(30.0, "maximum time to wait for a page to load in a browser", "seconds")
    quiet: float = setting(5.0, "maximum time to wait for a page in a browser to become idle", "seconds")
    scroll: bool = setting(True, "scroll through a page in a browser, so that lazy-loaded parts are captured")
    viewport: str = setting("1280x800", "size of the browser viewport, in pixels")
    language: str = setting("", "language that a browser requests, such as cs-CZ; empty: as in other requests")
    screenshot: Literal["png", "webp", "none"] = setting("png", "format of the screenshot of a page")
    screenshot_height: int = setting(4000, "maximum height of a screenshot in page pixels; the rest is cut off")
    screenshot_scale: float = setting(
        0.75, ("scale of a screenshot; 1 is the scale of the page and costs twice as much")
    )
    text: bool = setting(True, "keep the text of a page as a browser shows it")
    pages: int = setting(4, "maximum number of pages open in a browser at the same time")
    reuse: float = setting(600.0, "time for which a crawl reuses a resource without requesting it again", "seconds")


class MonitorSettings(SettingsSection):
    """Checks for people."""

    min_interval: float = setting(
        10.0, "repeated checks of a URL within this time are answered from the record", "seconds"
    )
    every: float = setting(3600.0, "default interval of watches", "seconds")
    concurrency: int = setting(16, "maximum number of concurrent checks")
    delay: float = setting(
        0.0, "minimum time between two checks of one host; during a crawl, crawl.delay applies", "seconds"
    )
    title: str = setting(
        "$kind: $url", ("template for the title of a notification, with the same variables as its text")
    )
    message: str = setting(
        "$sentence\n\n$difference",
        "template for the text of a notification: $sentence $difference $url $kind $time $tag $version $comparison",
    )


class ChangeSettings(SettingsSection):
    """What counts as a change."""

    count: Literal["meaningful", "bytes", "paragraphs-50"] = setting(
        "meaningful", "which changes count for alerts, feeds and schedules"
    )
    threshold: float = setting(0.95, "likeness from which two versions count as the same")
    known: float = setting(
        0.9, ("paragraphs-50: share of already known long paragraphs from which a version does not count as a change")
    )


class CrawlSettings(SettingsSection):
    """How a crawl chooses and how it behaves."""

    user_agent: str = setting("Letopis/0.1", "product name in the User-Agent and for robots.txt")
    contact: str = setting("", "contact address or page named in the User-Agent")
    delay: float = setting(1.0, "minimum time between two fetches from one host and from one address", "seconds")
    delay_factor: float = setting(0.0, "also pause for this multiple of the last fetch's duration, 0 for none")
    order: Literal["breadth", "rank"] = setting(
        "breadth",
        "which new page of a host is fetched first: the one closest to a seed, or the one that more links lead to",
    )
    new_share: float = setting(0.5, "share of fetches reserved for new URLs while any are ready")
    max_per_host: int = setting(0, "maximum number of pages per host, 0 for no limit")
    max_depth: int = setting(0, "maximum number of links from a seed, 0 for no limit")
    concurrency: int = setting(64, "maximum number of concurrent requests")
    bandwidth: int = setting(0, "maximum bandwidth in bytes per second, 0 for no limit", "bytes")
    robots: bool = setting(True, "obey robots.txt")
    commit_every: float = setting(
        1.0, ("time between durable commits; an agent of a fleet with few pages waits twice as long"), "seconds"
    )
    schedule_if: str = setting("", "condition for planning a discovered URL, such as depth < 5")
    fetch_if: str = setting("", "condition for fetching a planned URL")
    follow_if: str = setting("", "condition for following the links of a page, such as lang == 'cs'")
    store_if: str = setting("", "condition for storing the content of a page, such as bytes < 1mb")
    revisit_if: str = setting("", "condition for visiting a page again")
    keywords: tuple[str, ...] = setting(
        (), ("words that a focused crawl looks for; links of pages without them are not followed")
    )
    languages: tuple[str, ...] = setting((), "languages of pages that a focused crawl looks for")
    max_hosts: int = setting(0, "maximum number of hosts of a crawl, 0 for no limit")
    map: bool = setting(
        True, "keep the links of fetched pages for the index, so that maps need not read the pages again"
    )
    sitemaps: bool = setting(False, "plan the URLs that the sitemaps of a host list")
    lease: float = setting(60.0, "time without a heartbeat after which an agent's hosts go to other agents", "seconds")
    trap_depth: int = setting(16, "number of path segments beyond which an address counts as a trap")
    trap_pages: int = setting(2000, "maximum number of pages of one path pattern that differ only in numbers")


class ScheduleSettings(SettingsSection):
    """When pages are visited again."""

    policy: Literal["uniform", "adaptive", "optimal"] = setting("adaptive", "how the next visit is chosen")
    interval: float = setting(
        5 * DAY, "interval of the uniform policy, and the first interval of the others", "seconds"
    )
    min: float = setting(0.5 * DAY, "shortest interval", "seconds")
    max: float = setting(365 * DAY, "longest interval", "seconds")
    increase: float = setting(0.2, "relative increase of the interval after a visit that found no change")
    decrease: float = setting(0.2, "relative decrease of the interval after a visit that found a change")
    budget: float = setting(
        0.0, ("visits per second for the optimal policy, 0: as many as the uniform policy would make")
    )
    objective: Literal["freshness", "age", "captured"] = setting("freshness", "what the optimal policy maximises")
    alpha: float = setting(
        -1.0,
        (
            "exponent of the change rate in weights: from 0 (freshness) to 1 (captured "
            "changes); -1: as the objective requires"
        ),
    )
    exploration: float = setting(
        0.03, ("fraction of an even share of visits that the optimal policy reserves for every page")
    )
    memory: float = setting(200.0, "number of changes that the estimate of a page's change rate covers")


class SearchSettings(SettingsSection):
    """Words and search."""

    enabled: bool = setting(True, "keep the full-text index")
    languages: tuple[str, ...] = setting(
        ("en", "cs", "sk", "de", "ru", "pl"), ("languages in which a search finds all forms of a word")
    )
    learn: bool = setting(
        False, ("count which search results people open, to rank them higher and revisit them sooner")
    )
    affixes: tuple[str, ...] = setting(
        (), "hunspell affix files for base forms, such as 'cs=/path/cs_CZ.aff', with the .dic file beside it"
    )


class ServeSettings(SettingsSection):
    """The web service."""

    host: str = setting("127.0.0.1", "address to listen on")
    port: int = setting(8080, "port to listen on, 0 picks a free one")
    address: str = setting(
        "",
        (
            "public address of the web interface, such as https://archive.example.org, for links in "
            "notifications; empty: http://, host and port"
        ),
    )
    public: bool = setting(True, "allow reading without an account")
    two_factor: Literal["optional", "owners", "everybody"] = setting(
        "optional", "who must also sign in with a code from an app; optional: those who switched it on"
    )
    work: bool = setting(True, "also run watches, crawls and jobs; false: only answer requests")
    hosts: tuple[str, ...] = setting(
        (), "accepted host names, besides IP addresses, localhost and the machine's own name; * for any"
    )
    cors: tuple[str, ...] = setting(
        (), "origins whose pages may read archived content (CORS), such as https://example.org; * for any"
    )
    trusted_proxies: tuple[str, ...] = setting((), "addresses whose X-Forwarded-* headers are trusted")
    replay_origin: str = setting(
        "",
        (
            "origin where archived pages run their scripts, such as https://replay.example.org with a "
            "wildcard below it; empty: a separate port, for readers on this machine; none: scripts never "
            "run"
        ),
    )
    replay_port: int = setting(0, "port of the replay origin; 0: the next one, or a free one")
    statistics: bool = setting(True, ("count daily usage of the archive; never who used it or what they searched for"))
    access_log: str = setting("", "file for the access log (combined log format); empty: none")
    max_upload: int = setting(
        1024 * MiB, "maximum size of a file that an owner imports over HTTP, 0 to allow none", "bytes"
    )
    checks_a_day: int = setting(
        10_000, "maximum number of checks per user per day over HTTP, 0 for no limit; owners have none"
    )
    watches_a_day: int = setting(1000, "maximum number of watches added per user per day over HTTP, 0 for no limit")


class JobsSettings(SettingsSection):
    """The queue of questions, and what one of them may use up."""

    workers: int = setting(4, "number of job packages that a daemon runs at once, each in a separate process")
    queued: int = setting(1000, "maximum number of queued runs per user")
    run_time: float = setting(3600.0, "maximum duration of a run", "seconds")
    memory: int = setting(2048 * MiB, "maximum memory of a worker, 0 for no limit", "bytes")
    max_result: int = setting(64 * MiB, "maximum size of the result of a run", "bytes")
    keep_for: float = setting(30 * DAY, "age after which finished runs are deleted, 0 for never", "seconds")
    lease: float = setting(60.0, "time without a heartbeat after which a worker counts as dead", "seconds")
    refresh_min: float = setting(600.0, "shortest interval of a use-driven refresh", "seconds")
    refresh_max: float = setting(7 * DAY, "longest interval of a use-driven refresh", "seconds")
    packages: str = setting("", "folder of users' packages; empty: packages inside the archive")


class ClusterSettings(SettingsSection):
    """Where agents and analyses run beside this machine."""

    address: str = setting("", "scheduler of a Dask cluster (tcp://...); empty: work locally")


SettingSource = Literal["default", "archive", "file", "environment", "command line"]
"""Where a setting was set; in the archive are those that its owners changed while it ran."""


class Settings(SettingsSection):
    """All settings of one run; where each was set is told beside, and makes no two of them different."""

    __slots__ = ("_sources",)

    archive: ArchiveSettings = ArchiveSettings()
    store: StoreSettings = StoreSettings()
    database: DatabaseSettings = DatabaseSettings()
    fetch: FetchSettings = FetchSettings()
    capture: CaptureSettings = CaptureSettings()
    monitor: MonitorSettings = MonitorSettings()
    change: ChangeSettings = ChangeSettings()
    crawl: CrawlSettings = CrawlSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    search: SearchSettings = SearchSettings()
    serve: ServeSettings = ServeSettings()
    jobs: JobsSettings = JobsSettings()
    cluster: ClusterSettings = ClusterSettings()

    def __getstate__(self) -> dict[str, object]:
        """Values alone go to other processes."""
        return dict(vars(self))

    def source_of(self, name: str) -> SettingSource:
        """Where a setting was set, of those that were loaded."""
        return self.sources.get(name, "default")

    @property
    def sources(self) -> Mapping[str, SettingSource]:
        """Where those that were loaded were set, by name."""
        found: Mapping[str, SettingSource] = getattr(self, "_sources", {})
        return found

    def with_sources(self, sources: Mapping[str, SettingSource]) -> Settings:
        """The same, which tells where its values come from."""
        object.__setattr__(self, "_sources", sources)
        return self


class Setting(NamedTuple):
    """One row: `store.pack_bytes`, its variable, type, default, unit and help."""

    name: str
    type: Any
    default: Any
    unit: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "LETOPIS_" + self.name.replace(".", "_").upper()


_SECTION_TYPES: dict[str, type[SettingsSection]] = {name: type(part) for name, part in vars(Settings()).items()}


def find_setting(name: str) -> Setting | None:
    """One setting by its full name; None when there is none. Finds out the types of its section alone."""
    section = name.partition(".")[0]
    return _section_rows(section).get(name) if section in _SECTION_TYPES else None


@cache
def _section_rows(section: str) -> dict[str, Setting]:
    cls = _SECTION_TYPES[section]
    hints = get_type_hints(cls)
    rows = (
        Setting(f"{section}.{row.name}", hints[row.name], row.default, row.metadata["unit"], row.metadata["help"])
        for row in fields(cls)
    )
    return {row.name: row for row in rows}


@cache
def settings_table() -> dict[str, Setting]:
    """Every setting by its full name, in the order of the sections."""
    return {name: row for section in _SECTION_TYPES for name, row in _section_rows(section).items()}


def setting_value(settings: Settings, name: str) -> Any:
    """The value of a setting by its full name."""
    section, _, key = name.partition(".")
    return getattr(getattr(settings, section), key)


def changed_settings(settings: Settings) -> dict[str, object]:
    """Settings that differ from their defaults, by name: what another process needs to have the same."""
    values = {name: setting_value(settings, name) for name in settings_table()}
    return {name: value for name, value in values.items() if value != settings_table()[name].default}
