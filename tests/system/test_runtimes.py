#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose calls they are, in containers of Podman and guests of LXC: one after the other below the systemd of a container,
while `bpfpush once` counts the whole of it.

Each of them makes a number of calls that no other makes, so the number says who has got them.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from container import UNTIL_TRUE, Unavailable, rootfs, run_container

BUILD = os.environ.get("BUILD_DIR") or os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "build"))
CALL = "sched_rr_get_interval"

# A tmpfs, because the root of the test's container is an overlay, below which no other can be.
PODMAN = r"""
mkdir -p /etc/containers /tmp/image/bin /var/lib/containers
mount -t tmpfs tmpfs /var/lib/containers
printf '[storage]\ndriver = "vfs"\ngraphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n' \
	>/etc/containers/storage.conf
printf '[engine]\nruntime = "runc"\n' >/etc/containers/containers.conf
echo '{"default":[{"type":"insecureAcceptAnything"}]}' >/etc/containers/policy.json
cp /bin/busybox /payload/calls /tmp/image/bin
ln -s busybox /tmp/image/bin/sh
tar -C /tmp/image -c . | podman import - image >/dev/null 2>&1
options='--network=none --pids-limit=-1 --ulimit host'
id_of() { podman inspect -f '{{.Id}}' $1; }
has_called() { # NAME
	until_true '[ -n "$(podman logs '$1')" ]'
	echo "$1 $(id_of $1)" >>/result/ids
}
body() { echo "calls $1; echo called; exec busybox sleep 1000"; }
podman run -d --name=alone $options image sh -c "$(body 303)" >/dev/null
has_called alone
podman pod create --name shelf --infra-image image --infra-command '/bin/busybox sleep 1000' --network=none --share=ipc >/dev/null
for name in red blue; do
	podman run -d --pod=shelf --name=$name $options image sh -c "$(body $([ $name = red ] && echo 301 || echo 302))" >/dev/null
	has_called $name
done
cat >/run/systemd/system/shop.service <<END
[Service]
Type=notify
NotifyAccess=all
Delegate=yes
ExecStart=/usr/bin/podman run --name=shop --rm --cgroups=split --sdnotify=conmon -d $options image sh -c "calls 304; echo called; exec busybox sleep 1000"
ExecStop=/usr/bin/podman rm -f -i -t0 shop
END
systemctl daemon-reload
for i in 1 2; do
	systemctl restart shop
	has_called shop
done
# A container in a container, and a user that calls a part of its own unit as another's container is called.
mkdir -p /tmp/inner/rootfs
cp -r /tmp/image/. /tmp/inner/rootfs
(cd /tmp/inner && runc spec && sed -i 's/"terminal": true/"terminal": false/; s|^\([ \t]*\)"sh"$|\1"/bin/sh", "-c", "calls 306; echo called"|; s|"linux": {|"linux": {"cgroupsPath": "/docker/9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b",|' config.json)
podman run -d --name=outer --privileged --cgroupns=private $options -v /usr:/usr -v /usr/lib:/lib -v /usr/lib64:/lib64 -v /usr/sbin:/sbin -v /tmp/inner:/tmp/inner \
	image sh -c 'calls 305; mkdir -p /run /tmp /sys/fs/cgroup/init; echo 1 >/sys/fs/cgroup/init/cgroup.procs; cd /tmp/inner; runc run inner; exec busybox sleep 1000' >/dev/null
has_called outer
systemd-run -q --wait --unit=runner -p User=nobody -p Delegate=yes sh -c "cd /sys/fs/cgroup/system.slice/runner.service &&
	mkdir $(id_of alone) && echo 0 >$(id_of alone)/cgroup.procs && /payload/calls 5000"
systemctl stop shop
podman pod rm -f -t0 shelf >/dev/null
podman rm -f -t0 --all >/dev/null
"""

LXC = r"""
guest() { # NAME CALLS, and more of the configuration from stdin
	local root=/var/lib/lxc/$1/rootfs
	mkdir -p $root /mnt/$1
	mount -t tmpfs tmpfs /mnt/$1
	mkdir /mnt/$1/upper /mnt/$1/work
	mount -t overlay -o lowerdir=/small,upperdir=/mnt/$1/upper,workdir=/mnt/$1/work overlay $root
	cp /payload/calls $root/calls
	printf '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/calls %s\nType=oneshot\nRemainAfterExit=yes\n' $2 \
		>$root/etc/systemd/system/cron.service
	{
		echo "lxc.rootfs.path = dir:$root"
		echo "lxc.uts.name = $1"
		echo 'lxc.net.0.type = empty'
		echo 'lxc.init.cmd = /lib/systemd/systemd systemd.wants=cron.service'
		echo 'lxc.autodev = 1'
		echo 'lxc.mount.auto = proc:mixed sys:mixed cgroup:mixed'
		cat
	} >/var/lib/lxc/$1/config
	lxc-start -n $1
	until_true "lxc-attach -n $1 -- systemctl is-active cron.service | grep -qx active"
}
guest web 5001 </dev/null
guest mail 5002 <<'END'
lxc.cgroup.dir.monitor = lxc.monitor/102
lxc.cgroup.dir.container = lxc/102
lxc.cgroup.dir.container.inner = ns
END
systemd-run -q --wait --unit=cron /payload/calls 7
lxc-stop -k -n web
lxc-stop -k -n mail
"""

SCRIPT = r"""
tar -C /payload/stage -c . | tar -C / -x --keep-directory-symlink
ldconfig
bpfpush once --config=/dev/null --whole-machine --format=json --output=/result/points syscalls -- bash /payload/work
"""


class RuntimesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.payload = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-runtimes."))
        os.chmod(cls.payload, 0o755)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.payload + "/stage"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cp", os.path.join(BUILD, "tests/system/calls"), cls.payload], check=True)

    def owners(self, script):
        """-> ({(attribute, its value): calls}, what the script left)"""
        with open(os.path.join(self.payload, "work"), "w", encoding="utf-8") as file:
            file.write(UNTIL_TRUE + script)
        result = run_container(SCRIPT, payload=self.payload, which=["--runtimes"],
                               environment={"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},  # runc takes no mixture
                               options=["--system-call-filter=keyctl add_key", f"--bind-ro={rootfs()}:/small"])
        self.assertEqual(result.status, 0, result.output + result.console[-2000:])
        found = {}
        for line in result.file("points").splitlines():
            point = json.loads(line)
            attributes = point.get("attributes", {})
            if point.get("name") == "bpfpush.syscalls" and attributes.pop("bpfpush.syscall.name") == CALL:
                attributes.pop("error.type", None)
                found[next(iter(attributes.items()))] = point["total"]
        return found, result

    def test_podman(self):
        found, result = self.owners(PODMAN)
        ids = dict(reversed(line.split()) for line in result.file("ids").splitlines())
        expected = {("container.id", id): {"alone": 303, "red": 301, "blue": 302, "outer": 305 + 306}[name]
                    for id, name in ids.items() if name != "shop"}
        expected |= {("systemd.unit.name", "shop.service"): 2 * 304, ("systemd.unit.name", "runner.service"): 5000}
        self.assertEqual(len(expected), 6, ids)
        self.assertEqual(found, expected)

    def test_lxc(self):
        found, _ = self.owners(LXC)
        self.assertEqual(found, {("process.linux.cgroup", "/lxc.payload.web"): 5001, ("process.linux.cgroup", "/lxc/102"): 5002,
                                 ("systemd.unit.name", "cron.service"): 7})


if __name__ == "__main__":
    try:
        rootfs("--runtimes")
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
