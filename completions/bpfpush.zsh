#compdef bpfpush
# SPDX-License-Identifier: Apache-2.0
# Completion of bpfpush for zsh. Names of collectors come from the directories that hold them.

local -a commands all_options
commands=(
	'run:count and push until stopped; this is what the service runs'
	'status:show what the running service does'
	'once:count for a while, or while a command runs, then print'
	'check:look for mistakes in the configuration and the collectors'
	'list:show collectors, hooks, costs, maps, metrics and settings'
	'dump:print the data at one stage'
	'help:print the commands, or the options of one command'
)
all_options=(
	'--config=[read this configuration file and no other]:file:_files'
	'--collector-directory=[look for collectors in this directory first]:directory:_files -/'
	'--log-level=[how much is logged]:level:(error warning info debug)'
	'(- *)'{-h,--help}'[print the options]'
	'(- *)--version[print the version]'
)

_bpfpush_collectors() {
	local -a directories names
	directories=(/etc/bpfpush/collectors /usr/lib/bpfpush/collectors /usr/local/lib/bpfpush/collectors)
	[[ ${words[1]} == */* ]] && directories+=("${words[1]:h}/bpf")
	[[ -n ${opt_args[--collector-directory]} ]] && directories+=(${~opt_args[--collector-directory]})
	names=(${${(f)"$(grep -ls '^\[collector\]' ${^directories}/*.conf(N))"}:t:r})
	compadd -a names
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
		'--console[show a table instead of pushing]' \
		'--interval=[time between collections]:time:(1s 10s 1m)' \
		'--rows=[lines to show for each metric]:number (0\: all):(0 5 10 20)' \
		'*:collector:_bpfpush_collectors'
	;;
status)
	_arguments $all_options '--json[print JSON]'
	;;
once)
	_arguments $all_options \
		'--format=[what to print]:format:(table json bpftrace-json)' \
		'--rows=[lines to show for each metric]:number (0\: all):(0 5 10 20)' \
		'--output=[append to this file instead of writing to standard output]:file:_files' \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram)' \
		'*:collector:_bpfpush_collectors'
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
		'*--probe=[count at a hook]:probe:(count latency sum histogram)' \
		'--json[print JSON]' \
		'*:collector:_bpfpush_collectors'
	;;
dump)
	_arguments $all_options \
		'--for=[count for this long]:time:(500ms 1s 10s 1m)' \
		'*--probe=[count at a hook]:probe:(count latency sum histogram)' \
		'1:stop:(descriptor shape snapshot batch otlp)' \
		'*:collector:_bpfpush_collectors'
	;;
help)
	_arguments '1:command:(run status once check list dump)'
	;;
esac
