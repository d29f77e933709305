"""Pages for people, rendered on the server."""

from letopis.web import (
    accounts,
    alerts,
    comparison,
    crawls,
    duplicates,
    history,
    jobs,
    login,
    missing,
    moved,
    overview,
    reference,
    saved_searches,
    saving,
    search,
    sites,
    timebar,
    two_factor,
    watch_page,
    watches,
)

_PARTS = (
    overview.router,
    history.router,
    comparison.router,
    sites.router,
    search.router,
    saved_searches.router,
    watches.router,
    alerts.router,
    watches.actions_router,
    watch_page.router,
    crawls.router,
    jobs.router,
    duplicates.router,
    overview.storage_router,
    overview.settings_router,
    accounts.router,
    crawls.welcome_router,
    login.language_router,
    login.join_router,
    two_factor.router,
    reference.router,
    saving.router,
    timebar.router,
    missing.router,
    moved.router,
)
PAGE_ROUTES = [route for part in _PARTS for route in part.routes]
"""As their parts have them: FastAPI would keep a second one of each that is included."""

__all__ = ["PAGE_ROUTES"]
