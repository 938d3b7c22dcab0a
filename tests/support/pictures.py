"""Screenshots of the docs: the report of a sample debate, and a sample debate on the live page.

`make pictures` writes them. The current code makes their content from the recorded debates.
"""

from __future__ import annotations

import base64
import io
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver

from moot.api import DebateConfig, open_debates
from moot.models.offline import recording_config
from moot.reports import render_html
from tests.support.browser import chromium, find_element, set_viewport, wait_for_text
from tests.support.live_page import serve_in_thread

DOCS = Path(__file__).parents[2] / "docs"
WIDTH = 1280
PAGE_HEIGHT, REPORT_HEIGHT = 800, 1120
"""Height in pixels of the live page, and of the part of the report with the complete answer."""
COLORS = 128
"""Number of colors in a picture, which keeps it below 200 kB."""
RENDER_TIME_S = 1.0


def main() -> None:
    """Write the pictures into `docs/`."""
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder) / "browser") as browser:
        set_viewport(browser, WIDTH)
        database, ids = Path(folder) / "debates.sqlite", {}
        with open_debates(str(database)) as debates:
            for name in ("monolith", "free-transport"):
                debate = debates.start(None, DebateConfig(**recording_config(name)), name=name)
                document, ids[name] = debate.run(), debate.id
                page = Path(folder) / f"{name}.html"
                page.write_text(render_html(document), encoding="utf-8")
        browser.get((Path(folder) / "monolith.html").as_uri())
        save_screenshot(browser, DOCS / "report.png", REPORT_HEIGHT)
        with serve_in_thread(database, DebateConfig()) as url:
            browser.get(f"{url}/d/{ids['free-transport']}")
            find_element(browser, "#tab-ledger").click()
            assert wait_for_text(browser, "#panel h2", "Disputed claims")
            save_screenshot(browser, DOCS / "live.png", PAGE_HEIGHT)


def save_screenshot(browser: webdriver.Chrome, path: Path, height: int) -> None:
    """Write the upper part of the page that the browser shows to a file."""
    time.sleep(RENDER_TIME_S)
    part = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": part})
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(COLORS).save(path, optimize=True)


if __name__ == "__main__":
    main()
