/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What keys do. A key: as screen_key() has it. */

#include "top/draw.h"

/* While a text is typed; false: the key is not for that. */
bool keys_type(struct top *top, int key);
void keys_obey(struct top *top, int key);
