/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that the kernel frees because they went no further, by the reason it gives (since 5.17).
 * What was delivered or sent is freed at another tracepoint.
 */
#include "table.h"
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP  0x0806
#define ETHERTYPE_IPV6 0x86dd

const volatile bool function = false;

struct sk_buff {
	u16 protocol; /* EtherType, network byte order */
} __attribute__((preserve_access_index));

enum drop_protocol {
	DROP_PROTOCOL_NONE,
	DROP_PROTOCOL_IPV4,
	DROP_PROTOCOL_IPV6,
	DROP_PROTOCOL_ARP,
	DROP_PROTOCOL_OTHER,
};

struct drop_key {
	u32 reason; /* enum skb_drop_reason of the running kernel */
	enum drop_protocol protocol;
	lbl_ksym function;
};

struct drop_value {
	u64 packets;
};

TABLE_PERCPU(drops, struct drop_key, struct drop_value, 1);

static __always_inline enum drop_protocol protocol_of(const struct sk_buff *packet)
{
	switch (__builtin_bswap16(packet->protocol)) {
	case 0:
		return DROP_PROTOCOL_NONE;
	case ETHERTYPE_IPV4:
		return DROP_PROTOCOL_IPV4;
	case ETHERTYPE_IPV6:
		return DROP_PROTOCOL_IPV6;
	case ETHERTYPE_ARP:
		return DROP_PROTOCOL_ARP;
	default:
		return DROP_PROTOCOL_OTHER;
	}
}

static __always_inline int drop_add(const struct sk_buff *packet, u64 address, u32 reason)
{
	struct drop_key key = { reason, protocol_of(packet), function ? address : 0 };
	bool is_own;
	struct drop_value *value = drops_at(&key, &is_own);

	if (value)
		table_count(&value->packets, 1, is_own);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb__btf_reason, struct sk_buff *packet, u64 address, u32 reason)
{
	return drop_add(packet, address, reason);
}

/* Before 5.17. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb__btf_plain, struct sk_buff *packet, u64 address)
{
	return drop_add(packet, address, 0);
}
