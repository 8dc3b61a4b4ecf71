/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/loss.h"

#include <inttypes.h>


#define LEAST_PERCENT 0.001

void loss_append(const struct loss *loss, struct buf *out)
{
	double percent = 100 * loss_share(loss);

	if (!loss->is_known)
		buf_printf(out, "%" PRIu64 " event%s", loss->missed, plural(loss->missed));
	else if (percent < LEAST_PERCENT)
		buf_printf(out, "less than %g %%", LEAST_PERCENT);
	else
		buf_printf(out, "%.3g %%", percent);
}
