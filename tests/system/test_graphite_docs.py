#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/graphite.md, followed to the letter on an empty Debian with a real carbon and graphite-web.

All its ```sh blocks are run as they are, in order: in a container without network, whose apt has an archive
with the packages that the page installs, and nothing else. What is rendered is then compared with what was sent.
"""

import base64
import json
import os
import re
import struct
import subprocess
import sys
import unittest

from container import Unavailable, rootfs, run_container

HERE = os.path.dirname(os.path.realpath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "graphite.md")

# What the reader's machine has before he begins: an apt that finds packages, and the name localhost.
MACHINE = """\
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/packages ./' >/etc/apt/sources.list
apt-get -q update >/dev/null
echo '127.0.0.1 localhost' >/etc/hosts
"""

# Points of our own, five of one plain and one tagged series, ten seconds apart, the last a slot ago.
HAND_MADE = """\
now=$(($(date +%s) / 10 * 10))
echo $now >/result/now
for i in 1 2 3 4 5; do
	echo "servers.vm1.made_service.by.hand.count $i.5 $((now - 60 + 10 * i))"
	echo "bpfpush.made.count;by=hand;host.name=vm1;systemd.unit.name=made.service $i $((now - 60 + 10 * i))"
done >/dev/tcp/127.0.0.1/2003
sleep 2
render() { # NAME CURL_OPTION...
	local name=$1
	shift
	curl -sS --get -d from=-2min -d format=json "$@" http://localhost:8080/render >/result/$name
}
render plain --data-urlencode 'target=servers.*.made_service.by.hand.count'
render tagged --data-urlencode "target=groupByTags(seriesByTag('name=bpfpush.made.count'),'sum','systemd.unit.name')"
curl -sS -d format=png -d from=-2min -d 'target=servers.*.made_service.by.hand.count' http://localhost:8080/render | base64 >/result/png
"""


def blocks():
    """The commands of the page, block by block."""
    with open(PAGE, encoding="utf-8") as file:
        found = re.findall(r"^```sh\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    assert found, "the page has no commands"
    return found


def script():
    """Each block is run by a bash of its own and must succeed; what block N says is in /result/block-N."""
    parts = [MACHINE]
    for number, block in enumerate(blocks(), 1):
        parts.append(f"cat >/tmp/block <<'END OF BLOCK'\n{block}END OF BLOCK\n"
                     f"bash -e /tmp/block >/result/block-{number} 2>&1 || {{ cat /result/block-{number}; exit {number}; }}\n")
    return "".join(parts)


def packages():
    found = subprocess.run([os.path.join(HERE, "packages-build"), "--cached"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable("the packages of the page are not fetched: run tests/system/packages-build")
    return found.stdout.strip()


class TestGraphiteDocs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = run_container(script() + HAND_MADE, timeout_s=200, options=[
            "--private-network", "--suppress-sync=yes", f"--bind-ro={packages()}:/packages"])

    def points(self, name):
        """What was rendered: [(legend, {time: value})] without the empty slots."""
        return [(series["target"], {time: value for value, time in series["datapoints"] if value is not None})
                for series in json.loads(self.result.file(name))]

    def test_every_command_of_the_page_succeeds(self):
        self.assertEqual(self.result.status, 0, self.result.output)

    def test_points_in_a_dotted_path_are_rendered_as_they_were_sent(self):
        now = int(self.result.file("now"))
        self.assertEqual(self.points("plain"), [("servers.vm1.made_service.by.hand.count",
                                                 {now - 60 + 10 * i: i + 0.5 for i in range(1, 6)})])

    def test_tagged_points_are_found_by_their_tags(self):
        now = int(self.result.file("now"))
        self.assertEqual(self.points("tagged"), [("bpfpush.made.count;systemd.unit.name=made.service",
                                                  {now - 60 + 10 * i: i for i in range(1, 6)})])

    def test_the_graph_is_a_picture(self):
        png = base64.b64decode(self.result.file("png"))
        self.assertEqual((png[:8], struct.unpack(">II", png[16:24])), (b"\x89PNG\r\n\x1a\n", (330, 250)))


if __name__ == "__main__":
    try:
        rootfs()
        packages()
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
