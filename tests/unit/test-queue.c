/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "alloc.h"
#include "export/queue.h"

static struct queue_budget budget;

static void init(struct queue *queue, size_t limit_items, uint64_t limit_bytes)
{
	budget.limit_bytes = limit_bytes;
	queue_init(queue, limit_items, &budget);
}

static size_t put(struct queue *queue, size_t size, size_t n_points)
{
	assert_ok(queue_put(queue, malloc(size), size, n_points));
	return queue_trim(queue);
}

static void requests_leave_in_the_order_in_which_they_came(void **state)
{
	struct queue queue;

	init(&queue, 10, 1000);
	assert_null(queue_begin(&queue));
	for (size_t i = 1; i <= 3; i++)
		assert_int_equal(put(&queue, 10, i), 0);
	assert_int_equal(queue.n_points, 6);
	for (size_t i = 1; i <= 3; i++) {
		struct queue_item *item = queue_begin(&queue);

		assert_int_equal(item->n_points, i);
		assert_null(queue_begin(&queue)); /* one at a time */
		queue_end(&queue, POINTS_PUSHED);
		assert_ptr_equal(queue_begin(&queue), item); /* the same again */
		queue_end(&queue, POINTS_DELIVERED);
	}
	assert_null(queue_begin(&queue));
	assert_int_equal(queue.n_points, 0);
	assert_int_equal(queue.size_bytes, 0);
	put(&queue, 1, 1);
	queue_done(&queue);
}

static void over_the_bytes_the_oldest_go_and_their_points_are_counted(void **state)
{
	struct queue queue;

	init(&queue, 10, 100);
	assert_int_equal(put(&queue, 40, 1), 0);
	assert_int_equal(put(&queue, 40, 2), 0);
	assert_int_equal(put(&queue, 20, 4), 0);
	assert_int_equal(put(&queue, 41, 8), 3);
	assert_int_equal(queue.size_bytes, 61);
	assert_int_equal(queue.n_points, 12);
	assert_int_equal(queue_begin(&queue)->n_points, 4);
	queue_done(&queue);
}

static void over_the_number_the_oldest_goes(void **state)
{
	struct queue queue;

	init(&queue, 2, 1000);
	put(&queue, 1, 1);
	put(&queue, 1, 2);
	assert_int_equal(put(&queue, 1, 4), 1);
	assert_int_equal(queue.n_items, 2);
	queue_done(&queue);
}

static void the_request_that_is_being_sent_is_never_dropped(void **state)
{
	struct queue queue;
	struct queue_item *busy;

	init(&queue, 2, 100);
	put(&queue, 90, 1);
	busy = queue_begin(&queue);
	assert_int_equal(put(&queue, 5, 2), 0);
	assert_int_equal(put(&queue, 5, 4), 2); /* the second, not the first */
	assert_int_equal(put(&queue, 50, 8), 12); /* then the third, and itself: there is no room beside the first */
	assert_int_equal(queue.n_items, 1);
	assert_ptr_equal(TAILQ_FIRST(&queue.items), busy);
	assert_ptr_equal(TAILQ_LAST(&queue.items, queue_items), busy);
	queue_end(&queue, POINTS_DELIVERED);
	assert_int_equal(put(&queue, 50, 16), 0);
	assert_int_equal(queue_begin(&queue)->n_points, 16);
	queue_done(&queue);
}

static void what_alone_is_too_large_is_dropped_itself(void **state)
{
	struct queue queue;

	init(&queue, 2, 100);
	assert_int_equal(put(&queue, 101, 7), 7);
	assert_null(queue_begin(&queue));
	queue_done(&queue);
}

static void without_memory_the_data_is_freed_all_the_same(void **state)
{
	struct queue queue;
	uint8_t *data = malloc(10);

	init(&queue, 2, 100);
	alloc_fail_at(0);
	assert_error(queue_put(&queue, data, 10, 1), ENOMEM);
	assert_true(alloc_end());
	queue_done(&queue);
}

static void what_was_sent_is_kept_until_it_is_confirmed(void **state)
{
	struct queue queue;

	init(&queue, 10, 1000);
	assert_null(queue.waiting);
	put(&queue, 10, 1);
	put(&queue, 10, 2);
	put(&queue, 10, 4);
	assert_ptr_equal(queue.waiting, TAILQ_FIRST(&queue.items));
	queue_step(&queue);
	queue_step(&queue);
	assert_int_equal(queue.waiting->n_points, 4);
	assert_int_equal(queue.n_points, 7);
	assert_int_equal(queue_confirm(&queue), 3);
	assert_int_equal(queue.n_points, 4);
	assert_ptr_equal(queue.waiting, TAILQ_FIRST(&queue.items));
	queue_step(&queue);
	assert_null(queue.waiting);
	put(&queue, 10, 8); /* what comes then waits */
	assert_int_equal(queue.waiting->n_points, 8);
	queue_rewind(&queue);
	assert_int_equal(queue.waiting->n_points, 4);
	assert_int_equal(queue_confirm(&queue), 0);
	assert_int_equal(queue.n_points, 12);
	queue_done(&queue);
	assert_null(queue.waiting);
}

static void what_was_sent_goes_first_and_what_is_sent_in_part_stays(void **state)
{
	struct queue queue;

	init(&queue, 3, 1000);
	put(&queue, 10, 1);
	put(&queue, 10, 2);
	put(&queue, 10, 4);
	queue_step(&queue);
	queue.is_begun = true; /* of the second */
	assert_int_equal(put(&queue, 10, 8), 1);
	assert_int_equal(queue.waiting->n_points, 2);
	assert_int_equal(put(&queue, 10, 16), 4); /* the third: the second is held */
	assert_ptr_equal(queue.waiting, TAILQ_FIRST(&queue.items));
	queue_step(&queue);
	assert_int_equal(queue.waiting->n_points, 8);
	assert_int_equal(put(&queue, 10, 32), 2);
	assert_int_equal(put(&queue, 10, 64), 8); /* the waiting one itself, of which nothing was sent */
	assert_int_equal(queue.waiting->n_points, 16);
	assert_ptr_equal(queue.waiting, TAILQ_FIRST(&queue.items));
	queue_done(&queue);
}

static void what_leaves_the_queue_is_marked_with_its_fate_and_what_is_left_is_not(void **state)
{
	uint8_t marks[4] = { 0 };
	const uint8_t first[4] = { POINTS_REJECTED }, both[4] = { POINTS_REJECTED, POINTS_QUEUE_FULL };
	struct queue queue;

	init(&queue, 3, 1000);
	for (size_t i = 0; i < 3; i++) {
		put(&queue, 10, 1);
		TAILQ_LAST(&queue.items, queue_items)->mark = &marks[i];
	}
	queue_begin(&queue);
	queue_end(&queue, POINTS_REJECTED);
	assert_memory_equal(marks, first, 4);
	put(&queue, 10, 1);
	TAILQ_LAST(&queue.items, queue_items)->mark = &marks[3];
	put(&queue, 10, 1); /* one too many: the second goes */
	assert_memory_equal(marks, both, 4);
	queue_done(&queue);
	assert_memory_equal(marks, both, 4);
}

static void what_is_held_is_not_sent_again_and_what_is_put_aside_not_yet(void **state)
{
	struct queue queue;

	init(&queue, 10, 1000);
	for (size_t i = 1; i <= 4; i++)
		put(&queue, 10, i);
	TAILQ_FIRST(&queue.items)->aside_ns = 1;
	queue_aim(&queue);
	assert_int_equal(queue_begin(&queue)->n_points, 2);
	queue_hold(&queue);
	assert_int_equal(queue_begin(&queue)->n_points, 3);
	queue_end(&queue, POINTS_DELIVERED);
	assert_int_equal(queue_begin(&queue)->n_points, 4);
	queue_end(&queue, POINTS_DELIVERED);
	assert_null(queue_begin(&queue));
	TAILQ_FIRST(&queue.items)->aside_ns = 0;
	queue_aim(&queue);
	assert_int_equal(queue_begin(&queue)->n_points, 1);
	queue_end(&queue, POINTS_DELIVERED);
	assert_null(queue_begin(&queue));
	assert_int_equal(queue.n_items, queue.n_held);
	queue_done(&queue);
}

static void of_a_budget_that_is_spent_who_has_most_gives_way(void **state)
{
	struct queue large, small;

	init(&large, 100, 90);
	queue_init(&small, 100, &budget);
	assert_int_equal(put(&large, 40, 1), 0);
	assert_int_equal(put(&large, 40, 2), 0); /* while the other needs nothing */
	assert_true(queue_is_near(&large, 11));
	assert_false(queue_is_near(&large, 10));
	assert_int_equal(put(&small, 70, 4), 0); /* nothing of what it can send at once is lost */
	assert_false(queue_is_near(&small, 11));
	assert_int_equal(queue_trim(&large), 1);
	assert_int_equal(put(&small, 10, 8), 4);
	queue_done(&large);
	assert_int_equal(put(&small, 80, 16), 0);
	queue_done(&small);
}

static void what_was_put_into_an_empty_queue_stays_until_the_next_window(void **state)
{
	struct queue queue;

	init(&queue, 100, 10);
	queue_begin_window(&queue, 1);
	assert_int_equal(put(&queue, 20, 1), 0);
	assert_int_equal(put(&queue, 20, 2), 0);
	queue_begin_window(&queue, 1);
	assert_int_equal(put(&queue, 5, 4), 3);
	queue_done(&queue);
}

static void a_window_is_taken_back_as_a_whole_or_not_at_all(void **state)
{
	struct queue queue;

	init(&queue, 100, 1000);
	put(&queue, 10, 1);
	queue.time_ns = 5;
	put(&queue, 10, 2);
	put(&queue, 10, 4);
	assert_false(queue_take_back(&queue, 5, 3)); /* one is not there any more */
	queue_begin(&queue);
	assert_true(queue_take_back(&queue, 5, 2)); /* what is being sent is of another window */
	queue_end(&queue, POINTS_DELIVERED);
	put(&queue, 10, 2);
	put(&queue, 10, 4);
	queue_begin(&queue);
	assert_false(queue_take_back(&queue, 5, 2));
	queue_end(&queue, POINTS_PUSHED);
	TAILQ_FIRST(&queue.items)->is_doubtful = true; /* the receiver may have it */
	assert_false(queue_take_back(&queue, 5, 2));
	assert_int_equal(queue.n_points, 6);
	TAILQ_FIRST(&queue.items)->is_doubtful = false;
	assert_true(queue_take_back(&queue, 5, 2));
	assert_int_equal(queue.n_items, 0);
	queue_done(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_leave_in_the_order_in_which_they_came),
		cmocka_unit_test(over_the_bytes_the_oldest_go_and_their_points_are_counted),
		cmocka_unit_test(over_the_number_the_oldest_goes),
		cmocka_unit_test(the_request_that_is_being_sent_is_never_dropped),
		cmocka_unit_test(what_alone_is_too_large_is_dropped_itself),
		cmocka_unit_test(without_memory_the_data_is_freed_all_the_same),
		cmocka_unit_test(what_was_sent_is_kept_until_it_is_confirmed),
		cmocka_unit_test(what_was_sent_goes_first_and_what_is_sent_in_part_stays),
		cmocka_unit_test(what_is_held_is_not_sent_again_and_what_is_put_aside_not_yet),
		cmocka_unit_test(what_leaves_the_queue_is_marked_with_its_fate_and_what_is_left_is_not),
		cmocka_unit_test(of_a_budget_that_is_spent_who_has_most_gives_way),
		cmocka_unit_test(what_was_put_into_an_empty_queue_stays_until_the_next_window),
		cmocka_unit_test(a_window_is_taken_back_as_a_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
