#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/graphite.md, followed to the letter on an empty Debian with a real carbon and graphite-web.

All its ```sh blocks are run as they are, in order: in a container without network, whose apt has an archive
with the packages that the page installs, and nothing else. Only the block that builds bpfpush is run outside, with
DESTDIR=, since the container has no compiler. What is rendered is then compared, value by value, with what a
json exporter beside the page's own was given.
"""

import base64
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal

from container import Unavailable, rootfs, run_container

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "peers"))
from expected import bound_text, clean, explicit, replaced, text_of

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, "..", "..")
SLOT_S = 10  # the first archive of the page's storage-schemas.conf, and the interval of bpfpush

# What the reader's machine has before he begins: an apt that finds packages, the name localhost. Then what
# `meson install` installed, and two exporters beside the first of the page: one to compare with, and that with tags.
MACHINE = """\
begun_s=$(date +%s)
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/packages ./' >/etc/apt/sources.list
apt-get -q update >/dev/null
echo '127.0.0.1 localhost' >/etc/hosts
tar -C /payload -c . | tar -C / -x --keep-directory-symlink
mkdir -p /etc/bpfpush/bpfpush.conf.d /var/log/bpfpush
cat >/etc/bpfpush/bpfpush.conf.d/60-beside.conf <<'END'
[agent]
# Not those of tests that run outside meanwhile: graphite-web would render thousands of series.
include_units = apache2.service bpfpush.service carbon-cache.service dbus.service hello.service init.scope systemd-*.service

[exporter beside]
type = json
path = /var/log/bpfpush/points
END
cat >/etc/bpfpush/bpfpush.conf.d/70-tagged.conf <<'END'
@TAGGED@END
"""

# What the service wrote is there within the time that the page says, unless the machine is busy.
WRITTEN = """\
is_written() {
	curl -sS --get -d from=-10min -d format=json -d target='servers.*.hello_service.bpfpush.file.io.write.count' http://localhost:8080/render |
		python3 -c 'import json, sys; sys.exit(sum(value or 0 for one in json.load(sys.stdin) for value, _ in one["datapoints"]) != 100 << 20)'
}
until_true is_written
"""

# Which series there are. The names of the files of tagged ones are hashes.
LOGGED = "sed -i 's/^LOG_CREATES.*/LOG_CREATES = True/' /etc/carbon/carbon.conf; grep -q '^LOG_CREATES = True' /etc/carbon/carbon.conf\n"

# Carbon is away for a collection; then all that was ever collected is rendered.
OUTAGE = """\
collections() { grep -o '"time_ns":[0-9]*' /var/log/bpfpush/points | sort -u | wc -l; }
wait_collections() { # N more
	until_true "[ \\$(collections) -ge $(($(collections) + $1)) ]"
}
# Carbon tells graphite-web of a new series once, and again only a hundred points later. It forgets whom it still had to
# tell when it ends, and logs only some of what failed.
tell_tags() {
	sed -n 's/.*creating database metric \\(.*;.*\\) (archive=.*/\\1/p' /var/log/carbon/creates.log* | sort -u |
		xargs -d '\\n' -n 100 bash -c 'for path; do set -- "$@" --data-urlencode "path=$path"; shift; done
			curl -sS "$@" http://localhost:8080/tags/tagMultiSeries' tell_tags >/dev/null
}
# Carbon ends without what has come since it began to write, which it does once a second, and without telling graphite-web
# of the newest series: it must have begun, and have told.
is_written_and_told() {
	local whisper=/var/lib/graphite/whisper
	for directory in servers _tagged; do
		[ -n "$(find $whisper/$directory -name '*.wsp' -newer /tmp/collected -print -quit)" ] || return 1
	done
	n_told=$(curl -sS --get --data-urlencode "expr=host.name=$(hostname)" http://localhost:8080/tags/findSeries | grep -o 'host.name=' | wc -l)
	[ "$(find $whisper/_tagged -name '*.wsp' | wc -l)" = "$n_told" ] || { tell_tags; return 1; }
}
wait_collections 1
touch /tmp/collected
until_true is_written_and_told
systemctl stop carbon-cache
wait_collections 1
systemctl start carbon-cache
wait_collections 1
cp /var/log/bpfpush/points /result/points
render() { # NAME TARGET
	curl -sS --get -d from=$begun_s -d format=json --data-urlencode "target=$2" http://localhost:8080/render >/result/$1
}
last_s=$(grep -o '"time_ns":[0-9]*' /result/points | sort | tail -1 | grep -o '[0-9]*' | cut -c1-10)
values() { # NAME...: the times of all points that have a value, up to the last collection
	(cd /result && cat "$@" 2>/dev/null) | grep -oE '[-0-9.e+]+, [0-9]+\\]' | grep -oE '[0-9]+\\]' | tr -d ']' | awk -v last="$last_s" '$1 <= last'
}
has_last() { # NAME: is there a point of the last collection?
	[ -n "$(values $1 | awk -v slot=$((last_s / 10 * 10)) '$1 >= slot')" ]
}
# Until the last collection is there and nothing was added to it or before it for two seconds. Later collections
# go on meanwhile: to render takes longer than an interval where the machine is busy. Carbon tells graphite-web of
# tags only some time after it has written a series: so both have as many values then, or all is quiet for longer.
quiet=0
while true; do
	before=$(values dotted tagged | wc -l)
	sleep 2
	render dotted 'servers.**'
	render tagged "seriesByTag('name=~^(bpfpush|process|system|otel)[.]')"
	if [ $before = $(values dotted tagged | wc -l) ] && has_last dotted && has_last tagged; then
		quiet=$((quiet + 1))
	else
		quiet=0
	fi
	[ $quiet = 0 ] || [ $(values dotted | wc -l) != $(values tagged | wc -l) ] || break
	[ $quiet != 2 ] || tell_tags
	[ $quiet -lt 4 ] || break
done
base64 /tmp/writes.png >/result/png
hostname >/result/host
journalctl --unit=bpfpush --output=cat >/result/journal
"""


def page():
    with open(os.path.join(ROOT, "docs", "graphite.md"), encoding="utf-8") as file:
        return file.read()


def blocks(language="sh"):
    """The commands of the page, block by block, or what is in its other blocks."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)


def targets():
    """What the page's table asks graphite-web: {question: target}."""
    table = page().split("\n| question | target |\n")[1].split("\n\n")[0]
    return dict(re.findall(r"^\| (.*) \| `(.*)` \|$", table, re.MULTILINE))


def is_building(block):
    return block.startswith("./dev build\n")


def script():
    """Each block is run by a bash of its own and must succeed; what block N says is in /result/block-N."""
    (tagged,) = blocks("ini")
    parts = [MACHINE.replace("@TAGGED@", tagged)]
    for number, block in enumerate(blocks(), 1):
        if not is_building(block):
            parts.append(LOGGED if "restart carbon-cache" in block else "")
            parts.append(f"cat >/tmp/block <<'END OF BLOCK'\n{block}END OF BLOCK\n"
                         f"bash -e /tmp/block >/result/block-{number} 2>&1 || {{ cat /result/block-{number}; exit {number}; }}\n")
            parts.append(WRITTEN if "--unit=hello" in block else "")
    asked = [f"render question-{number} {shlex.quote(target)}\n" for number, target in enumerate(targets().values(), 1)]
    return "".join([*parts, OUTAGE, *asked])


def packages():
    found = subprocess.run([os.path.join(HERE, "packages-build"), "--cached"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable("the packages of the page are not fetched: run tests/system/packages-build")
    return found.stdout.strip()


# --- names, as the page explains them ---------------------------------------------------------------

OWNERS = ("systemd.unit.name", "container.id", "process.linux.cgroup")


class Number(float):
    """One that is shown as it was written: 1.5e-05."""

    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self):
        return self.text


def ended(path, suffix):
    return path if path.endswith(suffix) else path + suffix


def dotted(host, point, suffix, upper):
    attributes = sorted(point["attributes"].items())
    owner = next((clean(value, owner=name) for name, value in attributes if name in OWNERS), "_")
    others = [replaced(name) if value is True else clean(text_of(value)) for name, value in attributes if name not in OWNERS]
    path = ".".join(["servers", replaced(host), owner, point["name"], *others])
    return (path + suffix if others else ended(path, suffix)) + (f".{upper.replace('.', '_')}" if upper else "")


def tagged(host, point, suffix, upper):
    texts = {name: clean(text_of(value), ".:@+") for name, value in point["attributes"].items()}
    texts.update({"host.name": host, **({"upper": upper} if upper else {})})
    return ";".join([ended(point["name"], suffix), *(f"{name}={texts[name]}" for name in sorted(texts))])


def values(point):
    """(suffix, upper bound, value) of each line that one collected point becomes."""
    if point["kind"] == "gauge":
        return [("", None, point["value"])]
    if point["kind"] == "sum":
        return [(".count", None, point["delta"])] if point["delta"] else []
    delta = point["delta"]
    if not delta["count"]:
        return []
    buckets = zip(*explicit(point["name"], point["unit"], delta))
    return [(".count", None, delta["count"]), (".sum", None, delta["sum"]),
            *((".bucket", bound_text(bound), count) for bound, count in buckets if count)]


class TestGraphiteDocs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stage = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-stage."))
        os.chmod(stage, 0o755)  # it becomes the container's root
        for block in filter(is_building, blocks()):
            subprocess.run(["bash", "-e", "-c", block], cwd=ROOT, env={**os.environ, "DESTDIR": stage}, check=True,
                           stdout=subprocess.DEVNULL)
        cls.result = run_container(script(), payload=stage, options=[
            "--private-network", "--suppress-sync=yes", f"--bind-ro={packages()}:/packages"])
        if cls.result.status:
            raise AssertionError(f"block {cls.result.status} of the page failed:\n{cls.result.output}")
        cls.host = cls.result.file("host").strip()
        cls.points = [json.loads(line, parse_float=Number) for line in cls.result.file("points").split("\n")[:-1]]

    def rendered(self, name):
        """{series: {time: value}} without the empty slots."""
        return {series["target"]: {time: value for value, time in series["datapoints"] if value is not None}
                for series in json.loads(self.result.file(name))}

    def block(self, text):
        """What the block with that text said."""
        return [self.result.file(f"block-{number}") for number, block in enumerate(blocks(), 1) if text in block][0]

    def slots(self):
        """{time of a collection: its slot}: each has one of its own, of the length of the interval, but that what happens in
        the slot in which the agent began counts for the next. One that comes late, by less than half an interval, keeps its slot."""
        slots, before_ns = {}, 0
        slot = (min(point["start_time_ns"] for point in self.points if "start_time_ns" in point) // 10**9 // SLOT_S + 1) * SLOT_S
        for time_ns in sorted({point["time_ns"] for point in self.points}):
            own = time_ns // 10**9 // SLOT_S * SLOT_S
            if own == slot + 2 * SLOT_S and time_ns - before_ns < SLOT_S * 15 * 10**8:
                own -= SLOT_S
            slot, before_ns = max(slot, own), time_ns
            slots[time_ns] = slot
        return slots

    def collected(self, name_of):
        """The same of what was collected."""
        expected, slots = {}, self.slots()
        for point in self.points:
            for suffix, upper, value in values(point):
                points, slot = expected.setdefault(name_of(self.host, point, suffix, upper), {}), slots[point["time_ns"]]
                if point["kind"] == "gauge":
                    points.setdefault(slot, value)
                else:
                    points[slot] = points.get(slot, 0) + Decimal(str(value))
        return {series: {slot: float(value) for slot, value in points.items()} for series, points in expected.items()}

    def compare(self, name, name_of):
        expected, rendered = self.collected(name_of), self.rendered(name)
        end = max(time for points in expected.values() for time in points)
        got = {series: {time: value for time, value in points.items() if time <= end} for series, points in rendered.items()}
        self.assertGreater(len(expected), 100)
        got = {series: points for series, points in got.items() if points}
        different = [f"{series}: rendered {got.get(series)}, collected {expected.get(series)}"
                     for series in sorted({*got, *expected}) if got.get(series) != expected.get(series)]
        self.assertEqual(different[:5], [], f"{len(different)} of {len(expected)}")

    def test_what_the_service_wrote_is_there(self):
        series = json.loads(self.block("hello_service.bpfpush.file.io.write.count&"))
        # Or two, if a collection came while it wrote.
        self.assertEqual([(one["target"], sum(value for value, _ in one["datapoints"] if value is not None)) for one in series],
                         [(f"servers.{self.host}.hello_service.bpfpush.file.io.write.count", 100 << 20)])

    def test_every_point_is_rendered_as_collected_the_outage_included(self):
        self.compare("dotted", dotted)

    def test_every_tagged_point_is_rendered_as_collected_the_outage_included(self):
        self.compare("tagged", tagged)

    def test_what_the_page_asks_has_answers(self):
        self.assertGreater(len(targets()), 5)
        for number, question in enumerate(targets(), 1):
            with self.subTest(question):
                self.assertTrue([points for points in self.rendered(f"question-{number}").values() if points])

    def test_the_graph_is_a_picture_of_the_size_asked_for(self):
        png = base64.b64decode(self.result.file("png"))
        self.assertEqual((png[:8], struct.unpack(">II", png[16:24])), (b"\x89PNG\r\n\x1a\n", (800, 400)))


if __name__ == "__main__":
    try:
        rootfs()
        packages()
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
