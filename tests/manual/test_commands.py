# SPDX-License-Identifier: Apache-2.0
"""What the commands print and how they exit, as a person meets them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import unittest

import program

BPFPUSH = program.arguments()
DIRECTORY = sys.argv.pop(1)
sys.argv.pop(1)
HERE = ["--config=/dev/null", f"--collector-directory={DIRECTORY}"]


class CommandsTest(unittest.TestCase):
    def refuse(self, *arguments):
        """What is said when the arguments are refused."""
        result = subprocess.run([BPFPUSH.path, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 64)
        return result.stderr

    def test_an_unknown_stage_is_named(self):
        self.assertEqual(self.refuse("dump", "foo"), 'bpfpush dump: unknown stage "foo": there are descriptor, shape, snapshot, batch, otlp\n')
        self.assertEqual(self.refuse("dump", "snapshto"), 'bpfpush dump: unknown stage "snapshto": did you mean "snapshot"?\n')
        self.assertEqual(self.refuse("dump"), "bpfpush dump: stage is missing: there are descriptor, shape, snapshot, batch, otlp\n")

    def test_a_wrong_word_is_answered_with_the_right_one(self):
        for words, said in (
                (["chekc"], 'bpfpush: unknown command "chekc": did you mean "check"?'),
                (["foo"], 'bpfpush: unknown command "foo": there are ' + ", ".join(BPFPUSH.commands())),
                (["--by=unit"], "bpfpush: a command comes before options, as in bpfpush once --by=unit\n"),
                (["once", "--fro=1s"], 'bpfpush once: unknown option "--fro": did you mean "--for"?'),
                (["once", "--f=1s"], 'bpfpush once: unknown option "--f": there are '),  # --for or --format
                (["runn"], 'bpfpush: unknown command "runn": did you mean "run"?'),
                (["once", "--by-unit"], 'bpfpush once: unknown option "--by-unit": did you mean "--by=unit"?'),
                (["check", "-x"], 'bpfpush check: unknown option "-x": there are '),
                (["once", "--format=jsn"], 'bpfpush once: unknown --format "jsn": did you mean "json"?'),
                (["once", "--for"], "bpfpush once: --for needs a value: write --for=TIME"),
                (["list", "--json=3"], "bpfpush list: --json takes no value")):
            with self.subTest(words):
                self.assertTrue(self.refuse(*words).startswith(said), self.refuse(*words))
        # Only what the command itself takes is proposed.
        self.assertNotIn("--json", self.refuse("check", "--jsno"))

    def test_the_version_has_a_letter(self):
        self.assertEqual(BPFPUSH.run("-V"), BPFPUSH.run("--version"))
        self.assertEqual(BPFPUSH.run("list", "-V"), BPFPUSH.run("--version"))

    def test_a_command_that_cannot_run_is_all_that_is_said(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        with tempfile.TemporaryDirectory() as place:
            script = f"{place}/script"
            with open(script, "w", encoding="ascii") as file:
                file.write("#!/no/such/interpreter\n")
            for path, mode, status, reason in ((f"{place}/nothing", None, 127, "No such file or directory"), (place, None, 126, "Permission denied"),
                                               (script, 0o600, 126, "Permission denied"), (script, 0o700, 127, "its interpreter does not exist")):
                if mode:
                    os.chmod(script, mode)
                for words in (["once"], ["list"], ["dump"]):
                    with self.subTest(path, words=words):
                        stage = ["snapshot"] if words == ["dump"] else []
                        done = subprocess.run([BPFPUSH.path, *words, *HERE, *stage, "memory", "--", path], capture_output=True, text=True, check=False)
                        self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "", f"cannot run {path}: {reason}\n"))

    def test_a_command_without_an_interpreter_is_run_by_the_shell(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        with tempfile.NamedTemporaryFile("w", encoding="ascii", delete=False) as file:
            self.addCleanup(os.unlink, file.name)
            file.write("exit 7\n")
        os.chmod(file.name, 0o700)
        done = subprocess.run([BPFPUSH.path, "once", *HERE, "memory", "--", file.name], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (7, ""))

    def test_a_terminal_gets_no_protobuf(self):
        leader, terminal = os.openpty()
        with os.fdopen(leader, "rb"), os.fdopen(terminal, "wb"):
            done = subprocess.run([BPFPUSH.path, "dump", "otlp", *HERE], stdout=terminal, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 64)
        self.assertRegex(done.stderr, "^bpfpush dump: otlp is binary, and a terminal cannot show it: .*protoc --decode=")

    def test_otlp_is_dumped_as_the_exporter_sends_it(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        if not shutil.which("protoc"):
            self.skipTest("protoc is missing")
        proto = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto")
        section = "[exporter lines]\ntype = console\n[exporter a]\ntype = otlp\ntemporality = delta\nhistogram = exponential\nowner_attribute = owner\n"
        for text, environment, wanted in (
                ("", None, {"CUMULATIVE", "histogram"}), (section, None, {"DELTA", "exponential_histogram"}),
                ("", "delta", {"DELTA", "histogram"})):
            with self.subTest(text=text, environment=environment), tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                variables = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": environment} if environment else {}
                body = subprocess.run([BPFPUSH.path, "dump", "otlp", f"--config={file.name}", HERE[1], "scheduler", "--for=1s"],
                                      env={**os.environ, **variables}, stdout=subprocess.PIPE, check=True).stdout
                decoded = subprocess.run(["protoc", "--decode=otlp.ExportMetricsServiceRequest", f"--proto_path={proto}", "otlp-metrics.proto"],
                                         input=body, stdout=subprocess.PIPE, check=True).stdout.decode()
                found = set(re.findall(r"AGGREGATION_TEMPORALITY_(\w+)", decoded)) | set(re.findall(r"(\w*histogram) \{", decoded))
                self.assertEqual(found, wanted)
                owners = re.findall(r'key: "(owner|systemd\.unit\.name|container\.id|process\.linux\.cgroup)"', decoded)
                self.assertGreater(len(owners), 0)
                self.assertEqual(owners.count("owner"), len(owners) // 2 if text else 0)

    def test_mistakes_about_collectors_have_their_line(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write("[agent]\ncollectors = memory\ncollectors = sycalls\ncollector_directory = /nonexistent/x\n")
            file.flush()
            result = subprocess.run([BPFPUSH.path, "check", f"--config={file.name}"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 78)
        said = result.stderr.replace(file.name, "FILE").splitlines()
        self.assertEqual([line.split(" ")[0] for line in said], ["FILE:3:", "FILE:4:"])
        self.assertIn("collector directory /nonexistent/x cannot be used: No such file or directory", said[1])
        self.assertIn('collector "sycalls" is not in ', said[0])

    def test_a_table_in_the_journal_is_warned_of(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write("[exporter table]\ntype = console\n[exporter points]\ntype = json\npath = -\n"
                       f"[exporter file]\ntype = json\npath = {file.name}.json\n[exporter otlp]\ntype = otlp\n")
            file.flush()
            done = subprocess.run([BPFPUSH.path, "check", f"--config={file.name}"], capture_output=True, text=True, check=True)
            said = done.stderr.replace(file.name, "FILE").splitlines()
            self.assertEqual([line.split(" writes to standard output, which is the service's journal: ")[0] for line in said],
                             ["FILE:1: exporter table", "FILE:3: exporter points"])
            # Who runs it without a service sees what was asked for.
            listed = subprocess.run([BPFPUSH.path, "list", "--available", f"--config={file.name}"], capture_output=True, text=True, check=True)
            self.assertEqual(listed.stderr, "")

    def test_a_section_about_a_metric_needs_the_metric(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write("[agent]\ncollectors = memory\n[metric bpfpush.sycalls]\ndrop_attributes = error.type\n"
                       "[metric bpfpush.memory.oom_kill]\n")
            file.flush()
            config = [f"--config={file.name}", f"--collector-directory={DIRECTORY}"]
            result = subprocess.run([BPFPUSH.path, "check", *config], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 78)
            said = result.stderr.replace(file.name, "FILE").splitlines()
            self.assertTrue(said[0].startswith('FILE:3: unknown metric "bpfpush.sycalls"'), said)
            self.assertTrue(said[1].startswith('FILE:5: unknown metric "bpfpush.memory.oom_kill": did you mean'), said)
            # Beside other mistakes, and for a choice on the command line, what is near to a metric that counts is one.
            result = subprocess.run([BPFPUSH.path, "check", *config, "syscalls"], capture_output=True, text=True, check=False)
            said = 'FILE:3: unknown metric "bpfpush.sycalls": did you mean "bpfpush.syscalls"?'
            self.assertEqual(result.stderr.replace(file.name, "FILE").splitlines(), [said])
            file.write("[exporter json]\ntype = jsn\n[collector syscalls]\n")
            file.flush()
            result = subprocess.run([BPFPUSH.path, "check", *config], capture_output=True, text=True, check=False)
            self.assertEqual(result.stderr.replace(file.name, "FILE").splitlines()[:1], [said])
            # The same file, without mistakes, serves for every choice.
            file.seek(0)
            file.truncate()
            file.write("[metric bpfpush.syscalls]\n[metric bpfpush.memory.oom_kills]\n")
            file.flush()
            BPFPUSH.run("check", *config, "syscalls")

    def test_a_section_about_a_metric_waits_for_its_collector(self):
        section = "[metric bpfpush.syscalls]\ndrop_attributes = error.type\n"
        for off in ("[agent]\ncollectors = memory\n", "[collector syscalls]\nenabled = no\n"):
            with self.subTest(off), tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
                file.write(off + section)
                file.flush()
                BPFPUSH.run("check", f"--config={file.name}", f"--collector-directory={DIRECTORY}")

    def test_help_that_cannot_be_written_is_an_error(self):
        for arguments in (["--help"], ["list", "--help"], ["help", "list"], ["--version"]):
            with self.subTest(arguments), open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([BPFPUSH.path, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(result.returncode, 74)
                self.assertIn(": standard output cannot be written: No space left on device\n", result.stderr)

    def test_only_collectors_that_are_named_are_printed(self):
        shape = BPFPUSH.run("dump", *HERE, "shape", "memory")
        self.assertIn("fault_counts (flat table) key", shape)
        self.assertNotIn("created (flat table)", shape)
        self.assertIn("created (flat table)", BPFPUSH.run("dump", *HERE, "shape", "cgroup"))
        listed = BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "memory").splitlines()
        self.assertEqual([json.loads(line)["collector"] for line in listed], ["memory"])
        self.assertIn('{"collector":"cgroup"', BPFPUSH.run("list", "--json", "--for=1ms", *HERE))

    def test_a_question_with_mistakes_is_refused_before_anything_is_attached(self):
        for words, said in (
                (["--by=unti", "syscalls"], '--by: unknown attribute "unti": did you mean "unit"?'),
                (["--by=unit,sycall.name", "syscalls"], '--by: unknown attribute "sycall.name": did you mean "syscall.name"?'),
                (["--by=direction", "syscalls"], '--by: unknown attribute "direction": there are '),
                (["--where=eror.type", "syscalls"], '--where: unknown attribute "eror.type": did you mean "error.type"?'),
                (["--where=direction", "bpfpush.syscalls"], '--where: unknown attribute "direction": there are '),
                (["--where=!=3", "syscalls"], '--where: "!=3": write ATTRIBUTE, !ATTRIBUTE, ATTRIBUTE=PATTERN or '),
                (["--sort=totl", "syscalls"], '--sort: unknown column "totl": did you mean "total"?'),
                (["--set=x", "syscalls"], '--set: "x": write COLLECTOR.KEY=VALUE'),
                (["--set=syscalls.duraton=read", "syscalls"], '--set: unknown setting "duraton": did you mean "duration"?'),
                (["--set=syscalls.duration=red", "syscalls"], '--set: duration = red: holds "red", which is not a system call'),
                (["--set=fileio.per_process=yes", "syscalls"], '--set: collector "fileio" does not count here: '),
                (["--duration=read", "memory"], '--duration: needs the collector syscalls: add it to the words'),
                (["--per-process", "block"], "--per-process: no collector that counts here has the setting per_process"),
                (["--by=process", "block"], "--by=process: no collector that counts here has the setting per_process"),
                (["sycall.duration"], 'bpfpush: collector "sycall.duration" is not in '),
                (["syscals"], 'bpfpush: collector "syscals" is not in ')):
            with self.subTest(words):
                result = subprocess.run([BPFPUSH.path, "once", *HERE, "--for=1ms", *words], capture_output=True, text=True, check=False)
                status = 64 if words[0].startswith("--") else 78
                self.assertEqual((result.returncode, result.stdout), (status, ""), result.stderr)
                self.assertEqual(result.stderr[:len(said)], said)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for words, meant in (("sycall.duration", "syscall.duration"), ("bpfpush.file.ios", "bpfpush.file.io"), ("sycalls", "syscalls"), ("disk.oi", "disk.io"), ("sysc", "syscalls"), ("sched", "scheduler")):
            result = subprocess.run([BPFPUSH.path, "once", *HERE, words], capture_output=True, text=True, check=False)
            self.assertIn(f'did you mean "{meant}"?', result.stderr)
        for words, status, said in (
                (["once", *HERE, "sleep", "1"], 78, "bpfpush once: to count what sleep does, write -- before it"),
                (["once", *HERE, "nosuch"], 78, ', and no metric ends with it; "bpfpush list --available" shows all collectors'),
                (["once", "--whole-machine"], 64, 'bpfpush once: --whole-machine has no effect without a command: write one after "--", or remove it'),
                (["once", "--"], 64, 'bpfpush once: write a command after "--"'),
                (["once", *HERE, "block", "--", "true"], 64, "not counted for each unit, so not for a command alone: add --whole-machine"),
                (["once", "--limit=99999999999999999999"], 64, "bpfpush once: --limit: is too large"),
                (["status", "extra"], 64, 'bpfpush status: takes no words: remove "extra"'),
                (["report", "-o", "/dev/null", "--points=/no/such/p"], 74, "bpfpush report: --points=/no/such/p: No such file or directory"),
                (["once", *HERE, "--heatmap", "syscalls"], 64, "bpfpush once: --heatmap: bpfpush.syscall.duration counts only with --set=syscalls.duration=VALUE"),
                (["once", "--heatmap", "-o", "/no/such.png"], 64, "bpfpush once: --output=/no/such.png: only a file.svg is a picture")):
            with self.subTest(words):
                result = subprocess.run([BPFPUSH.path, *words], capture_output=True, text=True, check=False)
                self.assertEqual((result.returncode, result.stdout), (status, ""), result.stderr)
                self.assertIn(said, result.stderr)
        self.assertNotRegex(BPFPUSH.run("--help"), " \n")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "map.svg")
            result = subprocess.run([BPFPUSH.path, "once", *HERE, "--heatmap", "bpfpush.syscalls", "-o", path], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, os.path.exists(path)), (64, False), result.stderr)
        result = subprocess.run([BPFPUSH.path, "check", *HERE, "bpfpush.syscalls"], capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "bpfpush: only once, top and report take metrics; name their collectors: syscalls\n")

    def test_a_run_that_is_stopped_while_it_starts_ends_well(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        command = [BPFPUSH.path, "top", *HERE, "--log-level=debug", "memory"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
            # The first line is about the tables, before they are made.
            said = run.stderr.readline()
            run.send_signal(signal.SIGTERM)
            run.stderr.read()
        self.assertEqual(run.returncode, 0, said)

    def test_a_command_may_take_its_time(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        for words in (["list", *HERE, "memory"], ["dump", *HERE, "snapshot", "memory"]):
            with self.subTest(words[0]):
                result = subprocess.run([BPFPUSH.path, *words, "--", "sh", "-c", "sleep 1.5; echo it has ended >&2"],
                                        capture_output=True, text=True, check=True)
                self.assertEqual(result.stderr, "it has ended\n")

    def test_the_budget_is_listed(self):
        text = BPFPUSH.run("list", "--for=1ms", *HERE, "memory")
        if "not loaded" in text:
            self.skipTest("nothing could be attached")
        used, limit, memory, most = map(float, re.search(r"^budget: (\d+) of (\d+) series, ([\d.]+) of ([\d.]+) MiB", text, re.MULTILINE).groups())
        self.assertEqual(limit, 100000)
        self.assertLessEqual(used, limit)
        self.assertTrue(0 < memory < most, text)
        budget = json.loads(BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "memory"))["budget"]
        self.assertEqual((budget["series_limit"], budget["memory_limit_bytes"] >> 20), (limit, most))

    def list_on_terminal(self, columns):
        leader, terminal = os.openpty()
        termios.tcsetwinsize(terminal, (24, columns))
        with os.fdopen(leader, "rb", buffering=0) as screen, os.fdopen(terminal, "wb") as output:
            with subprocess.Popen([BPFPUSH.path, "list", "--for=1ms", *HERE, "network", "memory"], stdout=output) as listing:
                output.close()
                text = b""
                try:
                    while block := screen.read(65536):
                        text += block
                except OSError:  # the program has closed its side
                    pass
            self.assertEqual(listing.returncode, 0)
        return text.decode().replace("\r\n", "\n")

    def test_a_list_fits_the_terminal(self):
        wide = BPFPUSH.run("list", "--for=1ms", *HERE, "network", "memory")
        if "not loaded" in wide:
            self.skipTest("nothing could be attached")
        words = {word for word in wide.split() if not re.match(r"[\d.]+$", word)}
        for columns in (60, 80, 120):
            with self.subTest(columns):
                text = self.list_on_terminal(columns)
                self.assertLessEqual(max(map(len, text.splitlines())), columns, text)
                self.assertEqual({word for word in text.split() if not re.match(r"[\d.]+$", word)} ^ words, set())
        # What each collector takes of a CPU, and all of them together.
        text = self.list_on_terminal(80)
        self.assertEqual(len(re.findall(r"^  all of them +\d+\.\d\d$", text, re.MULTILINE)), 2, text)
        self.assertRegex(text, r"(?m)^all programs: \d+\.\d\d % of a CPU$")
        # No line is cut where nothing is too narrow, and what the compiler has made is left out.
        self.assertIn("metric   bpfpush.tcp.rtt                          histogram [s] Smoothed round-trip time of each TCP connection that "
                      "received an acknowledgement since the last collection\n", wide)
        self.assertNotIn(".rodata", wide)

    def test_a_list_says_what_programs_cost(self):
        text = BPFPUSH.run("list", "--json", "--for=500ms", *HERE, "syscalls", "fileio", "network", "cgroup")
        listed = [json.loads(line) for line in text.splitlines()]
        programs = {}
        for collector in listed:
            self.assertAlmostEqual(sum(program["cpu_ratio"] for program in collector["programs"]), collector["cpu_ratio"], delta=1e-6)
            programs.update({(program["section"], program["name"]): program for program in collector["programs"]})
        ran = [program for program in programs.values() if program["run_time_ns"]]
        if not ran:
            self.skipTest("nothing could be attached, or the kernel counts no run times: CAP_SYS_ADMIN")
        # Each counts once, although several collectors have some of them.
        self.assertLess(len(programs), sum(len(collector["programs"]) for collector in listed))
        for collector in listed:
            self.assertAlmostEqual(sum(program["cpu_ratio"] for program in ran), collector["total_cpu_ratio"], delta=1e-6)
        seconds = {round(program["run_time_ns"] / program["cpu_ratio"] / 1e9, 3) for program in ran if program["run_time_ns"] > 10000}
        self.assertEqual(len(seconds), 1)
        self.assertGreaterEqual(seconds.pop(), 0.5)

    def test_every_setting_is_listed_with_its_value(self):
        text = BPFPUSH.run("list", "--for=1ms", *HERE, "syscalls")
        self.assertEqual(re.findall(r"^  setting  (\w+ = \S+)", text, re.MULTILINE),
                         ["per_process = no", "duration = none"])
        item = json.loads(BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "syscalls"))
        settings = {setting["name"]: setting for setting in item["settings"]}
        self.assertEqual(settings["per_process"], {"name": "per_process", "description": "One series for each process", "value": "no"})
        self.assertEqual((settings["duration"]["default"], settings["duration"]["value"]), ("none", "none"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
