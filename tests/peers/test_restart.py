#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Carbon keeps adds up over restarts of the agent: amounts of each slot of its storage, though a later point of a slot
replaces an earlier one. With a service manager that keeps its state, the agent goes on; without one, it begins again."""

import math
import os
import sys
import tempfile
import time
import unittest
from decimal import Decimal

import expected
from agent import BPFPUSH, Follower, config_of
from carbon import Carbon
from rig import lacking

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bpf"))
from manager import PATIENCE_S, Manager

INTERVAL_S = 3  # longer than Carbon's step
RUNS = 4


class Restarts:
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        carbon = cls.enterClassContext(Carbon())
        manager = cls.enterClassContext(Manager())
        paths = [os.path.join(directory, f"lines-{run}.json") for run in range(RUNS)]
        config = os.path.join(directory, "bpfpush.conf")
        for run, path in enumerate(paths):
            with open(config, "w", encoding="utf-8") as file:
                file.write(config_of(f"{INTERVAL_S}s", path, {"carbon": {"type": "graphite", "dialect": "tagged", "endpoint": carbon.endpoint}}))
            agent = manager.start([BPFPUSH, "run", "--config", config])
            manager.wait_for("READY=1")
            Follower(path).wait_collections(2)
            time.sleep(0.7 * run)  # ended and begun at all places of a slot
            agent.terminate()
            assert agent.wait(PATIENCE_S) == 0
            manager.drain()
            assert manager.store
            if not cls.is_kept:
                manager.drop_all()
        cls.lines = [line for path in paths for line in expected.read_lines(path)]
        cls.want = cls.amounts(cls.lines)
        last = cls.amounts([line for line in cls.lines if line["time_ns"] == cls.lines[-1]["time_ns"]])
        carbon.settle(lambda totals: last.keys() <= totals.keys() and all(math.isclose(totals[key], cls.want[key]) for key in last))
        cls.points = carbon.points()

    @staticmethod
    def amounts(lines):
        naming, found = expected.Naming("tagged"), {}
        for line in lines:
            if line["kind"] == "sum" and line["delta"]:
                key = naming.sum_series(line)
                found[key] = found.get(key, 0) + Decimal(line["delta"])
            elif line["kind"] == "histogram" and line["delta"]["count"]:
                key = naming.series(line, ".count")
                found[key] = found.get(key, 0) + Decimal(line["delta"]["count"])
        return found

    def test_each_amount_is_what_all_runs_together_counted(self):
        have = {key: sum(Decimal(str(value)) for _, value in points) for key, points in self.points.items()}
        self.assertGreater(len(self.want), 50)  # 99 were seen on a machine that does nothing else
        differences = [f"{key}: Carbon has {have.get(key)}, counted were {value}" for key, value in self.want.items() if have.get(key) != value]
        self.assertEqual(differences[:5], [], f"{len(differences)} of {len(self.want)}")


class TestContinued(Restarts, unittest.TestCase):
    is_kept = True

    def test_series_go_on(self):
        starts = {}
        for line in self.lines:
            if line["name"] == "otel.sdk.metric_reader.collection.duration":
                starts.setdefault(str(line["attributes"]), set()).add(line["start_time_ns"])
        self.assertTrue(starts)
        self.assertEqual({len(times) for times in starts.values()}, {1})


class TestBegunAgain(Restarts, unittest.TestCase):
    is_kept = False


if __name__ == "__main__":
    if missing := lacking():
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main()
