#compdef bpfpush
# SPDX-License-Identifier: Apache-2.0
# Completion of bpfpush for zsh. Names of collectors and metrics come from the directories that hold them.

local -a commands all_options
commands=(
	'run:count and push until stopped; this is what the service runs'
	'top:show what is busy, live'
	'status:show what the running service does'
	'once:count for a while, or while a command runs, then print'
	'events:show what happens, a line for each event'
	'report:count for a while, then write a page for a browser'
	'check:look for mistakes in the configuration and the collectors'
	'reload:check the configuration, and let the running service use it'
	'list:show collectors, hooks, costs, maps, metrics and settings'
	'allow:let the service do what its sandbox forbids'
	'dump:print the data at one stage'
	'help:print the commands, or the options of one command'
)
all_options=(
	'--config=[read this configuration file and no other]:file:_files'
	'--collector-directory=[look for collectors in this directory first]:directory:_files -/'
	'--log-level=[how much is logged]:level:(error warning info debug)'
	'(- *)'{-h,--help}'[print the options]'
	'(- *)'{-V,--version}'[print the version]'
)

_bpfpush_collectors() {
	local -a directories names files
	local wants_metrics
	[[ $1 == metrics ]] && wants_metrics=1 && shift
	directories=(/etc/bpfpush/collectors /usr/lib/bpfpush/collectors /usr/local/lib/bpfpush/collectors)
	[[ ${words[1]} == */* ]] && directories+=("${words[1]:h}/bpf")
	[[ -n ${opt_args[--collector-directory]} ]] && directories+=(${~opt_args[--collector-directory]})
	files=(${(f)"$(grep -ls '^\[collector\]' ${^directories}/*.conf(N))"})
	names=(${files:t:r})
	# As they can be written.
	[[ -n $wants_metrics && -n $files ]] && names+=(${(f)"$(awk -F ' *= *' '/^\[/ { is_in = /^\[metric / } is_in && $1 == "name" { sub(/^bpfpush\./, "", $2); print $2 }' $files)"})
	compadd "$@" -a names
}

# After "--" comes a command with its own arguments.
local separator=${words[(i)--]}
if ((separator < CURRENT)); then
	shift separator words
	((CURRENT -= separator))
	if ((CURRENT == 1)); then
		_command_names -e
	else
		_normal
	fi
	return
fi

if ((CURRENT == 2)); then
	if [[ $PREFIX == -* ]]; then
		_arguments '--help[print the commands]' '--version[print the version]'
	else
		_describe command commands
	fi
	return
fi

local command=${words[2]} program=${words[1]}
shift words
((CURRENT--))
words[1]=$program

case $command in
run)
	_arguments $all_options \
		'--interval=[time between collections]:time:(1s 10s 1m)' \
		'--count=[end after this many intervals]:number:(1 5 10)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'*:collector:_bpfpush_collectors'
	;;
top)
	_arguments $all_options \
		'--interval=[time between collections]:time:(1s 2s 10s)' \
		'--count=[end after this many intervals]:number:(1 5 10)' \
		'--limit=[lines to show for each metric]:number (0\: all):(0 5 10 20)' \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'*--by=[add up what does not differ in these attributes]:attributes:_sequence _values attribute unit process none syscall.name error.type direction' \
		'*--where=[show only what meets the condition]:condition:(unit= error.type direction=)' \
		'--sort=[sort by this column]:column:(cpu% memory tasks stall% p99wait calls/s errs/s disk-rd disk-wr net-in net-out file-rd file-wr conns/s retrans/s faults/s unit)' \
		'*--set=[change a setting of a collector]:setting:_bpfpush_collectors -S . -q' \
		'--per-process[count each process by itself]' \
		'--duration=[measure how long these system calls take]:calls:(all read write openat fsync futex)' \
		'--heatmap[draw histograms over time]' \
		'*:collector or metric:_bpfpush_collectors metrics'
	;;
reload)
	_arguments $all_options
	;;
allow)
	_arguments $all_options '*:drop-in:(memory perf-events processes symbols xdp)'
	;;
status)
	_arguments $all_options '--json[print JSON]'
	;;
once)
	_arguments $all_options \
		'--interval=[print after each interval]:time:(1s 2s 10s)' \
		'--count=[end after this many intervals]:number:(1 5 10)' \
		'--format=[what to print]:format:(table csv json bpftrace-json)' \
		'--limit=[lines to show for each metric]:number (0\: all):(0 5 10 20)' \
		'--output=[append to this file instead of writing to standard output]:file:_files' \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'*--by=[add up what does not differ in these attributes]:attributes:_sequence _values attribute unit process none syscall.name error.type direction' \
		'*--where=[show only what meets the condition]:condition:(unit= error.type direction=)' \
		'--sort=[sort by this column]:column:(total rate value count sum mean p50 p90 p99 max unit)' \
		'*--set=[change a setting of a collector]:setting:_bpfpush_collectors -S . -q' \
		'--per-process[count each process by itself]' \
		'--whole-machine[count all that happens while COMMAND runs]' \
		'--all[show each metric in detail]' \
		'--histogram[draw histograms, a line for each bucket]' \
		'--heatmap[draw histograms over time]' \
		'--duration=[measure how long these system calls take]:calls:(all read write openat fsync futex)' \
		'*:collector or metric:_bpfpush_collectors metrics'
	;;
events)
	_arguments $all_options \
		'--format=[what to print]:format:(table csv json)' \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'*--where=[show only what meets the condition]:condition:(unit= error.type direction=)' \
		'*--set=[change a setting of a collector]:setting:_bpfpush_collectors -S . -q' \
		'--whole-machine[count all that happens while COMMAND runs]' \
		'*:collector:_bpfpush_collectors'
	;;
report)
	_arguments $all_options \
		'--output=[write the page to this file]:file:_files' \
		'--points=[append what the page shows to this file, as JSON lines]:file:_files' \
		'--for=[count for this long]:time:(10s 1m 5m)' \
		'--whole-machine[count all that happens while COMMAND runs]' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'*--set=[change a setting of a collector]:setting:_bpfpush_collectors -S . -q' \
		'--per-process[count each process by itself]' \
		'--duration=[measure how long these system calls take]:calls:(all read write openat fsync futex)' \
		'*:collector or metric:_bpfpush_collectors metrics'
	;;
check)
	_arguments $all_options \
		'--connect[also try to reach each receiver]' \
		'*:collector:_bpfpush_collectors'
	;;
list)
	_arguments $all_options \
		'--available[show every collector that there is]' \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'--json[print JSON]' \
		'*:collector:_bpfpush_collectors'
	;;
dump)
	_arguments $all_options \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram event)' \
		'1:stop:(descriptor shape snapshot batch otlp)' \
		'*:collector:_bpfpush_collectors'
	;;
help)
	_arguments '1:command:(run top status once events report check reload allow list dump)'
	;;
esac
