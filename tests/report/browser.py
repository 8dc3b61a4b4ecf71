# SPDX-License-Identifier: Apache-2.0
"""A real browser without a screen, driven through a pair of pipes (Chrome DevTools Protocol)."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
from patience import PATIENCE_S

NAMES = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")


def find():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """with Browser() as browser: one page. What it logs, throws or requests is kept."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="bpfpush-browser-")
        self.n, self.events, self.session = 0, [], None
        theirs_in, self.ours_out = os.pipe()
        self.ours_in, theirs_out = os.pipe()
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}",
                   "about:blank"]
        # It reads from 3 and writes to 4.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(["bash", "-c", script, "bash", *command], pass_fds=(theirs_in, theirs_out),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.input = os.fdopen(self.ours_in, "rb", buffering=0)
        self.rest = b""

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *unused):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.ours_out)
            self.input.close()
            self.profile.cleanup()

    def read(self):
        while b"\0" not in self.rest:
            data = self.input.read(1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.ours_out, data):]
        while True:
            answer = self.read()
            if answer.get("id") == self.n:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, event):
        """Until an event comes that has not come yet."""
        while not any(one.get("method") == event for one in self.events):
            self.events.append(self.read())

    def open(self, path, width=1280, height=900, scheme="light", has_script=True):
        self.events = []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not has_script)
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("Page.loadEventFired")

    def ask(self, expression):
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key, text=None):
        codes = {"Tab": 9, "Enter": 13}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path):
        """Of what is in the window."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def requests(self):
        return [one["params"]["request"]["url"] for one in self.events if one.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the console shows, and what was thrown."""
        return [one for one in self.events
                if one.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]
