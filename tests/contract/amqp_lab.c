/* SPDX-License-Identifier: MIT */
#include "tests/contract/amqp_lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

extern const struct duebox_plugin duebox_plugin_v1;

int amqp_lab_set_up(void **state) {
  struct amqp_lab *lab = calloc(1, sizeof(*lab));
  assert_non_null(lab);
  lab->script = amqp_script_start();
  snprintf(lab->url, sizeof(lab->url), "amqp://127.0.0.1:%d", amqp_script_port(lab->script));
  lab->options = (struct amqp_options){.url = lab->url,
                                       .connect_timeout_ms = 10000,
                                       .confirm_timeout_ms = 30000,
                                       .heartbeat_ms = 30000,
                                       .frame_max = 131072};
  fake_options(amqp_route_rows, &lab->route);
  fake_options(amqp_source_rows, &lab->source);
  lab->source.queue = "results";
  *state = lab;
  return 0;
}

int amqp_lab_tear_down(void **state) {
  struct amqp_lab *lab = *state;
  amqp_script_stop(lab->script);
  free(lab);
  return 0;
}

struct fake_host *amqp_lab_open(struct amqp_lab *lab, enum duebox_role role) {
  return fake_host_open(&(struct fake_host_config){.plugin = &duebox_plugin_v1,
                                                   .role = role,
                                                   .options = &lab->options,
                                                   .source = role == DUEBOX_ROLE_SOURCE ? &lab->source : NULL,
                                                   .max_record = 1000,
                                                   .max_inflight = 1000});
}

void amqp_lab_add(struct fake_host *host, struct amqp_lab *f, int n) {
  for (int i = 0; i < n; i++)
    fake_host_add(host, &(struct fake_task){.route_data = &f->route, .payload = {"{}", 2}});
}

void amqp_lab_published(struct fake_host *host, struct amqp_lab *f, size_t count) {
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; amqp_script_published(f->script) < count;) {
    if (fake_host_now_ms() >= end)
      fail_msg("%zu of %zu messages were published", amqp_script_published(f->script), count);
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
}

void amqp_lab_completed(struct fake_host *host, size_t count) {
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS; fake_host_completed(host) < count;) {
    if (fake_host_now_ms() >= end)
      fail_msg("%zu of %zu tasks were completed", fake_host_completed(host), count);
    fake_host_offer(host);
    fake_host_poll(host, 10);
  }
}

void amqp_lab_confirm(struct amqp_lab *f, struct amqp_script_message m) {
  amqp_script_turn_to(f->script, m.connection);
  amqp_script_ack(f->script, m.channel, m.tag, false);
  amqp_script_turn_to(f->script, 0);
}

struct fake_host *amqp_lab_open_sink(struct amqp_lab *f) {
  struct fake_host *host = amqp_lab_open(f, DUEBOX_ROLE_SINK);
  size_t before = amqp_script_published(f->script);
  amqp_lab_add(host, f, 1);
  amqp_lab_published(host, f, before + 1);
  assert_int_equal(amqp_script_message(f->script, before).channel, AMQP_LAB_PROBE);
  amqp_script_ack(f->script, AMQP_LAB_PROBE, 1, false);
  amqp_lab_completed(host, 1);
  assert_int_equal(fake_host_outcome(host, 0).cls, DUEBOX_DELIVERED);
  return host;
}

void amqp_lab_expect(struct fake_host *host, size_t index, enum duebox_outcome_class cls, const char *error_class) {
  struct fake_outcome o = fake_host_outcome(host, index);
  if (!o.completed || o.cls != cls || strcmp(o.error_class, error_class) != 0)
    fail_msg("task %zu (%s): class %d %s \"%s\", expected class %d %s", index, o.message_id, (int)o.cls, o.error_class,
             o.message, (int)cls, error_class);
}

void amqp_lab_expect_all(struct fake_host *host, size_t from, size_t to, enum duebox_outcome_class cls,
                         const char *error_class) {
  for (size_t i = from; i < to; i++)
    amqp_lab_expect(host, i, cls, error_class);
}

void amqp_lab_comes_back(struct fake_host *host, struct amqp_lab *f, unsigned connections) {
  size_t before = amqp_script_published(f->script), delivered = fake_host_count(host, DUEBOX_DELIVERED);
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       amqp_script_published(f->script) == before && fake_host_now_ms() < end;) {
    amqp_lab_add(host, f, 1);
    fake_host_offer(host);
    for (int i = 0; i < 10 && amqp_script_published(f->script) == before; i++)
      fake_host_poll(host, 10);
  }
  assert_true(amqp_script_published(f->script) > before);
  if (connections)
    assert_int_equal(amqp_script_connections(f->script), connections);
  amqp_lab_confirm(f, amqp_script_message(f->script, before));
  for (int64_t end = fake_host_now_ms() + AMQP_LAB_LIMIT_MS;
       fake_host_count(host, DUEBOX_DELIVERED) == delivered && fake_host_now_ms() < end;)
    fake_host_poll(host, 10);
  assert_int_equal(fake_host_count(host, DUEBOX_DELIVERED), delivered + 1);
}

struct amqp_script_message amqp_lab_probed(struct fake_host *host, struct amqp_lab *f, size_t index) {
  amqp_lab_published(host, f, index + 1);
  struct amqp_script_message m = amqp_script_message(f->script, index);
  assert_int_not_equal(m.channel, AMQP_LAB_FLOW);
  return m;
}
