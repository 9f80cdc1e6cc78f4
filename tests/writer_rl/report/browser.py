"""A headless Chromium from the system's packages, cut off from every network and watched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with its driver (Debian, Ubuntu: apt-get install chromium chromium-driver)"
)
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


@contextmanager
def chromium(width: int = 1400, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A driver whose log holds every request and every complaint of a page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        if dark:
            scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        yield driver
    finally:
        driver.quit()


def requested(driver: Any) -> list[str]:
    """Addresses that the page asked for since the last call, other than its own file."""
    import json

    found = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return [address for address in found if not address.startswith("file://")]


def open_page(driver: Any, path: Path, place: str = "") -> None:
    """Load the file; another place of the page that is open loads it anew too."""
    driver.get("about:blank")
    requested(driver)
    driver.get(f"{path.resolve().as_uri()}{place}")
