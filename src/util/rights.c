/* SPDX-License-Identifier: Apache-2.0 */
#include "util/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t rights_permitted(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	(void)syscall(SYS_capget, &header, sets);
	return sets[0].permitted | (uint64_t)sets[1].permitted << 32;
}

bool rights_judge(void)
{
	return rights_permitted() && !getenv("NOTIFY_SOCKET");
}

int rights_set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {
		{ .permitted = (uint32_t)permitted, .effective = (uint32_t)effective },
		{ .permitted = (uint32_t)(permitted >> 32),
		  .effective = (uint32_t)(effective >> 32) },
	};

	/* The kernel takes what is not inheritable out of the ambient set, too. */
	return syscall(SYS_capset, &header, sets) ? -errno : 0;
}
