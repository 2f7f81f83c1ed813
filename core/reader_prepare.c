/* SPDX-License-Identifier: MIT
 *
 * core/reader_prepare.c - what a plugin sees of a row, and whether the row can ever be sent.
 */
#include "core/callback.h"
#include "core/callback_id.h"
#include "core/headers.h"
#include "core/reader.h"

static const char *reply_to(const struct scheduler *s, const struct route_config *route, struct task *task) {
  const struct callbacks_config *callbacks = &s->config->config->callbacks;
  if (route->reply_to || !(route->plugin->module->capabilities & DUEBOX_CAP_ANSWERS) || !callbacks->host)
    return route->reply_to;
  const struct callback_copy copy = {.attempt = task->attempt_now,
                                     .row = task->id,
                                     .version = task_version(&task->changed_at),
                                     .lane = callback_lane(route->name)};
  task->reply_to = callback_url(callbacks, task->view.message_id, &copy);
  return task->reply_to;
}

bool reader_too_large(const struct scheduler *s, const struct task *task) {
  return task->payload_len > (uint64_t)s->config->config->engine.max_payload;
}

bool reader_prepare(const struct scheduler *s, const struct route_config *route, struct task *task,
                    const char **error_class, struct err *err) {
  *error_class = "row.payload_too_large";
  if (!task->payload.data)
    return err_set(err, 0, "the payload has %llu bytes, engine.max_payload is %lld",
                   (unsigned long long)task->payload_len, (long long)s->config->config->engine.max_payload);
  size_t header_count = 0;
  *error_class = "row.headers";
  if (!headers_parse(task->headers, &task->header_list, &header_count, err))
    return false;
  task->recorded = task->state == TASK_CLAIMED;
  task->attempt_now = task->recorded ? task->attempt : task->attempt + 1;
  task->view = (struct duebox_task){
      .struct_size = sizeof task->view,
      .message_id = task->message_id.data,
      .route = route->name,
      .attempt = task->attempt_now,
      .timeout_ms = (uint32_t)route_attempt_ms(route, task->timeout_ms),
      .due_us = task->asked_due_us,
      .priority = task->priority,
      .key = task->task_key,
      .payload = task->payload,
      .checkpoint = task->checkpoint,
      .headers = task->header_list,
      .header_count = header_count,
      .route_data = route->options,
      .revision = task->revision,
      .result_awaited = route->result_awaited,
  };
  task->view.reply_to = reply_to(s, route, task);
  *error_class = "row.target_refused";
  return target_permitted(route, &task->view, err);
}
