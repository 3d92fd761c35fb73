"""The screenshots of the pages about events. ``python -m tests.browser.event_screenshots`` makes them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import launch_options, use_own_node
from tests.browser.conftest import Running, running, someone
from tests.browser.event_fleet import EventFleet, an_event_plane
from tests.browser.fleet import a_fleet

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots" / "events"
MAX_BYTES = 150_000
WINDOW = {"width": 1180, "height": 760}


def shots(fleet: EventFleet) -> dict[str, tuple[str, str]]:
    """The page and the theme of each."""
    return {
        "connection": (f"/tenants/acme/connections/{fleet.shop}", "light"),
        "event": (f"/tenants/acme/events/{fleet.retrying}", "dark"),
    }


def screenshots(browser: Browser, here: Running, fleet: EventFleet) -> dict[str, bytes]:
    made = {}
    for name, (path, theme) in shots(fleet).items():
        with someone(browser, here, color_scheme=theme, viewport=WINDOW) as page:
            page.goto(here.url(path))
            made[name] = page.screenshot(full_page=True)
    return made


def main() -> None:
    use_own_node()
    FOLDER.mkdir(parents=True, exist_ok=True)
    api = a_fleet()
    with TemporaryDirectory() as temporary, sync_playwright() as playwright, an_event_plane(api) as plane:
        browser = playwright.chromium.launch(**launch_options(Path(temporary)))
        fleet = EventFleet(plane)
        with running(api, events=plane) as here:
            for name, image in screenshots(browser, here, fleet).items():
                (FOLDER / f"{name}.png").write_bytes(image)
        browser.close()


if __name__ == "__main__":
    main()
