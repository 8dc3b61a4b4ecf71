# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Shared by the scripts that fetch and build the receivers: cache, progress, locks, and a Go that is new
# enough. Before sourcing this file, a script sources tests/versions and sets `self`, the first word of
# its messages.

cache=${BPFPUSH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/bpfpush}
started=$SECONDS

say() { printf '%s: %3d s: %s\n' "$self" $((SECONDS - started)) "$*" >&2; }

go_version() { # GO -> 1.25.7
	"$1" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//'
}

at_least() { # HAVE WANT
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]
}

find_go() { # the first Go that is new enough
	local go
	for go in "$(command -v go || :)" /usr/local/go/bin/go /usr/lib/go-*/bin/go "$cache"/go-*/bin/go; do
		[ -x "$go" ] && at_least "$(go_version "$go")" "$GO_MINIMUM" && echo "$go" && return
	done
	return 1
}

# Any Go, however old, can fetch a toolchain: the module golang.org/toolchain has one zip per version.
# An old Go leaves the files read-only and not executable, so this copies them and sets their modes.
fetch_go() {
	local old module dir target=$cache/go-$GO_TOOLCHAIN arch
	old=$(command -v go || ls -d /usr/lib/go-*/bin/go 2>/dev/null | tail -1)
	[ -n "$old" ] || { say "needs any Go to begin with (Debian: golang-go)"; return 1; }
	case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) say "no toolchain for $(uname -m)"; return 1 ;; esac
	module=golang.org/toolchain@v0.0.1-go$GO_TOOLCHAIN.linux-$arch
	say "Go $(go_version "$old") is older than $GO_MINIMUM: fetching $module"
	dir=$(cd "$work" && GOFLAGS=-mod=mod GO111MODULE=on "$old" mod download -json "$module" |
		sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
	[ -d "$dir" ] || { say "the module proxy did not give $module"; return 1; }
	rm -rf "$target.new" && cp -r --no-preserve=mode "$dir" "$target.new"
	chmod -R u+rwX "$target.new"
	chmod +x "$target.new"/bin/* "$target.new"/pkg/tool/*/*
	rm -rf "$target" && mv "$target.new" "$target"
	echo "$target/bin/go"
}

# Prints every 20 seconds that PID is still running, then returns its exit status.
watch_pid() { # PID WHAT
	local next=$((SECONDS + 20))
	while kill -0 "$1" 2>/dev/null; do
		sleep 1
		[ $SECONDS -lt $next ] || { say "$2 …"; next=$((SECONDS + 20)); }
	done
	wait "$1"
}

step() { # WHAT COMMAND...: thrice, since a proxy may be slow to answer
	local what=$1 attempt
	shift
	for attempt in 1 2 3; do
		[ "$attempt" = 1 ] && say "$what" || { say "$what failed, once more"; sleep 5; }
		"$@" >>"$work/log" 2>&1 &
		watch_pid $! "$what" && return
	done
	tail -n 20 "$work/log" >&2
	say "$what failed"
	exit 1
}

# Locks out all other builds until the script ends, and makes $work, which is removed then.
begin_work() {
	mkdir -p "$cache"
	exec 9>"$cache/peers.lock"
	flock 9
	work=$(mktemp -d "$cache/work.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	: >"$work/log"
}

use_go() { # puts a Go that is new enough first in PATH; what it installs lands in $work/bin
	local go
	go=$(find_go) || go=$(fetch_go)
	PATH=$(dirname "$go"):$PATH
	export PATH GOTOOLCHAIN=local GOFLAGS='-mod=mod -buildvcs=false' GOBIN=$work/bin GOWORK=off CGO_ENABLED=0
}
