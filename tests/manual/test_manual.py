# SPDX-License-Identifier: Apache-2.0
"""The pages of the manual name every command, option, key, variable and metric, with the right defaults."""

import re
import unittest

import program

BPFPUSH = program.arguments()


def sections(text, macro):
    """{title: body} of .Sh or .Ss in a page."""
    parts = re.split(rf"^\.{macro} (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def configured():
    """(section, key, default) of conf/bpfpush.conf, where each stands behind a "#"."""
    section, entries = None, []
    for line in program.read("conf/bpfpush.conf").split("\n"):
        head = re.fullmatch(r"#?\[([\w-]+(?: [\w.-]+)?)\]", line)
        entry = re.fullmatch(r"#([\w.]+) = ?(.*)", line)
        if head:
            section = head.group(1)
        elif entry:
            entries.append((section, entry.group(1), entry.group(2)))
    return entries


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.page = program.page("bpfpush.8")
        self.sections = sections(self.page, "Sh")

    def test_every_command_is_explained_and_has_a_synopsis(self):
        self.assertGreaterEqual(len(BPFPUSH.commands()), 5)
        for command in BPFPUSH.commands():
            self.assertIn(f".It Cm {command}\n", self.sections["COMMANDS"])
            self.assertIn(f".Nm\n.Cm {command}\n", self.sections["SYNOPSIS"])

    def test_every_option_is_explained_with_the_commands_that_know_it(self):
        commands = BPFPUSH.commands()
        for option in {option for command in commands for option in BPFPUSH.options(command)}:
            item = re.search(rf"^\.It Fl -{option[2:]}( Ns = Ns Ar [A-Z]+)?(?: , Fl [hV])?\n(?:\.Pq Cm ([\w ,]+)\n)?",
                             self.sections["OPTIONS"], re.MULTILINE)
            self.assertIsNotNone(item, option)
            knowing = [command for command in commands if option in BPFPUSH.options(command)]
            self.assertEqual(bool(item.group(1)), BPFPUSH.options(knowing[0])[option], option)
            told = item.group(2).split(" , ") if item.group(2) else commands
            self.assertEqual(sorted(told), sorted(knowing), option)

    def test_no_option_is_explained_that_there_is_not(self):
        known = {option for command in BPFPUSH.commands() for option in BPFPUSH.options(command)}
        for name in re.findall(r"^\.It Fl -([\w-]+)", self.sections["OPTIONS"], re.MULTILINE):
            self.assertIn("--" + name, known)

    def test_every_stop_of_dump_is_explained(self):
        for stop in BPFPUSH.stops():
            self.assertIn(f".It Cm {stop}\n", self.sections["COMMANDS"])

    def test_the_exit_codes_are_those_of_the_program(self):
        codes = re.findall(r"EXIT_\w+ = (\d+),", program.read("src/command/command.h"))
        self.assertEqual(codes, re.findall(r"^\.It (\d+)$", self.sections["EXIT STATUS"], re.MULTILINE))


class ConfigurationTest(unittest.TestCase):
    def setUp(self):
        self.page = program.page("bpfpush.conf.5")
        self.sections = sections(self.page, "Sh")

    def place(self, section):
        """The part of the page that a section of the file belongs to."""
        kind = section.split(" ")[0]
        if kind == "exporter":
            parts = sections(self.sections["[exporter NAME]"], "Ss")
            common = self.sections["[exporter NAME]"].split("\n.Ss ")[0]
            return common + "".join(part for title, part in parts.items()
                                    if section.split(" ")[1] in re.split(r"[ ,]+", title))
        if kind == "collector":
            common, *parts = re.split(r"^\.Cm (?=.*\nalso has:)", self.sections["[collector NAME]"], flags=re.MULTILINE)
            return common + "".join(part for part in parts if part.startswith(section.split(" ")[1] + "\n"))
        return self.sections[f"[{kind} NAME]" if kind in ("metric", "probe") else f"[{section}]"]

    def test_every_key_of_the_file_is_explained_with_its_default(self):
        entries = configured()
        self.assertGreater(len(entries), 40)
        for section, key, default in entries:
            where = f"[{section}] {key}"
            items = re.findall(r"^\.It Cm ([\w., ]+?)(?: No .*)?\n((?:(?!\.It |\.El).*\n)*)", self.place(section), re.MULTILINE)
            told = [text for names, text in items if key in names.split(" , ")]
            self.assertEqual(len(told), 1, where)
            if section in ("agent", "exporter otlp") and default and key != "type":
                self.assertIn(f"Default: {default}.", told[0].replace("\n", " "), where)

    def test_every_variable_of_opentelemetry_is_explained(self):
        names = set(re.findall(r'"(OTEL_[A-Z_]+[A-Z])"', program.read("src/config/environment.c")))
        exporter = set(re.findall(r'"([A-Z]{3,}(?:_[A-Z]+)*)"', program.read("src/export/otlp/environment.c")))
        self.assertGreater(len(names), 6)
        self.assertGreater(len(exporter), 8)
        for name in names:
            self.assertIn(name, self.page)
        for name in exporter:
            self.assertRegex(self.page, rf"OTEL_EXPORTER_OTLP_(METRICS_)?{name}\b")

    def test_every_metric_of_bpfpush_itself_is_explained_with_its_unit(self):
        rows = re.findall(r'\{ "self", "([^"]+)", "([^"]+)"', program.read("src/agent/self.c"))
        self.assertGreater(len(rows), 10)
        for name, unit in rows:
            self.assertRegex(self.page, rf"\.It Cm {re.escape(name)} Pq (sum|gauge|updowncounter|histogram), Ql {re.escape(unit)}\n")


class CollectorTest(unittest.TestCase):
    def setUp(self):
        self.page = program.page("bpfpush.collector.5")

    def test_every_section_and_key_of_a_descriptor_is_explained(self):
        text = program.read("src/collector/grammar/grammar.c")
        kinds = re.findall(r'^\t\{ "(\w+)"(?: \}|, "([\w.]+)", LIST)', text, re.MULTILINE)
        keys = re.findall(r'^\t\{ "(\w+)", "(\w+)", (?:offsetof|0)', text, re.MULTILINE)
        self.assertEqual(len(kinds), 8)
        self.assertGreater(len(keys), 30)
        parts = sections(self.page, "Ss")
        titles = {kind: f"[{kind} {argument}]" if argument else f"[{kind}]" for kind, argument in kinds}
        for title in titles.values():
            self.assertIn(title, parts)
        for kind, key in keys:
            self.assertIn(f".It Cm {key}\n", parts[titles[kind]])

    def test_every_type_of_a_label_value_or_parameter_is_explained(self):
        types = re.findall(r"\b((?:lbl|val|prm)_\w+);", program.read("bpf/include/label.h"))
        self.assertGreater(len(types), 10)
        for name in types:
            self.assertRegex(self.page, rf"(?m)^\.It (?:Vt )?{name}\b")

    def test_the_names_that_labels_have_by_default_are_told(self):
        rows = re.findall(r'\{ "([\w-]+)", [^"{]*?, (?:NULL|"([\w.]+)"), (?:put_|\.add)', program.read("src/collector/label/type.c"))
        self.assertGreater(len(rows), 18)
        types = set(re.findall(r"\b(lbl_\w+);", program.read("bpf/include/label.h")))
        for name, default in rows:
            typedef = "lbl_" + name.replace("-", "_")
            if typedef in types:
                self.assertRegex(self.page, rf"(?m)^\.It {typedef}(\[N\])? Ta {default or 'none'} Ta")
            else:
                self.assertRegex(self.page, rf"(?m)^\.It {name}\b")

    def test_alternatives_are_tried_in_the_order_that_is_told(self):
        rows = re.search(r"sections\[\] = \{(.*?)\n\}", program.read("src/collector/hook/alternative.c"), re.DOTALL).group(1)
        table = [(name, int(unpreempted)) for name, unpreempted in re.findall(r'"([\w.]+)".*(\d) \}', rows)
                 if name not in ("raw_tracepoint", "tracepoint", "uprobe", "uretprobe")]
        self.assertIn(".Dl " + ", ".join(name for name, _ in table) + "\n", self.page)
        unpreempted = sorted((row for row in table if row[1]), key=lambda row: row[1])
        self.assertIn(".Dl " + ", ".join(name for name, _ in unpreempted) + "\n", self.page)


unittest.main()
