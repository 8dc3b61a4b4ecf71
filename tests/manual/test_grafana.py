# SPDX-License-Identifier: Apache-2.0
"""contrib/grafana: the dashboards have the form that Grafana reads, are what make-dashboards writes, and name only metrics
and attributes that docs/collectors.md and bpfpush.conf(5) have, which other tests compare with the program."""

import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import program

sys.path.append(os.path.join(program.ROOT, "tests", "peers"))
sys.dont_write_bytecode = True
import grafana

SCRIPT = os.path.join(grafana.DIRECTORY, "make-dashboards")
NAMES = ("prometheus", "graphite")
ALERTS = "contrib/grafana/bpfpush-alerts.yml"
# Of resources, of overflow series and of receivers.
OTHER_LABELS = {"otel_component_name", "otel_component_type", "otel_metric_overflow", "bpfpush_overflow_reason",
                "bpfpush_collector_name", "bpfpush_program_name", "bpfpush_map_name", "system_device"}


def load_script():
    loader = importlib.machinery.SourceFileLoader("make_dashboards", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_dashboards", loader))
    loader.exec_module(module)
    return module


def documented():
    """{name: (kind, unit, the rest of its row)}"""
    rows = re.findall(r"^\| `([\w.]+)` \| (\w+) \| `([^`]+)` \|(.*)", program.read("docs/collectors.md"), re.MULTILINE)
    found = {name: (kind, unit, rest) for name, kind, unit, rest in rows}
    own = re.findall(r"^\.It Cm ([\w.]+) Pq (\w+), Ql (\S+)$", program.page("bpfpush.conf.5"), re.MULTILINE)
    return {**found, **{name: (kind, unit, None) for name, kind, unit in own}}


def label(name):
    return re.sub(r"\W", "_", name)


class GrafanaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script, cls.documented = load_script(), documented()
        cls.dashboards = {name: grafana.load(f"bpfpush-{name}.json") for name in NAMES}

    def each_panel(self):
        for name, dashboard in self.dashboards.items():
            for panel in grafana.panels_of(dashboard):
                yield name, panel

    def test_they_are_what_the_script_writes(self):
        with tempfile.TemporaryDirectory() as top:
            subprocess.run([SCRIPT, top], check=True)
            for name in NAMES:
                with open(os.path.join(top, f"bpfpush-{name}.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file), self.dashboards[name], "run contrib/grafana/make-dashboards")

    def test_every_panel_has_a_title_a_unit_and_a_sentence(self):
        for _, panel in self.each_panel():
            self.assertTrue(panel["title"])
            self.assertRegex(panel["description"], r"^[a-z0-9A-Z].*\.$", panel["title"])
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])
            self.assertTrue(panel["targets"], panel["title"])

    def test_ids_and_places_are_unique(self):
        for name, dashboard in self.dashboards.items():
            panels = [*dashboard["panels"], *[inner for row in dashboard["panels"] for inner in row.get("panels", [])]]
            ids = [panel["id"] for panel in panels]
            self.assertEqual(len(ids), len(set(ids)), name)
            taken = set()
            for panel in panels:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertLessEqual(place["x"] + place["w"], 24)
                self.assertFalse(taken & cells, (name, panel["title"]))
                taken |= cells
        for _, panel in self.each_panel():
            letters = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(letters), len(set(letters)))

    def test_data_sources_and_variables_are_those_of_the_dashboard(self):
        for name, panel in self.each_panel():
            known = {*grafana.variables_of(self.dashboards[name]), "__rate_interval"}
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], {"type": name, "uid": "${datasource}"})
                text = target.get("expr") or target.get("target")
                self.assertLessEqual({found[0] or found[1] for found in re.findall(r"\$\{(\w+)\}|\$(\w+)", text)}, known)

    def test_every_metric_of_the_table_is_documented_so(self):
        for metric in self.script.METRICS.values():
            with self.subTest(metric.name):
                kind, unit, row = self.documented[metric.name]
                self.assertEqual((metric.kind, metric.unit), (kind, unit))
                attributes = [attribute.rstrip("?") for attribute in metric.attributes]
                self.assertEqual(attributes, sorted(attributes))
                for attribute in attributes if row else []:
                    self.assertIn(f"`{attribute}`", row)

    def names_in_prometheus(self):
        """Of all metrics and labels."""
        backend = self.script.Prom()
        names = set(OTHER_LABELS)
        for name, (kind, unit, row) in self.documented.items():
            suffix = backend.suffixes.get(unit, "")
            name = label(name) if label(name).endswith(suffix) else label(name) + suffix
            names |= {"sum": {name + "_total"}, "gauge": {name}, "updowncounter": {name}, "histogram": {name, name + "_bucket", name + "_count"}}[kind]
            names |= {label(attribute) for attribute in re.findall(r"`([\w.]+)`", row or "")}
        return names | {label(attribute) for attribute in self.script.OWNERS}

    def test_promql_names_only_what_is_documented(self):
        known = self.names_in_prometheus()
        texts = [target["expr"] for name, panel in self.each_panel() if name == "prometheus" for target in panel["targets"]]
        alerts = re.findall(r"^        expr: \|\n((?: {10}.*\n)+)", program.read(ALERTS), re.MULTILINE)
        self.assertEqual(len(alerts), program.read(ALERTS).count("- alert: "))
        for text in [*texts, *alerts]:
            with self.subTest(text):
                self.assertEqual(set(re.findall(r"\b(?:bpfpush|process|system|systemd|otel|dns|network|disk)_\w+", text)) - known, set())

    def test_paths_of_graphite_name_only_what_is_documented(self):
        for name, panel in self.each_panel():
            for target in panel["targets"] if name == "graphite" else []:
                paths = re.findall(r"\$\{prefix\}\$host\.[^.]+\.([^,()]+)", target["target"])
                self.assertTrue(paths)
                for path in paths:
                    self.assertTrue(path.startswith("**.") or any(path.startswith(metric) for metric in self.documented), path)

    def test_alerts_speak_of_panels_that_are_there(self):
        titles = {panel["title"] for panel in grafana.panels_of(self.dashboards["prometheus"])}
        named = re.findall(r'panel "([^"]+)"', " ".join(program.read(ALERTS).split()))
        self.assertGreater(len(named), 2)
        self.assertEqual(set(named) - titles, set())


unittest.main()
