#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway of docs/fleet.md: while its store is gone and its queue is full, it refuses what machines push, and afterwards
each count is in the store once."""

import time
import unittest
from collections import Counter

import collector
from machines import Fleet, Gateway, Store, raise_files_limit, soon

MACHINES, SERIES, PUSHES = 100, 10, 8
SMALLER = [("queue_size: 1000000", "queue_size: 3000"), ("min_size: 8192", "min_size: 500"), ("max_size: 16384", "max_size: 1000"),
           ("max_elapsed_time: 0", "max_elapsed_time: 0\n      initial_interval: 500ms\n      max_interval: 1s")]


class GatewayTest(unittest.TestCase):
    def test_what_a_full_gateway_refuses_arrives_later(self):
        raise_files_limit()
        with Store() as store:
            store.stop()
            with Gateway(store.url, *SMALLER) as gateway:
                with Fleet(gateway.url, soon(), "temporality=delta", "retry_max=2s", machines=MACHINES, series=SERIES,
                           interval=1000, pushes=PUSHES) as fleet:
                    while "sending queue is full" not in gateway.log_text():
                        self.assertIsNone(fleet.process.poll())
                        time.sleep(0.1)
                    store.come_back()
                    fleet.wait()
                # A gateway that is stopped gives up what it would try again.
                points = store.wait_points(lambda points: len(points) == fleet.counts["delivered"])
        found = Counter()
        for point in points:
            found[point["resource"]["service.instance.id"], point["attributes"]["n"]] += point["value"]
        self.assertEqual(found, {(f"machine-{machine}", n): PUSHES * (PUSHES + 1) // 2 * (machine + 1) * (n + 1)
                                 for machine in range(MACHINES) for n in range(SERIES)})
        self.assertGreater(fleet.counts["requests"], fleet.counts["delivered"] // SERIES)  # some were refused
        self.assertEqual(fleet.counts["delivered"], fleet.counts["pushed"])


if __name__ == "__main__":
    collector.main()
