# SPDX-License-Identifier: Apache-2.0
"""The real graphite-web, which renders what a Carbon has stored: its HTTP API, as Grafana uses it."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request

from carbon import packages_of
from patience import PATIENCE_S
from receiver import Receiver

SETTINGS = """\
SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["*"]
TIME_ZONE = "UTC"
LOG_DIR = CONF_DIR = STORAGE_DIR = {directory!r}
WHISPER_DIR = {whisper!r}
STANDARD_DIRS = [WHISPER_DIR]
CARBONLINK_HOSTS = []
FIND_TIMEOUT = FETCH_TIMEOUT = {patience}  # 3 and 6 s are too few beside other work
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {database!r}}}}}
"""
# It draws pictures with this library, which only JSON does without.
CAIRO = "def __getattr__(name):\n    return None\n"


class GraphiteWeb(Receiver):
    name = "graphite-web"
    protocol = "tcp"

    def __init__(self, carbon):
        super().__init__()
        self.carbon = carbon
        self.begun_s = int(time.time())

    def write_config(self):
        self.write("local_settings.py", SETTINGS.format(
            directory=self.directory, whisper=self.carbon.path("whisper"), database=self.path("database"),
            patience=PATIENCE_S))
        self.write("cairocffi.py", CAIRO)

    def command(self):
        return ["/usr/bin/python3", "-m", "django", "runserver", "--noreload", self.endpoint]

    def environment(self):
        return {"PYTHONPATH": f"{self.directory}:{packages_of(self.home)}", "PYTHONDONTWRITEBYTECODE": "1",
                "DJANGO_SETTINGS_MODULE": "graphite.settings", "GRAPHITE_SETTINGS_MODULE": "local_settings"}

    def ask(self, path, data=None, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"http://{self.endpoint}{path}?{query}", data, timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(f"status {error.code}: {error.read().decode(errors='replace')[-500:]}") from error

    def render(self, target):
        """[(name, values without gaps)] since this was made"""
        fields = {"target": target, "from": self.begun_s, "until": "now", "format": "json"}
        answer = self.ask("/render", urllib.parse.urlencode(fields).encode())
        return [(series["target"], [value for value, _ in series["datapoints"] if value is not None]) for series in answer]

    def expand(self, query):
        """The paths that match."""
        return self.ask("/metrics/expand", query=query)["results"]
