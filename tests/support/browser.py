"""A real browser for tests of pages: headless Chromium, driven over its debugging pipe by the standard library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


class Browser:
    """One page in headless Chromium; messages are JSON that ends with a zero byte."""

    def __init__(self, folder: Path, size: tuple[int, int] = (1280, 800)) -> None:
        assert CHROMIUM is not None
        theirs, self.sending = os.pipe()
        self.receiving, answering = os.pipe()

        def set_pipes() -> None:
            os.dup2(theirs, 103)
            os.dup2(answering, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                f"--user-data-dir={folder / 'profile'}", f"--window-size={size[0]},{size[1]}", "about:blank",
            ],
            preexec_fn=set_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(answering)
        self.buffer, self.count, self.session = b"", 0, None
        target = self.ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in target if one["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self.ask("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)

    def ask(self, method: str, **params: Any) -> Any:
        """Send a command and wait for its answer; events between are dropped."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.sending, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                read = os.read(self.receiving, 1 << 16)
                assert read, "the browser has ended"
                self.buffer += read
            text, _, self.buffer = self.buffer.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path: Path) -> None:
        """Load a file and wait until it is shown."""
        self.ask("Page.enable")
        self.ask("Page.navigate", url=path.as_uri())
        ends = time.monotonic() + 30
        while self.run("document.readyState + location.href") != f"complete{path.as_uri()}":
            assert time.monotonic() < ends, "the page is not loaded"

    def run(self, script: str) -> Any:
        """The value of an expression, of its promise where it is one."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A real event of the mouse: moved, pressed, released, wheel."""
        self.ask("Input.dispatchMouseEvent", type=f"mouse{kind.capitalize()}", x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Point and click with the left button."""
        self.mouse("moved", x, y)
        for kind in ("pressed", "released"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """What is shown, as a PNG file."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        self.process.wait()
        os.close(self.sending)
        os.close(self.receiving)
