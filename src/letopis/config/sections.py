"""Every setting with its default and one line of help: the only place they are named.

Durations are seconds and are written as `10s`, `1h` or a bare number; sizes
are bytes and are written as `10MiB` or a bare number. `table()` lists all.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from letopis.config.section import Section

KiB = 1024
MiB = 1024 * KiB
DAY = 86400.0


def _said(default: Any, text: str, unit: Literal["", "seconds", "bytes"] = "") -> Any:
    """A setting: its default, its help, and the unit its text form may carry."""
    return field(default=default, metadata={"help": text, "unit": unit})


class ArchiveSettings(Section):
    """Where the archive is."""

    path: str = _said("letopis-archive", "folder of the archive")


class StoreSettings(Section):
    """How contents are kept."""

    same: Literal["skip", "record"] = _said("skip", "a version equal to the newest: skip it, or record it at no cost")
    hot_min: int = _said(1, "newest versions of a document that compact leaves whole at least")
    newest_growth: float = _said(
        0.0, "share by which a newest version may be larger to be kept in a form that is read faster"
    )
    chain: int = _said(20, "differences in a row that compact writes at most, 0 for what the bound on reads allows")
    level: Literal[0, 1, 2, 3] = _said(
        0, "units of differences: 1 lines and tags, 2 also parts of addresses, 3 also parameters, 0 the smallest"
    )
    methods: tuple[str, ...] = _said(
        ("stored", "zstd", "brotli"),
        "codecs that compete for each version: brotli in compact, the others at once",
    )
    pack_bytes: int = _said(256 * MiB, "size at which a pack is closed and a new one begun", "bytes")
    max_bytes: int = _said(0, "most bytes of packs, 0 for no limit", "bytes")
    keep_versions: int = _said(0, "versions a document that compact keeps, 0 for all")
    keep_for: float = _said(0.0, "age after which compact drops old versions, 0 for never", "seconds")
    thin_after: float = _said(0.0, "age after which compact keeps one version a day, 0 for never", "seconds")
    url: str = _said("", "object store of the packs (s3://bucket/prefix); empty: files in the archive")
    endpoint: str = _said("", "address of the object store (https://...); empty: the one of Amazon's region")
    access_key: str = _said("", "name of the object store's credentials; empty: as the environment says")
    secret_key: str = _said("", "secret of the object store's credentials")
    region: str = _said("us-east-1", "region of the object store")
    cache_bytes: int = _said(1024 * MiB, "local cache of the object store, 0 for none", "bytes")


class DatabaseSettings(Section):
    """Where the catalogue is."""

    url: str = _said("", "database of the catalogue (postgresql://...); empty: SQLite in the archive")
    partitions: int = _said(1, "partitions of tables that grow with every check, by hash; 'letopis init' makes them")


class FetchSettings(Section):
    """Bounds and manners of one HTTP exchange."""

    max_bytes: int = _said(10 * MiB, "size limit of a document", "bytes")
    max_hops: int = _said(30, "redirects that are followed")
    connect: float = _said(10.0, "time limit for a connection", "seconds")
    first_byte: float = _said(30.0, "time limit for the first byte of an answer", "seconds")
    total: float = _said(120.0, "time limit for a whole exchange", "seconds")
    slow: float = _said(20.0, "time after which a body slower than 256 bytes a second is given up", "seconds")
    retries: int = _said(2, "further tries after a passing failure")
    retry_wait: float = _said(1.0, "pause before the first further try, doubled for each later one", "seconds")
    retry_after: float = _said(30.0, "longest Retry-After that is waited for inside one exchange", "seconds")
    retry_status: tuple[str, ...] = _said(("502", "503", "504"), "statuses that are worth a further try")
    proxy: str = _said("", "proxy for all requests (http://, socks5://)")
    headers: tuple[str, ...] = _said((), "further request headers, 'Name: value'")
    verify_tls: bool = _said(True, "check certificates")
    ca_file: str = _said("", "file of certificate authorities to trust; empty: the system's")
    cookies: bool = _said(True, "keep cookies in the archive's jar")
    chromium: str = _said("", "program of the browser that renders pages; empty: the Chromium on the PATH")
    private: Literal["cli", "always", "never"] = _said(
        "cli", "private and loopback addresses: for the command line only, always, or never"
    )


class MonitorSettings(Section):
    """Checks for people."""

    min_interval: float = _said(10.0, "checks of one URL inside this time are answered from the record", "seconds")
    every: float = _said(3600.0, "interval of a watch that names none", "seconds")
    concurrency: int = _said(16, "checks in flight at once")
    delay: float = _said(0.0, "least time between two checks of one host", "seconds")
    title: str = _said("$kind: $url", "title of a notification; names are those of its message")
    message: str = _said(
        "$sentence\n\n$difference", "text of a notification: $sentence $difference $url $kind $time $tag $version"
    )


class ChangeSettings(Section):
    """What counts as a change."""

    count: Literal["meaningful", "bytes", "paragraphs-50"] = _said(
        "meaningful", "which change alerts, feeds and schedules learn from"
    )
    threshold: float = _said(0.95, "likeness from which two versions count as the same")


class CrawlSettings(Section):
    """How a crawl chooses and how it behaves."""

    user_agent: str = _said("Letopis/0.1", "name that servers and robots.txt see")
    contact: str = _said("", "address or page in the User-Agent where people can complain")
    delay: float = _said(1.0, "least time between two fetches from one host and from one address", "seconds")
    delay_factor: float = _said(0.0, "pause of this many times the last fetch's duration, 0 for none")
    new_share: float = _said(0.5, "share of fetches kept for never-seen URLs while any are ready")
    max_per_host: int = _said(0, "most pages of one host, 0 for no limit")
    max_depth: int = _said(0, "most links away from a seed, 0 for no limit")
    concurrency: int = _said(64, "exchanges in flight at once")
    bandwidth: int = _said(0, "most bytes a second in all, 0 for no limit", "bytes")
    robots: bool = _said(True, "obey robots.txt")
    commit_every: float = _said(1.0, "time between durable commits, twice that for few pages of a fleet", "seconds")
    schedule_if: str = _said("", "expression that a found URL must not fail to be planned, as depth < 5")
    fetch_if: str = _said("", "expression that a planned URL must not fail to be fetched")
    follow_if: str = _said("", "expression that a page must not fail for its links to be followed, as lang == 'cs'")
    store_if: str = _said("", "expression that a page must not fail for its content to be kept, as bytes < 1mb")
    revisit_if: str = _said("", "expression that a page must not fail to be visited again")
    keywords: tuple[str, ...] = _said((), "words that a focused crawl is about; pages without them lead nowhere")
    languages: tuple[str, ...] = _said((), "languages that a focused crawl wants")
    max_hosts: int = _said(0, "most hosts that a crawl touches, 0 for no limit")
    map: bool = _said(True, "hand links over to the index as pages are read, so that maps need not read them again")
    sitemaps: bool = _said(False, "plan what the sitemaps of a host list")
    lease: float = _said(60.0, "time without a sign of life after which an agent's hosts go to others", "seconds")
    trap_depth: int = _said(16, "path segments beyond which an address counts as a trap")
    trap_pages: int = _said(2000, "most pages of one path pattern that differ only in numbers")


class ScheduleSettings(Section):
    """When pages are visited again."""

    policy: Literal["uniform", "adaptive", "optimal"] = _said("adaptive", "how the next visit is chosen")
    interval: float = _said(5 * DAY, "first and uniform interval", "seconds")
    min: float = _said(0.5 * DAY, "shortest interval", "seconds")
    max: float = _said(365 * DAY, "longest interval", "seconds")
    increase: float = _said(0.2, "growth of the interval after an unchanged visit")
    decrease: float = _said(0.2, "fall of the interval after a changed visit")
    budget: float = _said(0.0, "visits a second for the optimal policy, 0: as many as uniform would make")
    objective: Literal["freshness", "age", "captured"] = _said("freshness", "what the optimal policy maximises")
    alpha: float = _said(-1.0, "exponent of the change rate in weights: 0 freshness .. 1 captured, -1 by objective")
    exploration: float = _said(0.03, "part of an even share of visits that the optimal policy gives to every page")
    memory: float = _said(200.0, "changes that the estimate of a page's change rate remembers")


class SearchSettings(Section):
    """Words and search."""

    enabled: bool = _said(True, "keep the full-text index")
    languages: tuple[str, ...] = _said(("en", "cs", "sk", "de", "ru"), "languages whose word forms are joined")
    learn: bool = _said(False, "count which answers people choose: they move up, and are visited again sooner")
    affixes: tuple[str, ...] = _said((), "hunspell affix files for base forms, as 'cs=/path/cs_CZ.aff'; .dic beside it")


class ServeSettings(Section):
    """The web service."""

    host: str = _said("127.0.0.1", "address to listen on")
    port: int = _said(8080, "port to listen on, 0 picks a free one")
    public: bool = _said(True, "reading needs no account")
    scripts: bool = _said(False, "let scripts of archived pages run, inside their sandbox")
    trusted_proxies: tuple[str, ...] = _said((), "addresses whose X-Forwarded-* headers are believed")
    access_log: str = _said("", "file that gets a line for every request (combined log format); empty: none")
    checks_a_day: int = _said(10_000, "most checks of one user through HTTP in a day, 0 for no limit; owners have none")
    watches_a_day: int = _said(1000, "most watches that one user adds through HTTP in a day, 0 for no limit")


class JobsSettings(Section):
    """The queue of questions, and what one of them may use up."""

    workers: int = _said(4, "packages that one daemon works for at once, each in a process of its own")
    queued: int = _said(1000, "most jobs of one user that wait in the queue")
    run_time: float = _said(3600.0, "longest that a job may run", "seconds")
    memory: int = _said(2048 * MiB, "most memory of a worker, 0 for no limit", "bytes")
    max_result: int = _said(64 * MiB, "largest result of a job", "bytes")
    keep_for: float = _said(30 * DAY, "age after which the cleaner forgets ended jobs, 0 for never", "seconds")
    lease: float = _said(60.0, "time without a sign of life after which a worker counts as dead", "seconds")
    refresh_min: float = _said(600.0, "shortest interval of a use-driven refresh", "seconds")
    refresh_max: float = _said(7 * DAY, "longest interval of a use-driven refresh", "seconds")
    packages: str = _said("", "folder of packages that users made; empty: packages inside the archive")


class ClusterSettings(Section):
    """Where agents and analyses run beside this machine."""

    address: str = _said("", "scheduler of a Dask cluster (tcp://...); empty: work here")


class Settings(Section):
    """All settings of one run."""

    archive: ArchiveSettings = ArchiveSettings()
    store: StoreSettings = StoreSettings()
    database: DatabaseSettings = DatabaseSettings()
    fetch: FetchSettings = FetchSettings()
    monitor: MonitorSettings = MonitorSettings()
    change: ChangeSettings = ChangeSettings()
    crawl: CrawlSettings = CrawlSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    search: SearchSettings = SearchSettings()
    serve: ServeSettings = ServeSettings()
    jobs: JobsSettings = JobsSettings()
    cluster: ClusterSettings = ClusterSettings()
