/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/signal.h"

const struct signal_words *signal_words(enum signals signals)
{
	static const struct signal_words words[SIGNALS] = {
		{ "metrics", "point" },
		{ "events", "event" },
		{ "traces", "span" },
	};

	return &words[signal_index(signals)];
}
