"""Pages for people, rendered on the server."""

from fastapi import APIRouter

from letopis.web import (
    accounts,
    comparison,
    crawls,
    history,
    jobs,
    login,
    overview,
    search,
    sites,
    timebar,
    watch_page,
    watches,
)

router = APIRouter(include_in_schema=False)
for part in (
    overview.router,
    history.router,
    comparison.router,
    sites.router,
    search.router,
    watches.router,
    watches.actions_router,
    watch_page.router,
    crawls.router,
    jobs.router,
    search.duplicates_router,
    overview.storage_router,
    overview.settings_router,
    accounts.router,
    crawls.welcome_router,
    login.language_router,
    timebar.router,
):
    router.include_router(part)

__all__ = ["router"]
