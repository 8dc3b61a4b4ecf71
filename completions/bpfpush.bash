# SPDX-License-Identifier: Apache-2.0
# Completion of bpfpush for bash. Names of collectors come from the directories that hold them.

_bpfpush_options_all="--config= --collector-directory= --log-level= --help --version"
declare -gA _bpfpush_options=(
	[run]="--console --interval= --rows="
	[status]="--json"
	[once]="--format= --output= --for= --rows= --probe="
	[check]="--connect"
	[list]="--available --for= --json --probe="
	[dump]="--for= --probe="
)

_bpfpush_collectors()
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
	done | sed 's|.*/||; s|\.conf$||' | sort -u
}

# $1: an option; $2: its value as far as it is typed. False: the option takes no value.
_bpfpush_value()
{
	case $1 in
	--config | --output) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--collector-directory) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning info debug" -- "$2") ;;
	--format) mapfile -t COMPREPLY < <(compgen -W "table json bpftrace-json" -- "$2") ;;
	--for | --interval) mapfile -t COMPREPLY < <(compgen -W "500ms 1s 10s 1m" -- "$2") ;;
	--probe) mapfile -t COMPREPLY < <(compgen -W "count latency sum histogram" -- "$2") ;;
	--rows) mapfile -t COMPREPLY < <(compgen -W "0 5 10 20" -- "$2") ;;
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
	elif [[ $command != status ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_bpfpush_collectors)" -- "$current")
	fi
}

complete -F _bpfpush bpfpush
