# SPDX-License-Identifier: Apache-2.0
# Completion of bpfpush for bash. Names of collectors and metrics come from the directories that hold them.

_bpfpush_options_all="--config= --collector-directory= --log-level= --help --version"
declare -gA _bpfpush_options=(
	[run]="--interval= --count= --probe="
	[top]="--interval= --count= --for= --limit= --probe= --by= --where= --sort= --set= --per-process --duration= --heatmap"
	[status]="--json"
	[once]="--interval= --count= --format= --output= --for= --limit= --probe= --by= --where= --sort= --set= --per-process --duration= --whole-machine --all --histogram --heatmap"
	[events]="--format= --for= --probe= --where= --set= --whole-machine"
	[report]="--output= --points= --for= --probe= --set= --per-process --duration= --whole-machine"
	[check]="--connect"
	[reload]=""
	[allow]=""
	[list]="--available --for= --json --probe="
	[dump]="--for= --probe="
)

_bpfpush_descriptors()
{
	local i directory directories=(/etc/bpfpush/collectors /usr/lib/bpfpush/collectors /usr/local/lib/bpfpush/collectors)

	# Also the build tree of the program, and --collector-directory=DIR (bash splits words at "=").
	[[ ${COMP_WORDS[0]} == */* ]] && directories+=("${COMP_WORDS[0]%/*}/bpf")
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == --collector-directory ]] || continue
		[[ ${COMP_WORDS[i + 1]} == "=" ]] && directory=${COMP_WORDS[i + 2]} || directory=${COMP_WORDS[i + 1]}
		directories+=("${directory/#\~/$HOME}")
	done
	for directory in "${directories[@]}"; do
		grep -ls '^\[collector\]' "$directory"/*.conf
	done
}

_bpfpush_collectors()
{
	_bpfpush_descriptors | sed 's|.*/||; s|\.conf$||' | sort -u
}

# As they can be written.
_bpfpush_metrics()
{
	_bpfpush_descriptors | xargs -rd '\n' awk -F ' *= *' '/^\[/ { is_in = /^\[metric / } is_in && $1 == "name" { sub(/^bpfpush\./, "", $2); print $2 }' | sort -u
}

# $1: an option; $2: its value as far as it is typed. False: the option takes no value.
_bpfpush_value()
{
	case $1 in
	--config | --output | --points) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--collector-directory) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning info debug" -- "$2") ;;
	--format) mapfile -t COMPREPLY < <(compgen -W "table csv json bpftrace-json" -- "$2") ;;
	--for | --interval) mapfile -t COMPREPLY < <(compgen -W "500ms 1s 10s 1m" -- "$2") ;;
	--probe) mapfile -t COMPREPLY < <(compgen -W "count latency sum histogram event" -- "$2") ;;
	--by) mapfile -t COMPREPLY < <(compgen -W "unit process none syscall.name error.type direction" -- "$2") ;;
	--where) mapfile -t COMPREPLY < <(compgen -W "unit= error.type direction=" -- "$2") ;;
	--sort)
		local columns="total rate value count sum mean p50 p90 p99 max unit"
		[[ " ${COMP_WORDS[*]:0:COMP_CWORD} " == *" top "* ]] && columns="cpu% memory tasks stall% p99wait calls/s errs/s disk-rd disk-wr net-in net-out file-rd file-wr conns/s retrans/s faults/s unit"
		mapfile -t COMPREPLY < <(compgen -W "$columns" -- "$2")
		;;
	--set) compopt -o nospace && mapfile -t COMPREPLY < <(compgen -S . -W "$(_bpfpush_collectors)" -- "$2") ;;
	--duration) mapfile -t COMPREPLY < <(compgen -W "all read write openat fsync futex" -- "$2") ;;
	--count) mapfile -t COMPREPLY < <(compgen -W "1 5 10" -- "$2") ;;
	--limit) mapfile -t COMPREPLY < <(compgen -W "0 5 10 20" -- "$2") ;;
	*) return 1 ;;
	esac
}

# After "--" comes a command; bash-completion, if installed, completes it.
_bpfpush_command()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD == $1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		compopt -o default
	fi
}

_bpfpush()
{
	local i command=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "${!_bpfpush_options[*]} help --help --version" -- "$current")
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == "--" ]] && _bpfpush_command $((i + 1)) && return
	done
	if [[ $current == "=" ]]; then
		current=""
	elif [[ $option == "=" ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	_bpfpush_value "$option" "$current" && return
	if [[ $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${!_bpfpush_options[*]}" -- "$current")
	elif [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$_bpfpush_options_all ${_bpfpush_options[$command]}" -- "$current")
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	elif [[ $command == dump ]] && ! [[ " ${COMP_WORDS[*]:2:COMP_CWORD - 2} " =~ " "(descriptor|shape|snapshot|batch|otlp)" " ]]; then
		mapfile -t COMPREPLY < <(compgen -W "descriptor shape snapshot batch otlp" -- "$current")
	elif [[ $command == @(once|top|report) ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_bpfpush_collectors; _bpfpush_metrics)" -- "$current")
	elif [[ $command == allow ]]; then
		mapfile -t COMPREPLY < <(compgen -W "memory perf-events processes symbols xdp" -- "$current")
	elif [[ $command != @(status|reload) ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_bpfpush_collectors)" -- "$current")
	fi
}

complete -F _bpfpush bpfpush
