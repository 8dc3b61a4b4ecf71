#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages themselves: what is in them, what their scripts do, and that a second build gives the same bytes."""

import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from container import Unavailable, rootfs, run_container
from night import IS_NIGHT
from packages import PACKAGES, ROOT, NotBuilt, build, debs, key

DEBIAN = os.path.join(ROOT, "packaging", "debian")
OBJECTS = [os.path.basename(path)[:-len(".bpf.c")] for path in glob.glob(os.path.join(ROOT, "bpf", "*.bpf.c"))]
COLLECTORS = [os.path.basename(path)[:-len(".conf")] for path in glob.glob(os.path.join(ROOT, "bpf", "*.conf"))]
EXPECTED = {
    "/etc/bpfpush/bpfpush.conf", "/usr/bin/bpfpush", "/usr/lib/bpfpush/bpfpush-top", "UNITS/bpfpush.service", "/usr/lib/sysusers.d/bpfpush.conf",
    "/usr/lib/systemd/catalog/bpfpush.catalog", "/usr/share/bash-completion/completions/bpfpush",
    "/usr/share/fish/vendor_completions.d/bpfpush.fish", "/usr/share/zsh/site-functions/_bpfpush",
    *(f"/usr/lib/bpfpush/collectors/{name}.conf" for name in COLLECTORS), *(f"/usr/lib/bpfpush/collectors/{name}.bpf.o" for name in OBJECTS),
    *(f"/usr/include/bpfpush/{os.path.basename(path)}" for path in glob.glob(os.path.join(ROOT, "bpf", "include", "*.h"))),
    *(f"/usr/share/doc/bpfpush/{name}" for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bpfpush.spdx.json",
                                                   "packaging/README.md", "contrib/import-ebpf-exporter")),
    *(f"/usr/share/doc/bpfpush/contrib/grafana/{name}" for name in ("README.md", "bpfpush-alerts.yml", "bpfpush-graphite.json",
                                                                   "bpfpush-prometheus.json")),
    *(f"/usr/share/doc/bpfpush/docs/{os.path.basename(path)}" for path in glob.glob(os.path.join(ROOT, "docs", "*.md"))),
    *(f"/usr/lib/bpfpush/drop-ins/{os.path.basename(path)}" for path in glob.glob(os.path.join(ROOT, "systemd", "drop-ins", "*"))),
    *(f"/usr/share/doc/bpfpush/examples/{os.path.basename(path)}" for path in glob.glob(os.path.join(ROOT, "systemd", "examples", "*"))),
    *(f"/usr/share/man/man{name[-1]}/{name}" for name in ("bpfpush.8", "bpfpush.conf.5", "bpfpush.collector.5")),
}
DEB_ALONE = {"/usr/share/doc/bpfpush/copyright", "/usr/share/doc/bpfpush/changelog.Debian", "/usr/share/lintian/overrides/bpfpush"}


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, **options).stdout


def build_once(directory, *kinds, **options):
    """Unless it is there: a tree that has changed has another one."""
    if not os.path.exists(directory):
        shutil.rmtree(directory + ".new", ignore_errors=True)
        build(directory + ".new", *kinds, **options)
        os.rename(directory + ".new", directory)


def built():
    """The directory with what is built beside debs(): rpm/ and, by night, again/ with both kinds."""
    directory = os.path.join(os.path.dirname(os.path.dirname(debs()[0])), "all")
    build_once(os.path.join(directory, "rpm"), "rpm")
    if IS_NIGHT:
        with tempfile.TemporaryDirectory(prefix="elsewhere.", dir=PACKAGES) as elsewhere:
            build_once(os.path.join(directory, "again"), "deb", "rpm", work=os.path.join(elsewhere, "quite", "another-directory"), umask=0o077,
                       env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    return directory


def general(path):
    """A path as both kinds of package have it."""
    path = re.sub(r"^(?:/usr)?/lib/systemd/system/", "UNITS/", path)
    return path.removesuffix(".gz")


class TestPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.deb = debs()[0]
        cls.all = built()
        cls.rpm = glob.glob(f"{cls.all}/rpm/bpfpush-*.{os.uname().machine}.rpm")[0]
        cls.top = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-packages."))
        run("dpkg-deb", "--raw-extract", cls.deb, cls.top)

    def script(self, name):
        with open(os.path.join(self.top, "DEBIAN", name), encoding="utf-8") as file:
            return file.read()

    def test_all_places_say_the_same_version(self):
        places = {"meson.build": r"^  version: '(.*)'", "packaging/rpm/bpfpush.spec": r"^Version: *(.*)", "packaging/debian/changelog": r"\Abpfpush \((.*)-1\)"}
        versions = set()
        for path, pattern in places.items():
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                versions.add(re.search(pattern, file.read(), re.MULTILINE)[1])
        self.assertEqual(len(versions), 1, versions)

    # It depends on compilers and on how packages are built, which hardly ever change, and compiles everything twice.
    @unittest.skipUnless(IS_NIGHT, "by night: BPFPUSH_TEST_NIGHT=1")
    def test_a_second_build_elsewhere_gives_the_same_bytes(self):
        first = os.path.dirname(self.deb)
        compared = 0
        for path in glob.glob(f"{first}/*.deb") + glob.glob(f"{first}/*.dsc") + glob.glob(f"{first}/*.tar.*") + glob.glob(f"{self.all}/rpm/*"):
            with open(path, "rb") as one, open(f"{self.all}/again/{os.path.basename(path)}", "rb") as other:
                self.assertEqual(hashlib.sha256(one.read()).digest(), hashlib.sha256(other.read()).digest(), os.path.basename(path))
            compared += 1
        self.assertEqual(compared, 7)  # deb, its symbols, dsc and two archives; rpm and source rpm

    def test_lintian_finds_neither_errors_nor_warnings(self):
        changes = glob.glob(os.path.join(os.path.dirname(self.deb), "*.changes"))
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--display-info", *changes],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(DEBIAN, "bpfpush.lintian-overrides"), encoding="utf-8") as file:
            for number, line in enumerate(file.read().split("\n")):
                self.assertEqual(line.startswith("#"), number % 2 == 0 and line != "", "each override has a line that says why")

    def test_both_kinds_hold_the_same_files_and_only_root_may_write_them(self):
        listing = [line.split(None, 5) for line in run("dpkg-deb", "--contents", self.deb).splitlines()]
        for mode, owner, *_, name in listing:
            self.assertEqual((owner, mode[5], mode[8]), ("root/root", "-", "-"), name)
        self.assertEqual({general(line[5][1:]) for line in listing if line[0][0] != "d"}, EXPECTED | DEB_ALONE)
        directories = {line[5][1:] for line in listing if line[0][0] == "d"}
        self.assertLessEqual({"/etc/bpfpush/bpfpush.conf.d/", "/etc/bpfpush/collectors/"}, directories)

        names = set()
        for line in run("rpm", "--query", "--package", "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\n]", self.rpm).splitlines():
            mode, owner, name = line.split(None, 2)
            self.assertEqual((owner, mode[5], mode[8]), ("root", "-", "-"), name)
            if mode[0] != "d" and not name.startswith("/usr/share/licenses/"):
                names.add(general(name))
        self.assertEqual(names, EXPECTED)
        self.assertEqual(run("rpm", "--query", "--package", "--configfiles", self.rpm), "/etc/bpfpush/bpfpush.conf\n")
        self.assertEqual(self.script("conffiles"), "/etc/bpfpush/bpfpush.conf\n")

    def test_objects_hold_their_types_and_no_file_a_path_of_the_build(self):
        with tempfile.TemporaryDirectory() as other:
            subprocess.run(f"rpm2cpio '{self.rpm}' | cpio --quiet -id", shell=True, cwd=other, check=True)
            for top in (self.top, other):
                for name in OBJECTS:
                    sections = run("readelf", "--section-headers", "--wide", f"{top}/usr/lib/bpfpush/collectors/{name}.bpf.o")
                    self.assertIn(" .BTF.ext ", sections)
                    self.assertNotIn(".debug", sections)
                for directory, _, names in os.walk(top):
                    for name in names:
                        with open(os.path.join(directory, name), "rb") as file:
                            self.assertNotIn(os.fsencode(PACKAGES), file.read(), name)
                done = subprocess.run(["cmp", f"{self.top}/usr/lib/bpfpush/collectors/task.bpf.o", f"{top}/usr/lib/bpfpush/collectors/task.bpf.o"], check=False)
                self.assertEqual(done.returncode, 0)

    def test_an_upgrade_restarts_the_service_and_does_not_stop_it(self):
        self.assertFalse(os.path.exists(os.path.join(self.top, "DEBIAN", "preinst")))
        self.assertRegex(self.script("prerm"), r'"\$1" = remove \].*\n\s*deb-systemd-invoke stop')
        self.assertEqual(self.script("prerm").count("deb-systemd-invoke"), 1)
        self.assertIn("deb-systemd-helper enable 'bpfpush.service'", self.script("postinst"))
        self.assertIn("_dh_action=restart", self.script("postinst"))
        scripts = run("rpm", "--query", "--package", "--scripts", self.rpm)
        self.assertRegex(scripts, r'if \[ "\$1" -eq 0 \]; then\n\tsystemctl --no-reload disable --now bpfpush')
        self.assertRegex(scripts, r'if \[ "\$1" -ge 1 \]; then\n\tsystemctl try-restart bpfpush')

    def test_pages_have_no_dead_links_and_the_parts_list_is_true(self):
        documents = os.path.join(self.top, "usr/share/doc/bpfpush")
        for path in glob.glob(f"{documents}/**/*.md", recursive=True):
            with open(path, encoding="utf-8") as file:
                for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read()):
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(path), link)), f"{path}: {link}")
        with open(f"{documents}/bpfpush.spdx.json", encoding="utf-8") as file:
            parts = json.load(file)
        self.assertEqual([parts["spdxVersion"], parts["packages"][0]["name"]], ["SPDX-2.3", "bpfpush"])
        for entry in parts["files"]:
            with open(f"{self.top}/usr/lib/bpfpush/collectors/{entry['fileName']}", "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), entry["checksums"][0]["checksumValue"])
        service, screen = (set(re.findall(r"\[(lib[\w-]+)\.so", run("readelf", "--dynamic", f"{self.top}/usr/{path}")))
                           for path in ("bin/bpfpush", "lib/bpfpush/bpfpush-top"))
        self.assertNotIn("libncursesw", service)
        linked = (service | screen) - {"libc", "libm", "libtinfo"}  # libtinfo is a part of libncursesw
        named = {entry["relatedSpdxElement"].removeprefix("SPDXRef-") for entry in parts["relationships"] if entry["relationshipType"] == "DYNAMIC_LINK"}
        self.assertEqual(linked, {{"zlib": "libz", "inih": "libinih", "ncursesw": "libncursesw"}.get(name, name) for name in named})

    def test_a_collector_of_ones_own_compiles_with_the_installed_headers(self):
        with tempfile.TemporaryDirectory() as work:
            run(os.path.join(DEBIAN, "tests", "own-collector"), env={**os.environ, "AUTOPKGTEST_TMP": work, "ROOT": self.top,
                                                                      "PATH": f"{self.top}/usr/bin:{os.environ['PATH']}"})

    def test_the_tests_of_the_package_pass(self):
        result = run_container("""
set -e
dpkg --install /payload/*/bpfpush_*.deb >/dev/null
/tests/check
/tests/service
dpkg-query --show bpfpush && exit 1 || exit 0
""", payload=os.path.dirname(os.path.dirname(self.deb)), options=[f"--bind-ro={DEBIAN}/tests:/tests"])
        self.assertEqual(result.status, 0, result.output)

    def test_the_rpm_installs_keeps_an_edited_file_and_is_removed(self):
        script = """
set -e
mount -t tmpfs none "$1"
mkdir "$1"/upper "$1"/work "$1"/root
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" none "$1"/root
cd "$1"/root
rpm() { command rpm --root "$PWD" --nodeps --noplugins "$@"; }
rpm --install "$3"
rpm --verify bpfpush
grep bpfpush: etc/passwd
echo '# edited' >>etc/bpfpush/bpfpush.conf
rpm --upgrade --force "$3"
tail -n 1 etc/bpfpush/bpfpush.conf
rpm --erase bpfpush
find etc/bpfpush usr/bin/bpfpush usr/lib/bpfpush usr/include/bpfpush usr/share/doc/bpfpush -type f 2>/dev/null || :
"""
        with tempfile.TemporaryDirectory() as work:
            shown = run("unshare", "--mount", "bash", "-c", script, "rpm-test", work, rootfs(), self.rpm)
        self.assertRegex(shown, r"\Abpfpush:x:\d+:\d+:Kernel metrics push agent:/:/usr/sbin/nologin\n# edited\netc/bpfpush/bpfpush.conf.rpmsave\n\Z")


if __name__ == "__main__":
    try:
        for program in ("lintian", "rpmbuild", "dpkg-buildpackage"):
            if not shutil.which(program):
                raise Unavailable(f"{program} is missing: ./dev package installs it")
        rootfs()
        built()
    except (Unavailable, NotBuilt) as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main(verbosity=2)
