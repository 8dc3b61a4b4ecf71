#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/operate.md, followed to the letter in a container without network, with a real Collector at localhost:4318.

All its ```sh blocks are run in order, each by a bash of its own; each must succeed. Before a block that installs a package,
that package is put into the current directory: the old one, the new one, the old one again.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import unittest

from container import Unavailable, rootfs, run_container
from packages import NotBuilt, debs

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.append(os.path.join(HERE, "..", "peers"))
from collector import Unavailable as NoCollector, collector_path, points_of

COLLECTOR = """\
receivers: {otlp: {protocols: {http: {endpoint: 127.0.0.1:4318}}}}
exporters: {file: {path: /result/points, flush_interval: 100ms}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [otlp], exporters: [file]}}
"""

# The reader's machine before he begins.
MACHINE = """\
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
echo '127.0.0.1 localhost' >/etc/hosts
systemd-run --quiet --unit=receiver /receiver --config /payload/collector.yaml
until (: </dev/tcp/127.0.0.1/4318) 2>/dev/null; do sleep 0.1; done
mkdir /tmp/here
cd /tmp/here
wait_delivered() { # a request that has been sent since
	local before=$(wc -c </result/points)
	until_true "[ \\$(wc -c </result/points) != $before ]"
}
starts() { journalctl --sync; journalctl --unit=bpfpush --output=cat MESSAGE_ID=3f2a64e6c3b54d0f9d7b2c1e8a90f411 | wc -l; }
wait_started() { # more often than so many times
	until_true "[ \\$(starts) -gt $1 ]"
}
"""

# Without the drop-in, the credential is missing, until a unit sets it itself.
MISSING = """\
mv /etc/systemd/system/bpfpush.service.d/credentials.conf /tmp
systemctl daemon-reload
systemctl restart bpfpush && exit 101
systemctl show bpfpush --property=ExecMainStatus --property=ActiveState --value >/result/missing
bpfpush check >>/result/missing 2>&1 || exit 102
journalctl --sync; journalctl --unit=bpfpush --output=cat --lines=20 >>/result/missing
printf '[Service]\nSetCredential=collector-token:Bearer\\x20x\n' >/etc/systemd/system/bpfpush.service.d/set.conf
systemctl daemon-reload
systemctl reset-failed bpfpush
systemctl start bpfpush || exit 104
wait_delivered
rm /etc/systemd/system/bpfpush.service.d/set.conf
mv /tmp/credentials.conf /etc/systemd/system/bpfpush.service.d
systemctl daemon-reload
systemctl restart bpfpush
"""


def blocks():
    with open(os.path.join(ROOT, "docs", "operate.md"), encoding="utf-8") as file:
        return re.findall(r"^```sh\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


def script():
    parts, packages = [MACHINE], iter((0, 1, 0))
    for number, block in enumerate(blocks(), 1):
        if "/bpfpush_*.deb" in block:
            parts.append(f"rm -f *.deb; cp /payload/{next(packages)}/*.deb .\n")
        if "apt-get remove" in block:
            parts.append("wait_delivered\njournalctl --unit=bpfpush --output=cat >/result/journal\n")
        parts.append(f"started=$(starts)\ncat >/tmp/block <<'END OF BLOCK'\n{block}END OF BLOCK\n"
                     f"bash -e /tmp/block >/result/block-{number} 2>&1 || {{ cat /result/block-{number}; journalctl --unit=bpfpush --output=cat | tail; exit {number}; }}\n")
        if "systemctl reload" in block:
            parts.append("wait_started $started\n")
        if "LoadCredential=" in block:
            parts.append("ls -l /run/credentials/bpfpush.service >/result/credentials\nwait_delivered\n" + MISSING + "wait_delivered\n")
    parts.append("for path in /etc/bpfpush /var/lib/bpfpush /var/log/bpfpush /run/bpfpush /usr/bin/bpfpush; do [ ! -e $path ] || echo $path; done >/result/left\n")
    return "".join(parts)


class TestOperateDocs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        payload = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-operate."))
        os.chmod(payload, 0o755)
        for number, deb in enumerate(debs()):
            os.mkdir(os.path.join(payload, str(number)))
            shutil.copy(deb, os.path.join(payload, str(number)))
        with open(os.path.join(payload, "collector.yaml"), "w", encoding="ascii") as file:
            file.write(COLLECTOR)
        cls.result = run_container(script(), payload=payload, options=[
            "--private-network", "--suppress-sync=yes", f"--bind-ro={collector_path()}:/receiver"])
        if cls.result.status:
            raise AssertionError(f"block {cls.result.status} of the page failed:\n{cls.result.output}")

    def block(self, text):
        """What the block with that text said."""
        return [self.result.file(f"block-{number}") for number, block in enumerate(blocks(), 1) if text in block][0]

    def test_a_wrong_file_is_named_and_the_service_goes_on(self):
        self.assertRegex(self.block("99-wrong"), r"(?m)^active$")

    def test_the_receiver_is_tried(self):
        self.assertRegex(self.block("check --connect"), r"exporter central: http://localhost:4318: works: HTTP 200")

    def test_the_journal_is_explained(self):
        self.assertIn("The agent has started to count", self.block("--catalog"))

    def test_the_credential_is_there_and_said_to_be_missing_where_it_is(self):
        self.assertIn("collector-token", self.result.file("credentials"))
        missing = self.result.file("missing").split("\n")
        self.assertEqual(missing[:2], ["78", "failed"])
        self.assertIn("headers: %d/collector-token: not checked, because systemd gives this file only to the service", self.result.file("missing"))
        self.assertIn("headers: %d/collector-token: the service has no such credential", self.result.file("missing"))

    def test_totals_go_on_until_a_stop(self):
        """Of a unit that is always there; the service began anew once, after the credential was missing."""
        starts, last = [], 0
        for line in self.result.file("points").splitlines():
            for point in points_of(json.loads(line)):
                if point["name"] == "process.context_switches" and point["attributes"].get("systemd.unit.name") == "systemd-journald.service" \
                        and point["attributes"].get("process.context_switch.type") == "voluntary":
                    if point["start_time_ns"] not in starts:
                        starts.append(point["start_time_ns"])
                        last = 0
                    self.assertGreaterEqual(point["value"], last)
                    last = point["value"]
        self.assertEqual(len(starts), 2, starts)

    def test_purged_nothing_is_left(self):
        self.assertEqual(self.result.file("left"), "")


if __name__ == "__main__":
    try:
        rootfs()
        collector_path()
        debs()
    except (Unavailable, NoCollector, NotBuilt) as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
