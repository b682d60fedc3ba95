"""Pages as a person opens them, with everything written down that they should not do."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")
Scheme = Literal["light", "dark"]


@dataclass
class Visit:
    """A page and everything it did that it should not."""

    page: Page
    complaints: list[str] = field(default_factory=list[str])

    def watch(self) -> None:
        def on_console(message: ConsoleMessage) -> None:
            self.complaints.append(f"console {message.type}: {message.text}")

        def on_dialog(dialog: Dialog) -> None:
            self.complaints.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def on_request(request: Request) -> None:
            if not (request.is_navigation_request() and request.url.startswith("file:")):
                self.complaints.append(f"request: {request.url}")

        def on_error(error: object) -> None:
            self.complaints.append(f"error: {error}")

        self.page.on("console", on_console)
        self.page.on("dialog", on_dialog)
        self.page.on("request", on_request)
        self.page.on("pageerror", on_error)


@dataclass
class Reader:
    """One page for all that a test opens with script and one without: a new one takes a second."""

    browser: Browser
    opened: dict[bool, Visit] = field(default_factory=dict[bool, Visit])

    def open(self, path: Path, *, width: int = 1280, scheme: Scheme = "light", script: bool = True) -> Page:
        if script not in self.opened:
            self.opened[script] = Visit(self.browser.new_context(java_script_enabled=script).new_page())
            self.opened[script].watch()
        page = self.opened[script].page
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.goto(path.as_uri())
        return page
