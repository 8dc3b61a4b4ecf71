/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a user can choose of how numbers are shown. */

enum otlp_temporality { OTLP_CUMULATIVE, OTLP_DELTA };
enum otlp_histogram { OTLP_EXPLICIT, OTLP_EXPONENTIAL };
