# SPDX-License-Identifier: Apache-2.0
"""docs/collectors.md names the metrics and events of each shipped collector, and nothing else, as `bpfpush list --json`
does."""

import json
import re
import sys
import unittest

import program

BPFPUSH = program.arguments()
DIRECTORY = sys.argv.pop(1)
NAMES = sys.argv.pop(1).split(",")


# They run only with fexit or kprobes, or with a PMU: not on every machine.
CHOOSY = {"accept", "filesystem", "hardware", "slow"}
HEADINGS = ["Metrics", "What it counts", "Events", "What it shows", "Settings", "Limits", "Cost"]


class CollectorsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = BPFPUSH.run("list", "--json", "--for=1ms", "--config=/dev/null", f"--collector-directory={DIRECTORY}", *NAMES)
        cls.listed = {item["collector"]: item for item in map(json.loads, lines.splitlines())}
        parts = re.split(r"^## (.*)\n", program.read("docs/collectors.md"), flags=re.MULTILINE)
        cls.sections = dict(zip(parts[1::2], parts[2::2]))

    def test_every_collector_has_a_section(self):
        self.assertEqual(set(self.listed) | CHOOSY, set(NAMES))
        self.assertEqual(set(self.sections) - set(NAMES), {"What applies to all"})
        self.assertEqual(set(NAMES) - set(self.sections), set())

    def parts(self, name):
        """{heading: text} of a collector's section, in their order."""
        parts = re.split(r"^### (.*)\n", self.sections[name], flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2]))

    def test_the_headings_are_the_same_everywhere(self):
        for name in NAMES:
            found = list(self.parts(name))
            self.assertEqual(found, [heading for heading in HEADINGS if heading in found], name)
            self.assertTrue({"Metrics", "What it counts", "Cost"} <= set(found) or
                            {"Events", "What it shows", "Cost"} <= set(found), name)

    def test_the_tables_are_what_the_program_lists(self):
        for name, item in self.listed.items():
            rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \| `([^`]+)` \|", self.sections[name], re.MULTILINE)
            metrics = [(metric["name"], metric["kind"], metric["unit"]) for metric in item["metrics"]]
            self.assertEqual(sorted(rows), sorted(metrics), name)
            rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \|", self.parts(name).get("Events", ""), re.MULTILINE)
            events = [(event["name"], event["severity"].lower()) for event in item["events"]]
            self.assertEqual(sorted(rows), sorted(events), name)
            self.assertTrue(metrics or events)

    def test_every_attribute_of_a_descriptor_is_in_its_table(self):
        for name in NAMES:
            text = program.read(f"bpf/{name}.conf")
            labels = re.findall(r"^\[label (\w+).*\]\nname = (\S+)", text, re.MULTILINE)
            metrics = re.findall(r"^\[(?:metric|event) (\w+).*\]\nname = (\S+)\n((?:\w.*\n)*)", text, re.MULTILINE)
            self.assertEqual(len(metrics), text.count("[metric ") + text.count("[event "))
            for table, metric, rest in metrics:
                row = re.search(rf"^\| `{re.escape(metric)}` .*", self.sections[name], re.MULTILINE).group(0)
                for attribute in [attribute for its_table, attribute in labels if its_table == table]:
                    self.assertIn(f"`{attribute}`", row)
                for attribute, value in re.findall(r"^attribute = ([\w.]+)=(\S+)", rest, re.MULTILINE):
                    self.assertRegex(row, rf"`{re.escape(attribute)}` = [\w, ]*\b{value}\b")

    def test_every_setting_is_told_with_its_default(self):
        for name, item in self.listed.items():
            for setting in item["settings"]:
                if "default" not in setting:  # every collector's, in the section "What applies to all"
                    self.assertRegex(setting["name"], r"^per_process$")
                    continue
                told = self.parts(name).get("Settings", "")
                self.assertRegex(told, rf"`{setting['name']}` = .*\b{setting['default']}`? \(default\)", name)

    def test_the_hooks_that_are_named_are_those_of_the_objects(self):
        for name, item in self.listed.items():
            hooks = {entry["section"].split("/", 1)[1] for entry in item["programs"]}
            for hook in re.findall(r"`(?:tp_btf|iter)/(\w+)`", self.sections[name]):
                self.assertIn(hook, hooks, name)


unittest.main()
