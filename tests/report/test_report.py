# SPDX-License-Identifier: Apache-2.0
"""bpfpush report: every number of the page is one of the same run's JSON, and the page works in a real browser."""
import collections
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bpf"))
sys.dont_write_bytecode = True

import browser
import harness

AGENT = os.environ["BPFPUSH"]
OPTIONS = ["--config=/dev/null", "--collector-directory=" + os.path.join(os.path.dirname(AGENT), "bpf")]
# Names of cgroups; what they would do in a page that forgets to escape them is seen in the console and in the tables.
HOSTILE = ["<script>throw 1<!--", "\"'><b onclick=x>", "\u05d0\u05d1\u05d2 \u202eright-to-left", "宽字符" * 20, "&lt;&amp;", "x" * 200]
CALLS, FAILED, FAST, SLOW = 100000, 20000, 300, 40  # more calls than others make: tables have 50 rows
PARENT = f"bpfpush-test-report-{os.getpid()}"
# Makes known calls in each cgroup: getpgid, unlink that fails, and sleeps of 1 ms and 16 ms.
WORKLOAD = f"""
import os, sys, time
for path in sys.argv[1:]:
    if not os.fork():
        with open(os.path.join(path, "cgroup.procs"), "w") as file:
            file.write("0")
        for i in range({CALLS}):
            os.getpgid(0)
        for i in range({FAILED}):
            try:
                os.unlink("/nonexistent/x")
            except FileNotFoundError:
                pass
        for i in range({FAST}):
            time.sleep(0.001)
        for i in range({SLOW}):
            time.sleep(0.016)
        os._exit(0)
for path in sys.argv[1:]:
    os.wait()
"""
# What the page holds: of each metric and each answer its table, cell by cell, and what the heat map says.
READ = """
[...document.querySelectorAll("details, section")].filter(part => part.querySelector(":scope > .scroll > table")).map(part => ({
    id: part.id,
    name: part.querySelector("h3, h2").textContent,
    collector: part.closest("section").querySelector("h2").textContent,
    heads: [...part.querySelectorAll("th")].map(head => head.textContent),
    left: part.querySelector(":scope > p:last-child")?.textContent ?? "",
    rows: [...part.querySelector("tbody").rows].map(row => [...row.cells].map(cell => [cell.textContent, cell.dataset.n ?? null])),
    cells: [...part.querySelectorAll("svg rect title")].map(title => title.textContent),
}))
"""
NUMBERS = ["total", "value", "count", "rate", "sum", "mean", "p50", "p90", "p99", "max"]
OVERVIEW = {
    "cpu%": ("bpfpush.scheduler.cpu.time", {}, 100),
    "memory": ("bpfpush.cgroup.memory.usage", {}, 1),
    "tasks": ("bpfpush.cgroup.tasks", {}, 1),
    "stall%": ("bpfpush.cgroup.pressure.time", {}, 100),
    "calls/s": ("bpfpush.syscalls", {}, 1),
    "errs/s": ("bpfpush.syscalls", {"error.type": harness.ANY}, 1),
    "disk-rd": ("process.disk.io", {"disk.io.direction": "read"}, 1),
    "disk-wr": ("process.disk.io", {"disk.io.direction": "write"}, 1),
    "net-in": ("process.network.io", {"network.io.direction": "receive"}, 1),
    "net-out": ("process.network.io", {"network.io.direction": "transmit"}, 1),
    "file-rd": ("bpfpush.file.io", {"disk.io.direction": "read"}, 1),
    "file-wr": ("bpfpush.file.io", {"disk.io.direction": "write"}, 1),
    "conns/s": ("bpfpush.tcp.connections", {}, 1),
    "retrans/s": ("bpfpush.tcp.retransmits", {}, 1),
    "faults/s": ("process.paging.faults", {}, 1),
}
OWNERS = ("process.linux.cgroup", "systemd.unit.name", "container.id")


def report(path, *arguments, **options):
    return subprocess.run([AGENT, "report", *OPTIONS, f"--output={path}", *arguments], text=True, capture_output=True, check=False,
                          timeout=harness.PATIENCE_S, **options)


class Page:
    """A counted run: the page's path, its parts, and the points of the same run."""

    def __init__(self, directory):
        self.path, points = os.path.join(directory, "report.html"), os.path.join(directory, "points.json")
        parent = os.path.join(harness.cgroup_root(), PARENT)
        paths = [os.path.join(parent, name) for name in HOSTILE]
        os.mkdir(parent)
        try:
            for path in paths:
                os.mkdir(path)
            self.said = report(self.path, f"--points={points}", "--duration=clock_nanosleep", "--whole-machine", "--",
                               sys.executable, "-c", WORKLOAD, *paths)
        finally:
            for path in [path for path in paths if os.path.exists(path)] + [parent]:
                os.rmdir(path)
        if self.said.returncode:
            raise AssertionError(self.said.stderr)
        with open(points, encoding="utf-8") as file:
            self.points = harness.Points(map(json.loads, file))

    def read(self, tab):
        tab.open(self.path)
        self.parts = {part["id"]: part for part in tab.ask(READ)}


page = None


def setUpModule():
    global directory, page
    directory = tempfile.TemporaryDirectory(prefix="bpfpush-report-")
    page = Page(directory.name)


def tearDownModule():
    directory.cleanup()


def text_of(name, value):
    """An attribute as the page shows it."""
    if name == "container.id":
        return value[:12]
    text = str(value).lower() if isinstance(value, bool) else str(value).replace("\n", " ")
    text = re.sub("[\u202a-\u202e\u2066-\u2069]", "?", text)  # would turn the line around
    return text + " (no unit)" if name in OWNERS and text == "/" else text


def quantile(total, fraction):
    if total["count"] == 1 and "sum" in total:
        return total["sum"]
    bounds, counts, rank, below = total["bounds"], total["counts"], fraction * total["count"], 0
    is_exponential = bounds[0] == 0 and len(bounds) > 2
    for i, here in enumerate(counts):
        if not here or below + here < rank:
            below += here
            continue
        low = 0 if not i else bounds[1] ** 2 / bounds[2] if i == 1 and is_exponential else bounds[i - 1]
        return low if i == len(bounds) else low + (bounds[i] - low) * (rank - below) / here
    return None


def numbers_of(point):
    """What the page should say of a point, by heading."""
    if point["kind"] == "gauge":
        return {"value": point["value"]}
    seconds = (point["time_ns"] - point["start_time_ns"]) / 1e9
    total = point["total"]
    if point["kind"] == "sum":
        return {"total": total, "rate": total / seconds}
    last = max((i for i, n in enumerate(total["counts"]) if n), default=None)
    return {"count": total["count"], "rate": total["count"] / seconds,
            "sum": total.get("sum") if total["count"] else None, "mean": total["sum"] / total["count"] if total["count"] and "sum" in total else None,
            "p50": quantile(total, 0.5), "p90": quantile(total, 0.9), "p99": quantile(total, 0.99),
            "max": total["bounds"][last] if last is not None and last < len(total["bounds"]) else None}


def key_of(point, heads):
    """The texts of a point's row below the heads of attributes."""
    return tuple(next((text_of(name, value) for name, value in point["attributes"].items()
                       if (name in OWNERS if head == "unit" else name == head or name.endswith("." + head))), "-") for head in heads)


# What follows the digits that are seen, and what they are multiplied by. In the table of units, "M" is also MiB.
SCALES = {"": [1], "k": [1e3], "M": [1e6, 1 << 20], "G": [1e9, 1 << 30], "T": [1e12, 1 << 40], "K": [1 << 10], "%": [0.01], "d": [86400], "h": [3600], "min": [60], "s": [1], "ms": [1e-3], "µs": [1e-6],
          "ns": [1e-9], "B": [1], "KiB": [1 << 10], "MiB": [1 << 20], "GiB": [1 << 30], "TiB": [1 << 40]}


class NumbersTest(unittest.TestCase):
    """The page and the JSON of one run."""

    @classmethod
    def setUpClass(cls):
        if not browser.find():
            raise unittest.SkipTest("this machine lacks a Chromium without a screen (package chromium-headless-shell)")
        with browser.Browser() as tab:
            page.read(tab)

    def check_text(self, text, number, where):
        """What is seen is the number, rounded. Where there is none, or a level of 0, it is "-"."""
        if text == "-":
            self.assertLessEqual(float(number or 0), 0, where)
            return
        digits, unit = re.fullmatch(r"(?:[≤>] )?([\d.]+)(\D*)", text).groups()
        half = 10 ** -len(digits.partition(".")[2]) * 0.5001
        self.assertTrue([scale for scale in SCALES[unit.removesuffix("/s")] if abs(float(digits) - float(number) / scale) <= half],
                        (where, text, number))

    def check_row(self, part, row, points):
        n = next(i for i, head in enumerate(part["heads"]) if head in NUMBERS)
        key = tuple(text for text, _ in row[:n])
        self.assertTrue(key in points, (part["name"], key))
        for head, (text, number) in zip(part["heads"][n:], row[n:]):
            expected = numbers_of(points[key]).get(head)
            if head not in NUMBERS:
                continue
            self.check_text(text, number, (part["name"], key, head))
            self.assertEqual(number is None, expected is None, (part["name"], key, head))
            if number is not None:
                self.assertAlmostEqual(float(number), expected, delta=abs(expected) * 1e-9, msg=(part["name"], key, head))

    def check_part(self, part, points):
        self.assertTrue(points, part["name"])
        if any("otel.metric.overflow" in point["attributes"] for point in points):
            self.skipTest("others have filled the tables")
        self.assertEqual(len(part["rows"]), min(50, len(points)), part["name"])
        left = len(points) - 50
        self.assertEqual(part["left"], f"{left} more row{' is' if left == 1 else 's are'} not shown." if left > 0 else "", part["name"])
        heads = [head for head in part["heads"][:-1] if head not in NUMBERS]
        by_key = {key_of(point, heads): point for point in points}
        self.assertEqual(len(by_key), len(points))
        for row in part["rows"]:
            self.check_row(part, row, by_key)

    def of(self, part, **attributes):
        scope = "self" if part["collector"] == "bpfpush itself" else part["collector"]
        return [point for point in page.points.select(part["name"], **attributes) if attributes or point["collector"] == scope]

    def test_each_number_of_a_metric_is_in_the_points(self):
        metrics = [part for part in page.parts.values() if re.match(r"m\d", part["id"])]
        self.assertEqual(len(metrics), len({(point["collector"], point["name"]) for point in page.points}))
        for part in metrics:
            with self.subTest(part["name"]):
                self.check_part(part, self.of(part))

    def test_errors_are_all_points_that_have_one(self):
        errors = [part for part in page.parts.values() if re.match(r"e\d", part["id"])]
        self.assertIn("bpfpush.syscalls", {part["name"] for part in errors})
        for part in errors:
            with self.subTest(part["name"]):
                self.check_part(part, page.points.select(part["name"], **{"error.type": harness.ANY}))

    def test_the_counted_calls_of_each_hostile_cgroup(self):
        rows = {tuple(text for text, _ in row[:3]): row[3][1] for row in page.parts["m0"]["rows"]}
        errors = next(part for part in page.parts.values() if part["id"] == "e0")
        rows |= {tuple(text for text, _ in row[:3]): row[3][1] for row in errors["rows"]}
        for name in HOSTILE:
            with self.subTest(name):
                unit = next(text for text, *_ in rows if text.startswith(text_of(OWNERS[0], f"/{PARENT}/" + name[:50])))
                self.assertEqual(float(rows[unit, "getpgid", "-"]), CALLS)
                self.assertEqual(float(rows[unit, "unlink", "ENOENT"]), FAILED)

    def test_units(self):
        part = page.parts["units"]
        owners = {text_of(name, point["attributes"][name]): (name, point["attributes"][name])
                  for point in page.points for name in OWNERS if name in point["attributes"]}
        self.assertGreaterEqual(len(part["rows"]), len(HOSTILE))
        for row in part["rows"]:
            owner = owners.get(row[0][0])
            for head, (text, number) in zip(part["heads"][1:], row[1:]):
                self.check_text(text, number, (row[0], head))
                if head == "p99wait" or not owner:
                    continue
                name, attributes, factor = OVERVIEW[head]
                points = page.points.select(name, **attributes, **{owner[0]: owner[1]})
                shown = [point["value"] if point["kind"] == "gauge" else numbers_of(point)["rate"] for point in points]
                expected = (min(max(shown, default=0), 1) if head == "stall%" else sum(shown)) * factor
                self.assertAlmostEqual(float(number), expected, delta=abs(expected) * 1e-9, msg=(owner, head))
        at = part["heads"].index("p99wait")
        for row in part["rows"]:
            for point in page.points.select("bpfpush.scheduler.run_queue.duration"):
                if row[0][0] in map(str, point["attributes"].values()):
                    expected = numbers_of(point)["p99"] or 0
                    self.assertAlmostEqual(float(row[at][1]), expected, delta=abs(expected) * 1e-9)

    def test_heat_maps_hold_each_value_once(self):
        heats = [part for part in page.parts.values() if part["cells"]]
        self.assertLessEqual({"bpfpush.syscall.duration", "bpfpush.scheduler.run_queue.duration"}, {part["name"] for part in heats})
        for part in heats:
            with self.subTest(part["name"]):
                rows = collections.Counter()
                for cell in part["cells"]:
                    _, limits, n = re.fullmatch(r"([\d:.]+), (.*): (\d+)", cell).groups()
                    rows[limits] += int(n)
                expected = [sum(column) for column in zip(*(point["total"]["counts"] for point in self.of(part)))]
                self.assertEqual([rows[limits] for limits in sorted(rows, key=lower)], [n for n in expected if n])

    def test_two_latencies_are_two_bands(self):
        part = next(part for part in page.parts.values() if part["name"] == "bpfpush.syscall.duration")
        rows = collections.Counter()
        for cell in part["cells"]:
            _, limits, n = re.fullmatch(r"([\d:.]+), (.*): (\d+)", cell).groups()
            rows[limits] += int(n)
        # A busy machine wakes sleepers late, but not early. Python sleeps until a moment, so what calls late sleeps less.
        self.assertGreater(rows["977µs to 1.95ms"], 0)
        self.assertGreater(rows["15.6ms to 31.2ms"], 0)
        self.assertGreaterEqual(sum(rows.values()), len(HOSTILE) * (FAST + SLOW))
        self.assertLess(sum(n for limits, n in rows.items() if lower(limits) < 0.0009), len(HOSTILE) * FAST / 10)
        self.assertGreater(sum(n for limits, n in rows.items() if lower(limits) > 0.015), len(HOSTILE) * SLOW * 9 / 10)


def lower(limits):
    number, unit = re.match(r"([\d.]+)(\D+)? to", limits).groups()
    return float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "min": 60, "h": 3600, "d": 86400, "KiB": 1024, "MiB": 1 << 20}.get(unit, 1)


CONTRAST = """
(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = text => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
                           return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
    const behind = node => { for (; node; node = node.parentElement) { const c = rgba(getComputedStyle(node).backgroundColor);
                                                                       if (c[3] == 255) return c; } return [255, 255, 255]; };
    let worst = [21, ""];
    for (const node of document.querySelectorAll("h1, h2, h3, p, dt, dd, a, th, td, label, summary span, svg text")) {
        const style = getComputedStyle(node), fore = rgba(node.closest("svg") ? style.fill : style.color);
        const pair = [light(fore), light(behind(node))].sort((a, b) => b - a), ratio = (pair[0] + .05) / (pair[1] + .05);
        if (ratio < worst[0])
            worst = [ratio, node.outerHTML.slice(0, 100)];
    }
    return [worst, behind(document.body)];
})()
"""


@unittest.skipUnless(browser.find(), "this machine lacks a Chromium without a screen (package chromium-headless-shell)")
class BrowserTest(unittest.TestCase):
    def setUp(self):
        self.tab = browser.Browser().__enter__()
        self.addCleanup(self.tab.__exit__)

    def test_nothing_is_requested_and_nothing_complains(self):
        self.tab.open(page.path)
        self.assertEqual(self.tab.ask("document.querySelectorAll('script').length"), 1)
        self.assertEqual(self.tab.ask("document.querySelectorAll('[onclick]').length"), 0)
        self.assertEqual(self.tab.requests(), ["file://" + page.path])
        self.assertEqual(self.tab.complaints(), [])

    def test_the_policy_forbids_what_is_not_the_page_s(self):
        self.tab.open(page.path)
        self.tab.ask("(async () => { const s = document.createElement('script'); s.textContent = 'window.bad = 1'; document.body.append(s);"
                     "try { await fetch('http://127.0.0.1:9/'); window.bad = 1 } catch {} })()")
        self.assertIsNone(self.tab.ask("window.bad"))
        self.assertTrue(self.tab.complaints())

    def test_keys_sort_a_table(self):
        self.tab.open(page.path)
        for _ in range(300):
            self.tab.press("Tab")
            if self.tab.ask("document.activeElement.textContent") == "calls/s":
                break
        self.assertEqual(self.tab.ask("document.activeElement.tagName"), "BUTTON")
        at = self.tab.ask("[...document.querySelectorAll('#units th')].map(head => head.textContent)").index("calls/s")
        order = f"[...document.querySelectorAll('#units tbody tr')].map(row => Number(row.cells[{at}].dataset.n))"
        for state, is_reversed in (("descending", True), ("ascending", False)):
            self.tab.press("Enter", "\r")
            self.assertEqual(self.tab.ask("document.activeElement.parentNode.getAttribute('aria-sort')"), state)
            self.assertEqual(self.tab.ask(order), sorted(self.tab.ask(order), reverse=is_reversed))

    def test_the_filter_shows_rows_that_have_the_text(self):
        self.tab.open(page.path)
        self.tab.ask("document.querySelector('input').focus()")
        self.tab.type("宽字符")
        shown = self.tab.ask("[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => row.textContent)")
        self.assertTrue(shown)
        self.assertEqual([text for text in shown if "宽字符" not in text], [])
        # Nothing is left of a table without such a row but how many rows there are.
        self.assertEqual(self.tab.ask("document.querySelector('output').value"), f"{len(shown)} row{'' if len(shown) == 1 else 's'} left")
        empty = "[...document.querySelectorAll('details')].filter(part => part.checkVisibility() && ![...part.querySelectorAll('tbody tr')].some(row => !row.hidden)).length"
        self.assertEqual(self.tab.ask(empty), 0)
        self.assertGreater(self.tab.ask("[...document.querySelectorAll('details')].filter(part => part.hidden).length"), 0)

    def test_names_leave_room_for_numbers_on_a_narrow_screen(self):
        self.tab.open(page.path, width=420)
        names = "[...document.querySelectorAll('td:first-child bdi')].map(name => name.getBoundingClientRect().width)"
        self.assertLessEqual(max(self.tab.ask(names)), 160)
        self.assertEqual(self.tab.ask("[...new Set([...document.querySelectorAll('td:first-child')].map(cell => getComputedStyle(cell).position))].join()"), "sticky")

    def test_tooltips_say_something_and_the_command_ends_with_its_last_word(self):
        self.tab.open(page.path)
        self.assertEqual(self.tab.ask("document.querySelectorAll('[title=\"\"]').length"), 0)
        units = "[...new Set([...document.querySelectorAll('details th')].filter(head => head.textContent === 'unit').map(head => head.title))].join()"
        self.assertEqual(self.tab.ask(units), "systemd.unit.name, container.id or process.linux.cgroup")
        command = self.tab.ask("[...document.querySelectorAll('dt')].find(term => term.textContent === 'Command').nextSibling.textContent")
        self.assertEqual(command, command.strip())

    def test_each_entry_of_the_contents_leads_somewhere(self):
        self.tab.open(page.path)
        self.assertEqual(self.tab.ask("[...document.querySelectorAll('nav a')].filter(a => !document.querySelector(a.hash)).length"), 0)
        self.assertGreater(self.tab.ask("document.querySelectorAll('nav a').length"), 20)
        self.assertEqual(self.tab.ask("[...document.querySelectorAll('[id]')].length - new Set([...document.querySelectorAll('[id]')].map(n => n.id)).size"), 0)

    def test_it_is_readable_in_light_and_in_dark(self):
        backs = []
        for scheme in ("light", "dark"):
            self.tab.open(page.path, scheme=scheme)
            (ratio, where), back = self.tab.ask(CONTRAST)
            self.assertGreaterEqual(ratio, 4.5, (scheme, where))
            backs.append(sum(back[:3]))
        self.assertGreater(backs[0], 700)
        self.assertLess(backs[1], 150)

    def test_it_fits_narrow_and_wide_windows(self):
        for width in (400, 1600):
            self.tab.open(page.path, width=width)
            self.assertLessEqual(self.tab.ask("document.documentElement.scrollWidth"), width)

    def test_the_table_of_units_fits_a_laptop_or_keeps_its_names_in_sight(self):
        self.tab.open(page.path, width=1280)  # with names of 200 bytes
        self.tab.ask("document.querySelector('#units .scroll').scrollLeft = 9999")
        left, name = self.tab.ask("['#units .scroll', '#units tbody td'].map(s => document.querySelector(s).getBoundingClientRect().left)")
        self.assertAlmostEqual(name, left, delta=2)
        path = page.path + ".short.html"
        report(path, "--", "sleep", "0.5")
        self.tab.open(path, width=1280)
        wide, there = self.tab.ask("(e => [e.scrollWidth, e.clientWidth])(document.querySelector('#units .scroll'))")
        self.assertLessEqual(wide, there)

    def test_what_counting_costs_is_there_whatever_is_asked(self):
        for asked in ([], ["--whole-machine"], ["run_queue.duration"]):
            path = page.path + ".own.html"
            report(path, *asked, "--", "sleep", "0.5")
            self.tab.open(path)
            self.assertIn("bpfpush itself", self.tab.ask("[...document.querySelectorAll('h2')].map(e => e.textContent)"), asked)
            facts = dict(self.tab.ask("[...document.querySelectorAll('dl div')].map(e => [e.children[0].textContent, e.children[1].textContent])"))
            self.assertGreater(float(facts["Cost of the BPF programs"].split(" %")[0]), 0, asked)

    def test_a_heat_map_is_a_file_of_its_own(self):
        with open(page.path, encoding="utf-8") as file:
            picture = re.search(r"<svg .*?</svg>", file.read(), re.DOTALL).group(0)
        path = page.path + ".svg"
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture)
        self.tab.open(path, width=1000, scheme="dark")
        self.assertEqual((self.tab.complaints(), self.tab.requests()), ([], ["file://" + path]))
        self.assertEqual(self.tab.ask("document.documentElement.namespaceURI"), "http://www.w3.org/2000/svg")
        # Nothing but the picture gives it colours, and a white ground.
        fills = self.tab.ask("['.heat-back', '.heat-9', '.heat-text text'].map(s => getComputedStyle(document.querySelector(s)).fill)")
        self.assertEqual(fills, ["rgb(255, 255, 255)", "rgb(66, 19, 107)", "rgb(68, 68, 68)"])
        outside = self.tab.ask("[...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right >"
                               " document.documentElement.getBoundingClientRect().right + .5).length")
        self.assertEqual(outside, 0)

    def test_it_is_whole_without_javascript(self):
        self.tab.open(page.path)
        with_it = self.tab.ask("document.querySelectorAll('td').length")
        self.tab.open(page.path, has_script=False)
        self.assertEqual(self.tab.ask("document.querySelectorAll('th button').length"), 0)
        self.assertEqual(self.tab.ask("document.querySelectorAll('td').length"), with_it)


class FileTest(unittest.TestCase):
    """Where the page goes, and when."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="bpfpush-report-")
        self.addCleanup(self.place.cleanup)
        self.path = os.path.join(self.place.name, "report.html")

    def short(self, path, *options):
        return report(path, "--for=300ms", "memory", *options)

    def test_a_page_replaces_an_older_one(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("old")
        self.assertEqual(self.short(self.path).returncode, 0)
        self.assertEqual(os.listdir(self.place.name), ["report.html"])
        self.assert_page()

    def assert_page(self):
        with open(self.path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?s)^<!DOCTYPE html>.*</html>\n$")

    def test_an_older_page_keeps_its_owner_its_mode_and_its_links(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("old" * 1_000_000)  # longer than the page
        os.chmod(self.path, 0o640)
        os.chown(self.path, 1, 2)
        link = self.path + ".link"
        os.symlink(self.path, link)
        self.assertEqual(self.short(link).returncode, 0)
        self.assertTrue(os.path.islink(link))
        status = os.stat(self.path)
        self.assertEqual((status.st_mode & 0o7777, status.st_uid, status.st_gid), (0o640, 1, 2))
        self.assert_page()

    def test_a_page_is_there_though_its_points_cannot_be_written(self):
        done = self.short(self.path, "--points=/dev/full")
        self.assertEqual(done.returncode, 74)
        self.assertIn("cannot write to /dev/full: No space left on device", done.stderr)
        self.assert_page()

    def test_a_device_that_is_full_is_called_so(self):
        done = self.short("/dev/full")
        self.assertEqual((done.returncode, done.stderr), (74, "bpfpush report: /dev/full cannot be written: No space left on device\n"))

    def test_places_that_cannot_be_written_are_found_before_counting(self):
        for path, reason in ((self.place.name, "Is a directory"), (self.path + "/x/y", "No such file or directory"),
                             ("/proc/report.html", "No such file or directory")):
            with self.subTest(path):
                done = report(path, "--for=1h", "memory")
                self.assertEqual(done.returncode, 74)
                self.assertEqual(done.stderr, f"bpfpush report: --output={path}: {reason}\n")

    def test_a_full_disk_leaves_the_old_page(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", self.place.name], check=True)
        self.addCleanup(subprocess.run, ["umount", self.place.name], check=True)
        with open(self.path, "w", encoding="ascii") as file:
            file.write("old")
        done = self.short(self.path)
        self.assertEqual(done.returncode, 74)
        self.assertEqual(done.stderr, f"bpfpush report: {self.path} cannot be written: No space left on device\n")
        self.assertEqual(os.listdir(self.place.name), ["report.html"])
        with open(self.path, encoding="ascii") as file:
            self.assertEqual(file.read(), "old")

    def test_standard_output(self):
        for path in ("-", "/dev/stdout"):
            self.assertRegex(self.short(path).stdout, r"(?s)^<!DOCTYPE html>.*</html>\n$")
        self.assertTrue(os.path.exists("/dev/stdout"))

    def test_a_terminal_is_refused(self):
        ours, theirs = pty.openpty()
        done = subprocess.run([AGENT, "report", *OPTIONS, "--for=1h"], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
        os.close(ours)
        os.close(theirs)
        self.assertEqual(done.returncode, 64)
        self.assertIn("with --output=FILE", done.stderr)

    def test_control_c_ends_with_a_page(self):
        points = self.path + ".json"
        running = subprocess.Popen([AGENT, "report", *OPTIONS, "--for=1h", "--log-level=debug", f"--points={points}", "-o", self.path,
                                    "memory"], stderr=subprocess.PIPE, text=True)
        for line in running.stderr:
            if "memory" in line:
                break
        running.send_signal(signal.SIGINT)
        running.stderr.read()
        self.assertEqual(running.wait(60), 0)
        running.stderr.close()
        self.assertTrue(os.path.exists(self.path))
        self.assertTrue(os.path.getsize(points))

    def test_the_command_s_status_is_kept_and_one_that_is_not_there_makes_no_page(self):
        self.assertEqual(report(self.path, "memory", "--", "sh", "-c", "exit 3").returncode, 3)
        self.assertTrue(os.path.exists(self.path))
        os.unlink(self.path)
        self.assertEqual(report(self.path, "memory", "--", "/nonexistent/command").returncode, 127)
        self.assertEqual(os.listdir(self.place.name), [])


if __name__ == "__main__":
    if os.geteuid():
        print("this test needs root")
        sys.exit(77)
    unittest.main(verbosity=2)
