"""The screenshots in the documents, of the tests' own fleet. ``python -m tests.browser.screenshots`` makes them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import launch_options, use_own_node
from tests.browser.conftest import running, someone
from tests.browser.fleet import a_fleet, under_way

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
SHOTS = {
    "console-overview": ("/", "light"),
    "console-rollout": ("/rollouts/ROLLOUT", "light"),
    "console-tenant": ("/tenants/duff", "dark"),
    "console-health": ("/health", "light"),
}
"""The page and the theme of each."""
MAX_BYTES = 150_000


def screenshots(browser: Browser) -> dict[str, bytes]:
    made = {}
    api = a_fleet()
    rollout = under_way(api)
    with running(api) as here:
        here.rollout = rollout
        for name, (path, theme) in SHOTS.items():
            with someone(browser, here, color_scheme=theme, viewport={"width": 1180, "height": 760}) as page:
                page.goto(here.url(path))
                made[name] = page.screenshot(full_page=True)
    return made


def main() -> None:
    use_own_node()
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as temporary, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options(Path(temporary)))
        for name, image in screenshots(browser).items():
            (FOLDER / f"{name}.png").write_bytes(image)
        browser.close()


if __name__ == "__main__":
    main()
