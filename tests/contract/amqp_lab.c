/* SPDX-License-Identifier: MIT */
#include "tests/contract/amqp_lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <setjmp.h>

#include <cmocka.h>

extern const struct duebox_plugin duebox_plugin_v1;

int64_t amqp_lab_now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

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
