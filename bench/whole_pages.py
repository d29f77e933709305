"""Letopis in R5: whole captures and nothing of the server of the benchmark, which would cost it its start."""

from __future__ import annotations

import argparse
import tempfile

from letopis import Archive, Monitor
from letopis.config import CaptureSettings, Settings


def capture(url: str, pages: int, screenshot: str) -> None:
    """Each page once, in an archive of its own."""
    settings = Settings(capture=CaptureSettings(screenshot=screenshot))  # type: ignore[arg-type]
    with (
        tempfile.TemporaryDirectory() as folder,
        Archive(folder, settings=settings) as archive,
        Monitor(archive) as monitor,
    ):
        options = monitor.options._replace(now=True, browser=True)
        for number in range(pages):
            (check,) = monitor.look([f"{url}?{number}"], options)
            assert check.available, check.error


def main() -> None:
    """Captures the pages and prints nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--part", default="", help="what stands at the end of the page")
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--screenshot", default="png")
    asked = parser.parse_args()
    capture(asked.url + asked.part, asked.pages, asked.screenshot)


if __name__ == "__main__":
    main()
