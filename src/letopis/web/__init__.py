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
    overview,
    reference,
    saved_searches,
    saving,
    search,
    sites,
    timebar,
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
    login.two_factor_router,
    reference.router,
    saving.router,
    timebar.router,
    saving.missing_router,
    saving.moved_router,
)
PAGE_ROUTES = [route for part in _PARTS for route in part.routes]
"""As their parts have them: FastAPI would keep a second one of each that is included."""

__all__ = ["PAGE_ROUTES"]
