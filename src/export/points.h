/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The fates of points. An exporter counts each point that it takes on from a batch as pushed, and
 * counts it again when its fate is known. Until then the point waits. So between any two calls
 *     pushed = delivered + rejected + all that were dropped + waiting
 */
enum points {
	POINTS_PUSHED,
	POINTS_DELIVERED,	   /* taken by the receiver */
	/* refused by the receiver for good, also as a part of a request */
	POINTS_REJECTED,
	POINTS_QUEUE_FULL,	   /* dropped: others needed the room */
	/* dropped: one point alone is larger than a request or datagram */
	POINTS_TOO_LARGE,
	POINTS_NOT_SENT,	   /* dropped: not encoded, not written, or tried for too long */
	/* dropped: the kernel reports that nothing receives datagrams there */
	POINTS_CONNECTION_REFUSED,
	POINTS_UNSUPPORTED,	   /* dropped: the format cannot express them */
	POINTS_IN_DOUBT,	   /* given up, but the receiver may have them */
	N_POINTS
};
