#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Units, cgroups and programs whose names hold every framing byte: no receiver sees a line, a tag, a path or a series too much."""

import os
import shutil
import socket
import sys
import tempfile
import unittest
from contextlib import ExitStack

import expected
from agent import Agent, Follower, cgroup2_mount, config_of
from carbon import Carbon
from receiver import Receiver, each
from receivers import CollectorStatsd
from rig import INTERVAL_S, Rig, assert_held_to_127_bytes, by_second, lacking, statsd_exporter_series
from statsd import Statsd

LONG = b"n" * 225  # a cgroup whose path has more than 254 bytes has no name once it is gone
CGROUPS = [
    b"a:1|c", b"b|@0.1|#x:y,z", b"c;d=e", b"f,g=h", b"i[j=k]", b"l m", b"tab\tcr\r", b"...", b"..o", b".p", b"\xff\xfe", "q\u00e9\u2603".encode(),
    b"~r", b"s!^=", b"{t}{metric}", b"u$(v)`w`", b"%s%n", b"x*?", b"y'\"\\", b"<z>&", b"1\x01\x1b[31m", b"2\xc2", b"3" + LONG,
    b"7" + LONG,
]
UNITS = [b"4:1|c|#k:v.service", b"5;k=v 1 1700000000.service", b"..6.service", b"8.service\xe2\x80\xa8.service"]
FILES = [b"x\ny:9|c", b"..\n..x", b"p 1 1\nq 2 2", b"\xff\n\xfe", b";a=b;c=d", b"|#a:b,c:d", b"$(etc)`passwd`", b"__name__", b"a\r\nb 1 1",
         b"\x01\x02\x7fq", b" ", b"...", b"=", b"0", b"u" * 255]
ALIKE = {b"v;v": 10, b"v,v": 20, b"v_v": 30}  # cgroups that have one name where all bytes are replaced: datagrams
SCRIPT = "exec 3>/dev/udp/127.0.0.1/{port}; for ((i = 0; i < {datagrams}; i++)); do echo x >&3; done"


def act(directory, file, port, datagrams=10):
    """A program of that name in a new cgroup sends datagrams."""
    os.mkdir(directory)
    child = os.fork()
    if child == 0:
        with open(os.path.join(directory, b"cgroup.procs"), "wb") as procs:
            procs.write(b"0")
        os.execv(file, ["bash", "-c", SCRIPT.format(port=port, datagrams=datagrams)])
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{file} failed")
    os.rmdir(directory)


class TestHostileNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.programs = os.path.join(cls.directory, "programs").encode()
        os.mkdir(cls.programs)
        shutil.copy("/bin/bash", os.path.join(cls.directory, "bash"))
        for name in FILES:
            os.link(os.path.join(cls.directory, "bash"), os.path.join(cls.programs, name))
        cls.top = os.path.join(cgroup2_mount(), f"bpfpush-hostile-{os.getpid()}").encode()
        os.mkdir(cls.top)
        cls.addClassCleanup(os.rmdir, cls.top)
        with ExitStack() as stack:
            rig = Rig(stack)
            cls.run_agent(rig)
            cls.read(rig)

    @classmethod
    def run_agent(cls, rig):
        lines_path = os.path.join(cls.directory, "lines.json")
        config = rig.config(lines_path, more="[collector network]\nper_process = yes\n\n")
        with Agent(config.replace("[agent]\n", "[agent]\ncollectors = network\nbrief_processes = 1000\n")) as agent:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
                sink.bind(("127.0.0.1", 0))
                for index, name in enumerate(CGROUPS + UNITS):
                    program = os.path.join(cls.programs, FILES[index % len(FILES)])
                    act(os.path.join(cls.top, name), program, sink.getsockname()[1])
            Follower(lines_path).wait_collections(2)
            cls.status = agent.stop()
            cls.log = agent.log_text()
        cls.lines = expected.read_lines(lines_path)

    @classmethod
    def read(cls, rig):
        receivers = rig.receivers()
        each(receivers, Receiver.settle)
        cls.totals = {name: receiver.totals() for name, (receiver, _) in rig.ways.items()}
        want = {**expected.graphite_points(cls.lines, "dotted", INTERVAL_S), **expected.graphite_points(cls.lines, "tagged", INTERVAL_S)}
        cls.want_points = want
        cls.points = {name: by_second(receiver.points(), want) for name, (receiver, keys) in rig.ways.items()
                      if keys["type"] == "graphite"}
        cls.bad = {name: receiver.bad_lines() for name, (receiver, _) in rig.ways.items()}
        cls.files = {}
        for carbon in (rig.behind, rig.ways["carbon-dotted"][0]):
            cls.files[carbon.endpoint] = [os.path.join(directory, name) for directory, _, names in os.walk(carbon.directory)
                                          for name in names if not directory.startswith(carbon.path("logs"))]
            cls.files[carbon.endpoint] = [os.path.relpath(file, carbon.directory) for file in cls.files[carbon.endpoint]]

    def assert_same(self, have, want):
        differences = [f"{key}: arrived {have.get(key)}, expected {want.get(key)}"
                       for key in sorted({*have, *want}) if have.get(key) != want.get(key)]
        self.assertEqual(differences[:5], [], f"{len(differences)} of {len(want)}")

    def test_all_names_were_counted(self):
        mine = [line["attributes"] for line in self.lines if line["name"] == "bpfpush.udp.datagrams"]
        in_cgroups = [attributes for attributes in mine if os.path.basename(self.top).decode() in
                      attributes.get("process.linux.cgroup", "")]
        self.assertEqual(len({attributes["process.linux.cgroup"] for attributes in in_cgroups}), len(CGROUPS))
        in_units = [attributes for attributes in mine if attributes.get("systemd.unit.name", "").encode() in UNITS]
        self.assertEqual(len({attributes["systemd.unit.name"] for attributes in in_units}), len(UNITS))
        self.assertEqual(len({attributes["process.executable.name"] for attributes in in_cgroups + in_units}), len(FILES))
        self.assertEqual(self.status, 0, self.log)

    def test_no_receiver_finds_a_line_bad(self):
        self.assertEqual(self.bad, dict.fromkeys(self.bad, 0))

    def test_statsd_has_the_series_that_were_sent_and_no_other(self):
        self.assert_same(self.totals["statsd-graphite"], expected.statsd_totals(self.lines, "graphite"))
        self.assert_same(self.totals["statsd-plain"], expected.statsd_totals(self.lines, "plain"))

    def test_statsd_exporter_has_the_series_that_were_sent_and_no_other(self):
        for dialect in ("dogstatsd", "influx"):
            totals = expected.statsd_totals(self.lines, dialect)
            self.assert_same(self.totals[f"exporter-{dialect}"], {statsd_exporter_series(key): value for key, value in totals.items()})

    def test_the_collector_has_the_series_that_were_sent_and_no_other(self):
        self.assert_same(self.totals["collector-dogstatsd"], expected.statsd_totals(self.lines, "dogstatsd"))

    def test_collectd_has_the_series_that_were_sent_and_no_other(self):
        assert_held_to_127_bytes(self, self.totals["collectd"], expected.statsd_totals(self.lines, "plain"))

    def test_carbon_and_victoriametrics_have_the_points_that_were_sent_and_no_other(self):
        want = self.want_points
        for way in self.points:
            self.assert_same(self.points[way], want)

    def test_carbon_has_no_file_outside_its_directory(self):
        for files in self.files.values():
            outside = sorted(file for file in files if not file.startswith("whisper/"))
            self.assertEqual(outside, ["carbon.conf", "log", "pid", "storage-schemas.conf"])
            self.assertGreater(len(files), 300)


class TestNamesThatAreAlike(unittest.TestCase):
    """Series that differ only in bytes that are replaced arrive as series of their own, which have the same names after a restart
    and in another order."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.top = os.path.join(cgroup2_mount(), f"bpfpush-alike-{os.getpid()}").encode()
        os.mkdir(cls.top)
        cls.addClassCleanup(os.rmdir, cls.top)
        with Carbon() as carbon, CollectorStatsd() as collector, Statsd() as statsd, socket.socket(type=socket.SOCK_DGRAM) as sink:
            sink.bind(("127.0.0.1", 0))
            for order in (list(ALIKE.items()), list(reversed(ALIKE.items()))):
                cls.run_agent(carbon, collector, statsd, sink.getsockname()[1], order)
            cls.totals = each([carbon, collector, statsd], Receiver.settle)

    @classmethod
    def run_agent(cls, carbon, collector, statsd, port, order):
        """Each name in an interval of its own."""
        lines_path = os.path.join(cls.directory, "lines.json")
        with Agent(config_of("1s", lines_path, {
                "dotted": {"type": "graphite", "endpoint": carbon.endpoint, "dialect": "dotted"},
                "tagged": {"type": "graphite", "endpoint": carbon.endpoint, "dialect": "tagged"},
                "plain": {"type": "statsd", "endpoint": statsd.endpoint, "dialect": "plain"},
                "dogstatsd": {"type": "statsd", "endpoint": collector.endpoint, "dialect": "dogstatsd"},
        }).replace("[agent]\n", "[agent]\ncollectors = network\n")) as agent:
            for name, datagrams in order:
                act(os.path.join(cls.top, name), "/bin/bash", port, datagrams)
                Follower(lines_path).wait_collections(3)
            agent.stop()

    def values(self, receiver, is_tagged):
        """Of the series that all have one name but for the digits at its end."""
        return sorted(value for (name, tags), value in self.totals[receiver].items()
                      if "bpfpush.udp.datagrams" in name and bool(tags) == is_tagged and "v_v" in name + str(tags))

    def test_each_has_its_own_name_for_ever(self):
        want = sorted(2 * value for value in ALIKE.values())
        for receiver, is_tagged in (("carbon", False), ("carbon", True), ("collector", True), ("statsd", False)):
            self.assertEqual(self.values(receiver, is_tagged), want, (receiver, is_tagged))


if __name__ == "__main__":
    if missing := lacking():
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main()
