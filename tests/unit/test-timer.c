/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <systemd/sd-event.h>

#include "export/transport/timer.h"
#include "util/duration.h"

struct world {
	sd_event *event;
	struct timer timer;
	unsigned int n_expired;
};

static void world_init(struct world *world, timer_fn *expired)
{
	*world = (struct world){ 0 };
	assert_true(sd_event_new(&world->event) >= 0);
	world->timer = (struct timer){ world->event, expired, world, NULL };
}

static void world_done(struct world *world)
{
	timer_done(&world->timer);
	sd_event_unref(world->event);
}

static void expire_twice(void *user)
{
	struct world *world = user;

	if (++world->n_expired == 2)
		sd_event_exit(world->event, 0);
	else
		assert_ok(timer_arm(&world->timer, 20 * NS_PER_MS));
}

static void it_expires_once_each_time_it_is_armed(void **state)
{
	uint64_t start_ns, now_ns;
	struct world world;

	world_init(&world, expire_twice);
	start_ns = timer_now_ns(world.event);
	assert_ok(timer_arm(&world.timer, 3600 * NS_PER_S));
	assert_ok(timer_arm(&world.timer, 20 * NS_PER_MS)); /* replaces it */
	assert_int_equal(sd_event_loop(world.event), 0);
	now_ns = timer_now_ns(world.event);
	assert_int_equal(world.n_expired, 2);
	assert_true(now_ns - start_ns >= 40 * NS_PER_MS);
	assert_true(now_ns - start_ns < 3600 * NS_PER_S);
	world_done(&world);
}

static void count(void *user)
{
	((struct world *)user)->n_expired++;
}

static void it_does_not_expire_when_it_is_disarmed(void **state)
{
	struct world world;

	world_init(&world, count);
	timer_disarm(&world.timer);
	assert_ok(timer_arm(&world.timer, 0));
	timer_disarm(&world.timer);
	assert_int_equal(sd_event_run(world.event, 10000), 0); /* nothing to do */
	assert_int_equal(world.n_expired, 0);
	assert_ok(timer_arm(&world.timer, 0));
	assert_true(sd_event_run(world.event, 10000000) > 0);
	assert_int_equal(world.n_expired, 1);
	assert_int_equal(sd_event_run(world.event, 10000), 0);
	timer_done(&world.timer);
	timer_done(&world.timer); /* there is nothing left to end */
	world_done(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_expires_once_each_time_it_is_armed),
		cmocka_unit_test(it_does_not_expire_when_it_is_disarmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
