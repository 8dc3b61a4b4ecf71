/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From connect to accept of UNIX stream sockets: ebpf_exporter's example unix-accept-latency. The path is the key, so
 * no list of paths is compiled in.
 */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
};

struct socket___judge {
	struct sock *sk;
};
#pragma clang attribute pop

struct accept_key {
	char path[64];
};

struct accept_value {
	struct hist_time wait;
};

TABLE(accepts, struct accept_key, struct accept_value, 4);

struct connected {
	u64 at_ns;
	struct accept_key key;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connected);
} waiting SEC(".maps");

SEC("fentry/security_unix_stream_connect")
int BPF_PROG(unix_connect, struct sock *sock, struct sock *listener, struct sock *made)
{
	struct unix_sock *listening = (struct unix_sock *)bpf_skc_to_unix_sock(listener);
	struct connected connected = {};
	void *path;

	if (!listening)
		return 0;
	path = (void *)BPF_CORE_READ(listening, addr) + bpf_core_field_offset(struct unix_address, name) +
	       bpf_core_field_offset(struct sockaddr_un, sun_path);
	bpf_probe_read_kernel_str(connected.key.path, sizeof(connected.key.path), path);
	connected.at_ns = bpf_ktime_get_ns();
	bpf_sk_storage_get(&waiting, made, &connected, BPF_SK_STORAGE_GET_F_CREATE);
	return 0;
}

SEC("fexit/unix_accept")
int BPF_PROG(unix_accepted, struct socket___judge *listener, struct socket___judge *made, void *arg, int error)
{
	struct accept_value *value;
	struct connected *connected;
	struct sock *sk;

	if (error)
		return 0;
	sk = made->sk;
	connected = sk ? bpf_sk_storage_get(&waiting, sk, 0, 0) : NULL;
	if (!connected)
		return 0;
	value = accepts_at(&connected->key);
	if (value)
		hist_time_add_atomic(&value->wait, bpf_ktime_get_ns() - connected->at_ns);
	bpf_sk_storage_delete(&waiting, sk);
	return 0;
}
