/* SPDX-License-Identifier: Apache-2.0 */
/* What comes back of datagrams, and when. */
#include "rig.h"

#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

static int on_flush_time(sd_event_source *source, uint64_t usec, void *user)
{
	flush((struct socket *)user, false, 0);
	return 0;
}

/* The loop has seen it together with a timer, whose call came first. */
static void a_report_that_a_call_has_met_is_no_other_error(void **state)
{
	sd_event_source *timer = NULL;

	udp_new_to(endpoint_at("127.0.0.1", free_port(SOCK_DGRAM, "127.0.0.1")));
	put("a:1|c", 1);
	flush(udp, false, 0);
	assert_true(sd_event_add_time_relative(world.event, &timer, CLOCK_MONOTONIC, 0, 0, on_flush_time, udp) >= 0);
	assert_true(sd_event_source_set_priority(timer, SD_EVENT_PRIORITY_IMPORTANT) >= 0);
	RUN_UNTIL(stats->points[POINTS_CONNECTION_REFUSED]);
	run_for(60);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 1);
	assert_int_equal(world.exporter.n_losses, 1); /* it was not opened again */
	sd_event_source_unref(timer);
}

/* What a router or a firewall says of a datagram from 127.0.0.1 to 127.0.0.1. */
struct icmp_report {
	int fd;
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
	} packet;
};

static void icmp_report_init(struct icmp_report *report, uint8_t code, in_port_t from, in_port_t to)
{
	const in_addr_t here = htonl(INADDR_LOOPBACK);
	uint16_t words[sizeof(report->packet) / 2];
	uint32_t sum = 0;

	*report = (struct icmp_report){ .fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP),
					.packet = { { .type = ICMP_DEST_UNREACH, .code = code },
						    { .version = 4, .ihl = 5, .tot_len = htons(33), .ttl = 64,
						      .protocol = IPPROTO_UDP, .saddr = here, .daddr = here },
						    { .source = from, .dest = to, .len = htons(13) } } };
	memcpy(words, &report->packet, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / 2; i++)
		sum += words[i];
	report->packet.icmp.checksum = (uint16_t)~(sum + (sum >> 16));
}

static int on_report_time(sd_event_source *source, uint64_t usec, void *user)
{
	const struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct icmp_report *report = user;

	assert_int_equal(sendto(report->fd, &report->packet, sizeof(report->packet), 0, (const struct sockaddr *)&here,
				sizeof(here)), sizeof(report->packet));
	return 0;
}

/* "Host prohibited": what firewalld, among others, answers where a port is not open. */
static void a_firewall_that_refuses_is_a_receiver_that_does(void **state)
{
	int fd = bound_socket(SOCK_DGRAM, "127.0.0.1", 0);
	struct sender_options options = udp_options_for(endpoint_at("127.0.0.1", port_of(fd)));
	struct sockaddr_in first = { 0 }, second = { 0 };
	socklen_t size = sizeof(first);
	sd_event_source *timer = NULL;
	struct icmp_report report;
	char text[8];

	options.burst = 1;
	udp_new(&options);
	put("a:1|c", 1);
	put("b:1|c", 2);
	flush(udp, false, 1000 * MS);
	assert_int_equal(recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&first, &size), 5);
	icmp_report_init(&report, ICMP_HOST_ANO, first.sin_port, htons((uint16_t)port_of(fd)));
	if (report.fd < 0) {
		print_message("needs the right to open a raw socket\n");
		close(fd);
		skip();
	}
	/* The report comes when the next datagram's turn has, before the loop looks at the socket again. */
	assert_true(sd_event_add_time_relative(world.event, &timer, CLOCK_MONOTONIC, 0, 0, on_report_time, &report) >=
		    0);
	assert_true(sd_event_source_set_priority(timer, SD_EVENT_PRIORITY_IMPORTANT) >= 0);
	usleep(20000); /* longer than a tick, so that both are due in one turn */
	RUN_UNTIL(exporter_is_idle(&world.exporter));
	assert_int_equal(recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&second, &size), 5);
	assert_int_equal(first.sin_port, second.sin_port);
	run_for(20);
	flush(udp, false, 0);
	assert_int_equal(stats->points[POINTS_CONNECTION_REFUSED], 1);
	assert_int_equal(stats->points[POINTS_DELIVERED], 2);
	assert_int_equal(world.exporter.n_losses, 1);
	assert_true(stats->is_failing);
	sd_event_source_unref(timer);
	close(report.fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_report_that_a_call_has_met_is_no_other_error),
		RIG_TEST(a_firewall_that_refuses_is_a_receiver_that_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
