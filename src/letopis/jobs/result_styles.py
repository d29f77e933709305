"""Which stylesheet shows a job's result: a given one, a packaged one, one of its package, or the query's own."""

from __future__ import annotations

from letopis.config import Settings
from letopis.errors import UsageError
from letopis.jobs.language import STYLESHEETS, package_named, parse_job_file, stylesheet_of, transform_result

OWN_STYLESHEET = "own"
"""The name that stands for the stylesheet of the question itself, else of its package."""


def apply_stylesheet(result: bytes, job_file: bytes, stylesheet: bytes | str, settings: Settings) -> bytes:
    """What a stylesheet, given whole or by its name, makes of a result. UsageError says what stopped it."""
    return transform_result(
        result, _stylesheet_named(job_file, stylesheet, settings) if isinstance(stylesheet, str) else stylesheet
    )


def _stylesheet_named(job_file: bytes, name: str, settings: Settings) -> bytes | str:
    if name in STYLESHEETS:
        return name
    query = parse_job_file(job_file)
    if name != OWN_STYLESHEET:
        return package_named(query.package, settings).stylesheet(name) or name
    own = stylesheet_of(query, settings)
    if own is None:
        raise UsageError(f"neither the question nor its package has a stylesheet; name one: {', '.join(STYLESHEETS)}")
    return own


def stylesheet_names(job_file: bytes, settings: Settings) -> list[str]:
    """The stylesheets that a result can be shown with by name."""
    own = stylesheet_of(parse_job_file(job_file), settings)
    return [*([OWN_STYLESHEET] if own is not None else []), *STYLESHEETS]
