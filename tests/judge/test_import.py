#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""contrib/import-ebpf-exporter: each part of ebpf_exporter's configurations and what it becomes for the object of
sample.bpf.c, what is refused with its line, and files that are not what they should be."""

import importlib.util
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from patience import PATIENCE_S

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
IMPORTER = os.path.join(ROOT, "contrib", "import-ebpf-exporter")
COUNTER = """metrics:
  counters:
    - name: %s
      help: Some calls
"""
LABELS = """      labels:
"""
LABEL = """        - {name: %s, size: %d, decoders: [%s]}
"""
HISTOGRAM = """metrics:
  histograms:
    - {name: calls_total, help: h, labels: [{name: bucket, size: 8, decoders: [{name: uint}]}], %s}
"""
SPAN = """tracing:
  spans:
    - ringbuf: calls
      %s
      labels:
"""
SPAN_LABELS = "".join(LABEL % label for label in (
    ("trace_id", 16, "{name: hex}"), ("parent_span_id", 8, "{name: hex}"), ("span_id", 8, "{name: hex}"),
    ("span_monotonic_timestamp_ns", 8, "{name: uint}"), ("span_duration_ns", 8, "{name: uint}"), ("span_name", 16, "{name: string}"),
    ("cpu.first", 4, "{name: uint}")))
WIDE = [("disk", 4, "{name: majorminor}"), ("operation", 4, "{name: uint}, {name: static_map, static_map: {0: read, 1: write}}"),
        ("reason", 4, "{name: uint}"), ("port", 2, "{name: uint}"), ("flag", 2, "{name: uint}"),
        ("cgroup", 8, "{name: uint}, {name: cgroup}, {name: regexp, regexps: ['^/sys/fs/cgroup/(.*)$']}"),
        ("stack", 24, "{name: kstack}"), ("command", 16, "{name: string}, {name: regexp, regexps: ['^(kswapd).*$', '^.*$']}"),
        ("peer", 16, "{name: inet_ip}"), ("bucket", 8, "{name: uint}")]
# (an expression of RE2, what it is in POSIX)
EXPRESSIONS = [("^a.*$", "^a.*$"), ("^(a)b$", "^(a)b$"), ("a+", "(a+)"), (r"^\d+\.\w$", r"^[0-9]+\.[[:alnum:]_]$"), (r"^[\w.-]+$", "^[[:alnum:]_.-]+$"),
               (r"^[^\]a]$", "^[^]a]$"), (r"^[a\-z]$", "^[az-]$"), (r"^a\-b #c$", "^a[-]b [#]c$"), (r"\Aa|b\z", "(^a|b$)"), (r"^(?P<n>x)$", "^(x)$"),
               ("^(?:a|b)$", "(^(a|b)$)"), (r"^(a)(?:b)$", "^(a)(b)$"), (r"^\S[^\s]$", "^[^[:space:]][^[:space:]]$"),
               ("^x{,3}$", "^x[{],3[}]$"), ("^x{1,3}$", "^x{1,3}$"), (" (a) ", "[ ](a)[ ]")]
NO_EXPRESSIONS = [("(a)(b)", "more than one group, which ebpf_exporter never matches"), ("(?i)a", "(?i"), ("a*?", "*?, which takes as little as it can"),
                  (r"\bа", r"\b"), ("(?:a)(b)", "(?: before the group"), ("[a", "a [ without its ]"), ("a\\", "a \\ at the end"), ("[\\", "a \\ at the end"),
                  ("a{2}?", "}?, which takes as little as it can"), ("a**", "**, which repeats twice"), ("a\nb", "a character that is not printable"),
                  ("a\ud800", "a character that is not printable"), ("a{500}{500}", "{500}{, which repeats twice"), ("[z-a]", "regcomp(3) refuses it"),
                  ("((a{100}){100})b", "more than one group, which ebpf_exporter never matches"),
                  ("(?:a{100}){100}", "it repeats more than 1000 times, or is longer than 4000 characters"), ("[ #]", "# or ; after a blank, which begins a comment")]
# (text of the YAML, line, what is said)
REFUSED = [
    ("metrics: [", 1, "this is not YAML: "),
    ("a\n", 1, "the file must be a mapping of keys and values"),
    ("metrics: {}\n", 0, "there are no metrics and no spans in it"),
    ("# cachestat\nprograms:\n  - name: cachestat\n    metrics: {}\n    kprobes: {vfs_read: count}\n    code: int count() {}\n", 3,
     "this is a configuration of ebpf_exporter 1, with C for BCC in it, which nothing here compiles: rewrite that C for libbpf, "
     "or write a probe; docs/ebpf_exporter.md, \"Configurations of ebpf_exporter 1\", says how"),
    (COUNTER % "none_total", 3, "the object has no map none_total"),
    (COUNTER % "a;b", 3, "the name is not a map's name: a;b"),
    (COUNTER % "untyped_total", 3, "map untyped_total has no type of its keys: in the C source, write __type(key, …) instead of key_size"),
    ("metrics:\n  counters:\n    - {name: calls_total}\n", 3, "a counter lacks help"),
    (COUNTER % "disks_total" + LABELS + LABEL % ("x", 4, "{name: uint}"), 3, "the labels of disks_total cover 4 bytes of a key of 8"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: magic}"), 6, "label x: no type is like the decoders magic"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: inet_ip}"), 6, "label x: an address has 4 or 16 bytes, not 8"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: uint}, {name: regexp, regexps: [a]}, {name: errno}"), 6, "label x: decoders in this "
     "order have no equal: uint, regexp, errno"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, ""), 6, "label x lacks decoders"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 0, "{name: uint}"), 6, "label x lacks its size"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: uint}, {name: static_map, static_map: {1: ' '}}"), 6,
     "label x: this cannot be written: 1:"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: uint}, {name: static_map, static_map: {1: a, x: error}}"), 6,
     "label x: a key of an integer must be a number: x"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: string}, {name: regexp, regexps: ['a*?']}"), 6,
     "label x: an expression has no equal in POSIX: a*?: *?, which takes as little as it can"),
    (COUNTER % "calls_total" + "      labels: 5\n", 5, "labels must be a list"),
    (HISTOGRAM % "bucket_type: exp3, bucket_max: 3", 3, "bucket_type is none of exp2, exp2zero, linear and fixed: exp3"),
    (HISTOGRAM % "bucket_type: exp2", 3, "calls_total has no buckets: bucket_max must be above bucket_min"),
    (HISTOGRAM % "bucket_type: fixed", 3, "calls_total has no bucket_keys"),
    (HISTOGRAM % "bucket_type: fixed, bucket_keys: [1, 1]", 3, "bucket_keys must be rising whole numbers, as the map's keys are: 1"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 1e99", 3, "bucket_max is not a number: 1e99"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 1.5", 3, "bucket_max is not a whole number from 0 on: 1.5"),
    ("metrics:\n  histograms:\n    - {name: calls_total, help: h, bucket_type: exp2, bucket_max: 3}\n", 3, "the last label of calls_total must be the "
     "bucket, with the decoder uint"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 64", 3, "bucket_max of exp2 must be at most 63: 64"),
    (HISTOGRAM % "bucket_type: linear, bucket_max: 1023", 3, "calls_total must have at most 1023 buckets, up to 2^53"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 3, bucket_multiplier: -1", 3, "bucket_multiplier must be above 0 and have at most 15 digits: -1"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 3, bucket_multiplier: 0.1234567890123456", 3, "bucket_multiplier must be above 0 and have at most"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 010", 3, "bucket_max begins with 0, and is octal in some versions of YAML: 010; write it without"),
    (HISTOGRAM % "bucket_type: exp2, bucket_max: 3, help: i", 3, "a histogram has help twice; keep one"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, "{name: uint}, {name: static_map, static_map: {01: a}}"), 6, "label x: 01 begins with 0, and no "),
    (COUNTER % "disks_total" + LABELS + LABEL % ("x", 4, "{name: uint}") + LABEL % ("X", 4, "{name: uint}"), 7, "disks_total has a label x already; "),
    (COUNTER % "'plain_total\n\n'", 3, "the name is not a map's name: plain_total"),
    (COUNTER % "calls_total" + LABELS + LABEL % ("x", 8, '{name: string}, {name: regexp, regexps: ["a\\n[program x]"]}'), 6, "label x: an expression has "
     "no equal in POSIX: a [program x]: a character that is not printable"),
    ("tracing:\n  spans:\n    - ringbuf: some_spans\n", 3, "the object has no map some_spans"),
    (SPAN % "" + LABEL % ("trace_id", 16, "{name: hex}"), 3, "span calls has no label span_monotonic_timestamp_ns, and each span has a beginning"),
    (SPAN % "" + SPAN_LABELS + LABEL % ("x", 3, "{name: uint}"), 3, "no structure of the object looks like the labels of "
     "calls: declare the record as one, and add a line \"const struct NAME *keep_NAME;\" to the source"),
    (SPAN % "name: two words" + SPAN_LABELS, 4, "the span's name is not a lower-case dotted name: two words"),
    (SPAN % "" + SPAN_LABELS + "    - {ringbuf: calls}\n", 13, "span calls is on line 3 already; keep one"),
    (COUNTER % "events_total" + "      perf_event_array: true\n      flush_interval: soon\n", 6, "flush_interval is not a duration such as 1h30m: soon"),
    (COUNTER % "events_total" + "      perf_event_array: true\n", 3, "no structure of the object, or more than one, looks like the labels of "
     "events_total: declare the record as one"),
    (COUNTER % "plain_total" + "kaddrs: ['a b']\n", 5, "not a name of a symbol: a b"),
    (COUNTER % "plain_total" + "cgroup_id_map: {name: none, regexps: [a]}\n", 5, "the object has no map none"),
    (COUNTER % "plain_total" + "cgroup_id_map: {name: wanted, type: tree}\n", 5, "type of cgroup_id_map is neither hash nor cgrp_storage: tree"),
]


def load():
    loader = importlib.machinery.SourceFileLoader("importer", IMPORTER)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("importer", loader))
    loader.exec_module(module)
    return module


class TestImport(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-import."))
        cls.object = os.path.join(cls.directory, "sample.bpf.o")
        subprocess.run([*shlex.split(os.environ["BPF_COMPILE"]), "-c", os.path.join(HERE, "sample.bpf.c"), "-o", cls.object], check=True)

    def run_importer(self, *words):
        done = subprocess.run([IMPORTER, "--bpfpush=", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def imported(self, text, *options, status=0):
        """(the descriptor without its first lines, what was said without paths)"""
        path = os.path.join(self.directory, "sample.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = self.run_importer("--force", *options, path)
        self.assertEqual(done.returncode, status, done.stderr)
        conf = ""
        if "written as" in done.stderr:
            with open(os.path.join(self.directory, "sample.conf"), encoding="utf-8") as file:
                conf = re.sub(r"(?s)^.*?\n\n", "", file.read(), count=1)
        return conf, [line for line in done.stderr.replace(path + ":", "").splitlines() if not line.strip().startswith(("written as", "not written", "note: bpfpush is not on"))]

    def counter(self, name, *labels, more=""):
        conf, said = self.imported(COUNTER % name + more + (LABELS if labels else "") + "".join(LABEL % label for label in labels))
        return conf.split("description = Some calls\n")[1], said

    def test_a_counter_keeps_its_name_for_prometheus(self):
        conf, said = self.imported(COUNTER % "calls_total" + LABELS + LABEL % ("nr", 8, "{name: uint}"))
        self.assertEqual((conf, said), ("[metric calls_total]\nname = ebpf_exporter.calls\nunit = 1\ndescription = Some calls\n\n"
                                        "[label calls_total]\nname = nr\n", []))
        conf, _ = self.imported(COUNTER % "calls_total" + LABELS + LABEL % ("nr", 8, "{name: uint}"), "--prefix=my.own")
        self.assertIn("name = my.own.calls\n", conf)

    def test_decoders_become_types(self):
        for decoders, lines in (
                ("{name: uint}, {name: syscall}", "as = syscall\n"), ("{name: uint}, {name: errno}", "as = errno\n"),
                ("{name: uint}, {name: cgroup}", "as = cgroup-path\n"), ("{name: ksym}", "as = ksym\n"),
                ("{name: dname}", "as = dname\n"), ("{name: ifname}", "as = ifindex\n"), ("{name: uint}, {name: pci_vendor}", "as = pci-vendor\n"),
                ("{name: uint}, {name: static_map, static_map: {0: no, 0x1: b}, allow_unknown: true}", "value = 0=no\nvalue = 0x1=b\n")):
            with self.subTest(decoders):
                self.assertEqual(self.counter("calls_total", ("x", 8, decoders)), ("\n[label calls_total]\nname = x\n" + lines, []))

    def test_names_of_a_kernels_enum_are_the_running_kernels(self):
        conf, said = self.counter("calls_total", ("reason", 8, "{name: uint}, {name: static_map, static_map: {2: SKB_DROP_REASON_A, 3: SKB_DROP_REASON_B}}"))
        self.assertEqual(conf, "\n[label calls_total]\nname = reason\nas = kernel-enum skb_drop_reason\n")
        self.assertEqual(len(said), 1)

    def test_expressions_become_posix(self):
        importer = load()
        for text, expected in EXPRESSIONS:
            self.assertEqual(importer.posix(text), expected, text)
        for text, why in NO_EXPRESSIONS:
            with self.assertRaises((ValueError, IndexError), msg=text) as raised:
                importer.posix(text)
            self.assertEqual(str(raised.exception), why, text)

    def test_a_histogram_with_all_kinds_of_members(self):
        conf, said = self.imported("metrics:\n  histograms:\n    - {name: wide_seconds, help: 'Two\n        lines #5', bucket_type: exp2, bucket_min: 0, "
                                   "bucket_max: 26, bucket_multiplier: 1e-6, labels: [" +
                                   ",".join("{name: %s, size: %d, decoders: [%s]}" % label for label in WIDE) + "]}\n")
        self.assertEqual(said, ["4: note: wide_seconds: exp2 0..26 sum 27 is for programs that round up, as newer macros of ebpf_exporter do; if yours "
                                "takes the logarithm and rounds down, write exp2 floor 0..26 sum 27"])
        self.assertEqual(conf, "[metric wide_seconds]\nname = ebpf_exporter.wide\nunit = s\ndescription = Two lines#5\nbuckets = exp2 0..26 sum 27\n"
                         "bucket = bucket\nmultiply = 0.000001\n\n[label wide_seconds.disk.dev]\nname = disk\nas = stat-dev\n\n"
                         "[label wide_seconds.disk.op]\nname = operation\nvalue = 0=read\nvalue = 1=write\n\n[label wide_seconds.reason]\nname = reason\n"
                         "as = integer\n\n[label wide_seconds.port]\nname = port\n\n[label wide_seconds.flag]\nname = flag\nas = integer\n\n"
                         "[label wide_seconds.cgroup]\nname = cgroup\nas = cgroup-path\nmatch = ^/(.*)$\nother = drop\n\n[label wide_seconds.stack]\n"
                         "name = stack\nas = ksym\n\n[label wide_seconds.comm]\nname = command\nmatch = ^(kswapd).*$\nmatch = ^.*$\nother = drop\n\n"
                         "[label wide_seconds.address]\nname = peer\nas = ipv6\n")

    def test_buckets(self):
        for text, lines in (("exp2zero, bucket_min: 0, bucket_max: 17", "buckets = exp2zero 0..17 sum 18\nbucket = key\n"),
                            ("linear, bucket_max: 20", "buckets = linear 0..20 step 1 sum 21\nbucket = key\n"),
                            ("linear, bucket_max: 20, bucket_multiplier: 50", "buckets = linear 0..1000 step 50 sum 21\nbucket = key\n"),
                            ("linear, bucket_max: 20, bucket_multiplier: 0.5", "buckets = linear 0..20 step 1 sum 21\nbucket = key\nmultiply = 0.5\n"),
                            ("fixed, bucket_keys: [1, 5.0, 60], bucket_multiplier: 1024", "buckets = fixed 1 5 60 sum 61\nbucket = key\nmultiply = 1024\n")):
            with self.subTest(text):
                self.assertEqual(self.imported(HISTOGRAM % ("bucket_type: " + text))[0],
                                 "[metric calls_total]\nname = ebpf_exporter.calls_total\nunit = 1\ndescription = h\n" + lines)

    def test_processors_and_maps_without_labels(self):
        uint = "{name: uint}"
        self.assertEqual(self.counter("softirqs_total", ("vec", 4, uint), ("cpu", 2, uint)), ("cpu = cpu\n\n[label softirqs_total]\nname = vec\n", []))
        self.assertEqual(self.counter("percpu_total", ("cpu", 2, uint)), ("cpu = cpu\n\n[label percpu_total]\nas = none\n", []))
        self.assertEqual(self.counter("plain_total"), ("\n[label plain_total]\nas = none\n", []))
        conf, said = self.counter("several_total")
        self.assertEqual((conf, len(said)), ("\n[label several_total]\nas = none\n", 1))
        conf, said = self.counter("pages")
        self.assertEqual((conf, len(said)), ("kind = gauge\n\n[label pages]\nas = none\n", 1))

    def test_records(self):
        more = "      perf_event_array: true\n      flush_interval: 1h30m\n"
        self.assertEqual(self.counter("events_total", ("cgroup", 8, "{name: uint}, {name: cgroup}"), more=more)[0],
                         "expire = 5400s\nrecord = u64\n\n[label events_total]\nname = cgroup\nas = cgroup-path\n")
        self.assertEqual(self.counter("events_total", ("pid", 4, "{name: uint}"), ("comm", 16, "{name: string}"), more=more)[0],
                         "expire = 5400s\nrecord = event\n\n[label events_total.pid]\nname = pid\n\n[label events_total.comm]\nname = comm\n")

    def test_records_with_a_member_for_padding(self):
        more = "      perf_event_array: true\n"
        conf, _ = self.imported(COUNTER % "events_total" + more + LABELS + "        - {name: pid, size: 4, padding: 4, decoders: [{name: uint}]}\n" +
                                LABEL % ("id", 8, "{name: uint}"))
        self.assertIn("record = padded\n", conf)
        self.assertIn("[label events_total.pad]\nas = none\n", conf)

    def test_spans(self):
        conf, said = self.imported(SPAN % "service: 'one #two'" + SPAN_LABELS)
        self.assertEqual((conf, said), (
            "[span calls]\nname = calls\ndescription = Spans of calls\nrecord = call_span\nattribute = service.name=one#two\n\n"
            "[label calls.base.trace_high]\nas = trace-id\n\n[label calls.base.trace_low]\nas = trace-id\n\n[label calls.base.parent]\nas = parent-span-id\n\n"
            "[label calls.id]\nas = span-id\n\n[label calls.start]\nas = monotonic-time\n\n[label calls.duration]\nas = duration\n\n"
            "[label calls.name]\nname = span_name\n\n[label calls.cpu]\nname = cpu.first\n\n[label calls.rest]\nas = none\n", []))

    def test_equal_labels_of_several_maps_are_one_section(self):
        labels = LABELS + LABEL % ("disk", 4, "{name: uint}") + LABEL % ("%s", 4, "{name: uint}")
        conf, _ = self.imported(COUNTER % "disks_total" + labels % "op" + (COUNTER % "more_disks_total" + labels % "operation").split("counters:\n")[1])
        self.assertEqual(re.findall(r"\[label.*\]", conf), ["[label *.dev]", "[label disks_total.op]", "[label more_disks_total.op]"])

    def test_symbols_and_cgroups(self):
        conf, _ = self.imported(COUNTER % "plain_total" + "kaddrs: [jiffies]\ncgroup_id_map: {name: wanted, type: hash, regexps: ['^.*(system.slice/.*)$']}\n")
        self.assertTrue(conf.endswith("[param kaddr_jiffies]\nsymbol = jiffies\ndescription = The address of jiffies in the kernel\n\n"
                                      "[cgroups wanted]\nmatch = ^.*(system.slice/.*)$\n"), conf)

    def test_anchors_and_keys_that_ebpf_exporter_does_not_have(self):
        conf, said = self.imported("x: &x [{name: nr, size: 8, decoders: [{name: uint}]}]\nmetrics:\n  counters:\n    - &c {name: calls_total, help: h, "
                                   "labels: *x}\n    - {<<: *c, name: wanted, typo: 1}\n")
        self.assertEqual(re.findall(r"\[.*\]", conf), ["[metric calls_total]", "[label calls_total]", "[metric wanted]", "[label wanted]"])
        self.assertEqual([line for line in said if "key" in line], ["5: note: ebpf_exporter has no key typo here; it is left out",
                                                                    "1: note: ebpf_exporter has no key x here; it is left out"])

    def test_what_is_refused_names_its_line(self):
        for text, line, expected in REFUSED:
            with self.subTest(text):
                conf, said = self.imported(text, status=1)
                self.assertEqual(len(said), 1, said)
                self.assertTrue(said[0].strip().startswith(f"{line}: {expected}" if line else expected), said[0])
                self.assertFalse([line for line in conf.splitlines() if line.startswith("[metric") and "plain_total" not in line])

    def test_a_metric_twice_and_all_mistakes_of_one(self):
        conf, said = self.imported(COUNTER % "plain_total" + "    - {name: plain_total, help: h}\n", status=1)
        self.assertEqual((conf.count("[metric"), said), (1, ["5: metric plain_total is on line 3 already; keep one"]))
        _, said = self.imported(COUNTER % "disks_total" + LABELS + LABEL % ("x", 4, "{name: magic}") + LABEL % ("y", 4, "{name: trick}"), status=1)
        _, wrong = self.imported(COUNTER % "disks_total" + LABELS + LABEL % ("x", 2, "{name: uint}") + LABEL % ("y", 6, "{name: uint}"), status=1)
        self.assertEqual(wrong, [f"{line}: label {what} of the key, is not one member of it; the members are dev at 0, op at 4"
                                 for line, what in ((6, "x, bytes 0 to 1"), (7, "y, bytes 2 to 7"))])
        self.assertEqual(said, ["6: label x: no type is like the decoders magic", "7: label y: no type is like the decoders trick"])

    def test_typos_of_labels_and_decoders_are_named(self):
        _, said = self.counter("calls_total", ("x", 8, "{name: uint, regexp: a}], paddding: [1"))
        self.assertEqual(said, ["6: note: ebpf_exporter has no key paddding here; it is left out",
                                "6: note: ebpf_exporter has no key regexp here; it is left out"])

    def test_paths_of_cgroups_begin_at_their_root(self):
        for text, match, notes in (("^/sys/fs/cgroup/(a.*)$", "^/(a.*)$", 0), (r"^\/sys\/fs\/cgroup\/a$", "^/a$", 0), ("sys/fs/cgroup/a", "(^/a)", 0),
                                   ("/sys/fs/cgroup/(a)", "^/(a)", 0), ("^/sys/fs/cgroup$", "^/$", 0), ("^/sys/fs/cgroup(/.*)$", "^(/.*)$", 0),
                                   (r"^/sys/fs/cgrou[p]/a$", "^/sys/fs/cgrou[p]/a$", 1), ("^.*(a/.*)$", "^.*(a/.*)$", 1)):
            with self.subTest(text):
                conf, said = self.counter("calls_total", ("x", 8, "{name: uint}, {name: cgroup}, {name: regexp, regexps: ['%s']}" % text))
                self.assertIn(f"\nmatch = {match}\n", conf)
                self.assertEqual(len([line for line in said if "lack /sys/fs/cgroup" in line]), notes, said)
        conf, said = self.imported(COUNTER % "plain_total" + "cgroup_id_map: {name: wanted, regexps: ['^.*a$']}\n")
        self.assertEqual(len([line for line in said if "lack /sys/fs/cgroup" in line]), 1)

    def test_notes(self):
        for text, expected in (("linear, bucket_max: 20, bucket_multiplier: 50", "multiplies the sum by 50"),
                               ("linear, bucket_max: 20, bucket_multiplier: 0.5", "bucket_multiplier 0.5 is taken for a unit"),
                               ("linear, bucket_max: 20", "key 21 is the sum")):
            _, said = self.imported(HISTOGRAM % ("bucket_type: " + text))
            self.assertEqual([expected in line for line in said].count(True), 1, said)
            self.assertEqual("where it ends" in str(said), "50" in text, said)
        for name, decoders, expected in (("calls_total", "{name: hex}", "in the order of memory"), ("signed_total", "{name: uint}", "-1 is -1"),
                                         ("calls_total", "{name: string}, {name: regexp, regexps: ['^(a|ab)b*$']}", "POSIX takes the longest")):
            _, said = self.counter(name, ("x", 8, decoders))
            self.assertIn(expected, "".join(said))

    def test_files_that_are_not_regular_and_files_that_cannot_be_written(self):
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            path = os.path.join(directory, "sample.yaml")
            os.mkfifo(path)
            done = self.run_importer(path)
            self.assertEqual((done.returncode, "is not a regular file" in done.stderr), (1, True))
            os.unlink(path)
            with open(path, "w", encoding="utf-8") as file:
                file.write(COUNTER % "plain_total")
            os.mkdir(os.path.join(directory, "sample.conf"))
            done = self.run_importer("--force", f"--objects={self.directory}", path)
            self.assertEqual((done.returncode, sorted(os.listdir(directory))), (1, ["sample.bpf.o", "sample.conf", "sample.yaml"]))
            done = self.run_importer("--force", os.path.join(directory, "sample.yaml\n"))
            self.assertEqual(done.returncode, 1)

    def test_bpfpush_has_the_last_word(self):
        path = os.path.join(self.directory, "sample.yaml")
        for metric, status in (("calls_total", 0), ("calls_total\n      help2: x", 0)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(COUNTER % metric + LABELS + LABEL % ("nr", 8, "{name: uint}"))
            done = self.run_importer("--force", "--bpfpush=" + os.environ["BPFPUSH"], path)
            self.assertEqual((done.returncode, "not on PATH" in done.stderr), (status, False), done.stderr)
        # Each is said where the YAML asks for it.
        for text, lines in ((COUNTER % "calls_total" + LABELS + LABEL % ("nr", 8, "{name: dname}"), [6]),
                            (COUNTER % "disks_total" + LABELS + LABEL % ("x", 4, "{name: dname}") + LABEL % ("y", 4, "{name: dname}"), [6, 7]),
                            (COUNTER.replace("Some", "S" * 20000) % "calls_total" + LABELS + LABEL % ("nr", 8, "{name: uint}"), [4])):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = self.run_importer("--force", "--bpfpush=" + os.environ["BPFPUSH"], path)
            said = [line for line in done.stderr.splitlines() if "bpfpush check refuses it: " in line or "a line of a descriptor has" in line]
            self.assertEqual([int(re.match(r".*?\.yaml:(\d+): ", line)[1]) for line in said], lines, done.stderr)
            self.assertEqual(done.returncode, 1)

    def test_a_name_of_a_collector_of_bpfpush_is_not_taken(self):
        shipped = {name[:-len(".conf")] for name in os.listdir(os.path.join(ROOT, "bpf")) if name.endswith(".conf")}
        self.assertLessEqual(shipped, load().SHIPPED)
        path = os.path.join(self.directory, "syscalls.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(COUNTER % "plain_total")
        output = os.path.join(self.directory, "output")
        os.link(self.object, os.path.join(self.directory, "syscalls.bpf.o"))
        self.assertEqual(self.run_importer("-o", output, path).returncode, 0)
        self.assertEqual(sorted(os.listdir(output)), ["ebpf-syscalls.bpf.o", "ebpf-syscalls.conf"])
        done = self.run_importer("-o", output, path)
        self.assertEqual((done.returncode, done.stderr.count("is there already; write --force to replace it")), (1, 1))

    def test_hostile_files_end_with_a_sentence(self):
        cases = ["x: " * 5000, "[" * 3000, "&a [*a]", "metrics: &m {counters: [*m]}", "\0", "a: !!python/object:os.system x",
                 "metrics: {counters: [{name: [1], help: {}}]}", "metrics: {<<: 5}", "? {a: b}\n: c", "metrics: &a {<<: *a}", "- " * 900, "é\ud800",
                 "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 12)) + "metrics: *a11",
                 HISTOGRAM % "bucket_type: exp2, bucket_max: 3, bucket_multiplier: 1e-300000000"]
        for text in cases:
            with self.subTest(text[:20]):
                path = os.path.join(self.directory, "sample.yaml")
                with open(path, "wb") as file:
                    file.write(text.encode("utf-8", "surrogatepass"))
                done = self.run_importer("--force", path)
                self.assertEqual((done.returncode, bool(done.stderr)), (1, True))

    def test_damaged_objects_end_with_a_sentence(self):
        with open(self.object, "rb") as file:
            good = file.read()
        importer, chance = load(), random.Random(1)
        path = os.path.join(self.directory, "damaged.bpf.o")
        for i in range(300):
            data = bytearray(good[:chance.randrange(len(good))] if i % 3 == 0 else good)
            for _ in range(chance.randrange(1, 40) if data else 0):
                data[chance.randrange(len(data))] = chance.randrange(256)
            with open(path, "wb") as file:
                file.write(data)
            try:
                importer.Object(path)
            except importer.Mistake as mistake:
                self.assertIn("not an object that clang compiled for BPF with -g: ", mistake.text)


if __name__ == "__main__":
    try:
        import yaml  # noqa: F401
    except ImportError:
        print("skipped: needs PyYAML (Debian: python3-yaml)")
        sys.exit(77)
    unittest.main(verbosity=2)
