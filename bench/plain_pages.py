"""The peer of R5: Chromium by playwright and nothing of Letopis, which would cost it its start."""

from __future__ import annotations

import argparse
import asyncio
import json

from playwright.async_api import async_playwright


async def load_plainly(executable: str, url: str, pages: int, picture: dict[str, object] | None) -> None:
    """Each page in a profile of its own, until it is quiet; with a picture, scrolled by a script before."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        for number in range(pages):
            context = await browser.new_context(device_scale_factor=picture["scale"] if picture else 1)  # type: ignore[arg-type]
            page = await context.new_page()
            await page.goto(f"{url}?{number}", wait_until="networkidle")
            if picture:
                await page.evaluate(str(picture["scroll"]))
                await page.wait_for_load_state("networkidle")
                clip = {"x": 0, "y": 0, "width": 1280, "height": picture["most"]}
                await page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
            await context.close()
        await browser.close()


def main() -> None:
    """Loads the pages and prints nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--picture", type=json.loads, help="an object with scale, scroll and most")
    asked = parser.parse_args()
    asyncio.run(load_plainly(asked.executable, asked.url, asked.pages, asked.picture))


if __name__ == "__main__":
    main()
