# SPDX-License-Identifier: Apache-2.0
# Completion of bpfpush for fish. Names of collectors and metrics come from the directories that hold them.

function __bpfpush_descriptors
    set -l words (commandline -opc)
    set -l directories /etc/bpfpush/collectors /usr/lib/bpfpush/collectors /usr/local/lib/bpfpush/collectors
    string match -q '*/*' -- $words[1]; and set -a directories (dirname $words[1])/bpf
    set -a directories (string replace -rf -- '^--collector-directory=' '' $words)
    grep -ls '^\[collector\]' $directories/*.conf
end

function __bpfpush_collectors
    __bpfpush_descriptors | string replace -r '.*/(.*)\.conf$' '$1' | sort -u
end

function __bpfpush_metrics # as they can be written
    set -l files (__bpfpush_descriptors)
    set -q files[1]; and awk -F ' *= *' '/^\[/ { is_in = /^\[metric / } is_in && $1 == "name" { sub(/^bpfpush\./, "", $2); print $2 }' $files | sort -u
end

function __bpfpush_is_in # COMMAND...: is one of them being used, and no "--" before the cursor?
    set -l words (commandline -opc)
    set -q words[2]; and contains -- $words[2] $argv; and not contains -- -- $words
end

function __bpfpush_wants_stage
    __bpfpush_is_in dump; and not string match -qr '^(descriptor|shape|snapshot|batch|otlp)$' -- (commandline -opc)
end

function __bpfpush_is_first
    test (count (commandline -opc)) -eq 1
end

set -l all run top status once events report check reload allow list dump

complete -c bpfpush -f
complete -c bpfpush -n __bpfpush_is_first -a run -d 'Count and push until stopped; this is what the service runs'
complete -c bpfpush -n __bpfpush_is_first -a top -d 'Show what is busy, live'
complete -c bpfpush -n __bpfpush_is_first -a status -d 'Show what the running service does'
complete -c bpfpush -n __bpfpush_is_first -a once -d 'Count for a while, or while a command runs, then print'
complete -c bpfpush -n __bpfpush_is_first -a events -d 'Show what happens, a line for each event'
complete -c bpfpush -n __bpfpush_is_first -a report -d 'Count for a while, then write a page for a browser'
complete -c bpfpush -n __bpfpush_is_first -a check -d 'Look for mistakes in the configuration and the collectors'
complete -c bpfpush -n __bpfpush_is_first -a reload -d 'Check the configuration, and let the running service use it'
complete -c bpfpush -n __bpfpush_is_first -a list -d 'Show collectors, hooks, costs, maps, metrics and settings'
complete -c bpfpush -n __bpfpush_is_first -a allow -d 'Let the service do what its sandbox forbids'
complete -c bpfpush -n "__bpfpush_is_in allow" -a 'memory perf-events processes symbols xdp' -d drop-in
complete -c bpfpush -n __bpfpush_is_first -a dump -d 'Print the data at one stage'
complete -c bpfpush -n __bpfpush_is_first -a help -d 'Print the commands, or the options of one command'
complete -c bpfpush -n __bpfpush_is_first -l version -s V -d 'Print the version'
complete -c bpfpush -n __bpfpush_is_first -l help -d 'Print the commands'

complete -c bpfpush -n "__bpfpush_is_in help" -a "$all"
complete -c bpfpush -n "__bpfpush_is_in run top once events report check list" -a '(__bpfpush_collectors)' -d collector
complete -c bpfpush -n "__bpfpush_is_in top once report" -a '(__bpfpush_metrics)' -d metric
complete -c bpfpush -n "__bpfpush_is_in dump; and not __bpfpush_wants_stage" -a '(__bpfpush_collectors)' -d collector
complete -c bpfpush -n __bpfpush_wants_stage -a 'descriptor shape snapshot batch otlp' -d stage

complete -c bpfpush -n "__bpfpush_is_in $all" -l config -rF -d 'Read this configuration file and no other'
complete -c bpfpush -n "__bpfpush_is_in $all" -l collector-directory -xa '(__fish_complete_directories)' -d 'Look for collectors in this directory first'
complete -c bpfpush -n "__bpfpush_is_in $all" -l log-level -xa 'error warning info debug' -d 'How much is logged'
complete -c bpfpush -n "__bpfpush_is_in $all" -l help -s h -d 'Print the options'
complete -c bpfpush -n "__bpfpush_is_in $all" -l version -s V -d 'Print the version'
complete -c bpfpush -n "__bpfpush_is_in run top once" -l interval -xa '1s 10s 1m' -d 'Time between collections'
complete -c bpfpush -n "__bpfpush_is_in run top once" -l count -xa '1 5 10' -d 'End after this many intervals'
complete -c bpfpush -n "__bpfpush_is_in once" -l format -xa 'table csv json bpftrace-json' -d 'What to print'
complete -c bpfpush -n "__bpfpush_is_in events" -l format -xa 'table csv json' -d 'What to print'
complete -c bpfpush -n "__bpfpush_is_in top once" -l limit -xa '0 5 10 20' -d 'Rows to show for each metric'
complete -c bpfpush -n "__bpfpush_is_in top once" -l by -xa 'unit process none syscall.name error.type direction' -d 'Add up what does not differ in these attributes'
complete -c bpfpush -n "__bpfpush_is_in top once events" -l where -xa 'unit= error.type direction=' -d 'Show only what meets the condition'
complete -c bpfpush -n "__bpfpush_is_in top" -l sort -xa 'cpu% memory tasks stall% p99wait calls/s errs/s disk-rd disk-wr net-in net-out file-rd file-wr conns/s retrans/s faults/s unit' -d 'Sort by this column'
complete -c bpfpush -n "__bpfpush_is_in once" -l sort -xa 'total rate value count sum mean p50 p90 p99 max unit' -d 'Sort by this column'
complete -c bpfpush -n "__bpfpush_is_in top once events report" -l set -xa '(__bpfpush_collectors).' -d 'Change a setting of a collector'
complete -c bpfpush -n "__bpfpush_is_in top once report" -l per-process -d 'Count each process by itself'
complete -c bpfpush -n "__bpfpush_is_in top once report" -l duration -xa 'all read write openat fsync futex' -d 'Measure how long these system calls take'
complete -c bpfpush -n "__bpfpush_is_in once events report" -l whole-machine -d 'Count all that happens while COMMAND runs'
complete -c bpfpush -n "__bpfpush_is_in once" -l all -d 'Show each metric in detail'
complete -c bpfpush -n "__bpfpush_is_in once" -l histogram -d 'Draw histograms, a line for each bucket'
complete -c bpfpush -n "__bpfpush_is_in once" -l output -s o -rF -d 'Append to this file instead of writing to standard output'
complete -c bpfpush -n "__bpfpush_is_in report" -l output -s o -rF -d 'Write the page to this file'
complete -c bpfpush -n "__bpfpush_is_in report" -l points -rF -d 'Append what the page shows to this file, as JSON lines'
complete -c bpfpush -n "__bpfpush_is_in top once events report list dump" -l for -xa '500ms 1s 10s 1m' -d 'Count for this long'
complete -c bpfpush -n "__bpfpush_is_in run top once events report list dump" -l probe -xa 'count latency sum histogram event' -d 'Count at a hook'
complete -c bpfpush -n "__bpfpush_is_in top once" -l heatmap -d 'Draw histograms over time'
complete -c bpfpush -n "__bpfpush_is_in check" -l connect -d 'Also try to reach each receiver'
complete -c bpfpush -n "__bpfpush_is_in list" -l available -d 'Show every collector that there is'
complete -c bpfpush -n "__bpfpush_is_in status list" -l json -d 'Print JSON'

# After "--": a command and its files.
complete -c bpfpush -n 'contains -- -- (commandline -opc)' -F -a '(__fish_complete_command)'
