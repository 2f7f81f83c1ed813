/* SPDX-License-Identifier: MIT
 *
 * admin/status.c - the engine's state as JSON, for the page and for programs.
 *
 * Ids and epochs are strings: JavaScript's numbers end at 2^53. Times are RFC 3339 UTC, durations microseconds, counts
 * since the daemon started.
 */
#include <string.h>

#include "admin/look.h"
#include "admin/names.h"

static json_int_t count_of(const counter *c) { return (json_int_t)counted(c); }

/* Adds value, of which it takes the reference. Any failure leaves *object NULL, which becomes a 500. */
static void put(json_t **object, const char *key, json_t *value) {
  if (json_object_set_new(*object, key, value) == 0)
    return;
  json_decref(*object);
  *object = NULL;
}

static void append(json_t **array, json_t *value) {
  if (json_array_append_new(*array, value) == 0)
    return;
  json_decref(*array);
  *array = NULL;
}

static json_t *histogram_json(const struct histogram *histogram) {
  json_t *buckets = json_array();
  for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
    append(&buckets, json_integer(count_of(&histogram->bucket[i])));
  return json_pack("{sI sI sI sI so}", "count", count_of(&histogram->count), "sum_us", count_of(&histogram->sum_us),
                   "p50_us", (json_int_t)histogram_quantile_us(histogram, 0.50), "p99_us",
                   (json_int_t)histogram_quantile_us(histogram, 0.99), "buckets", buckets);
}

static json_t *bounds_json(void) {
  json_t *bounds = json_array();
  for (size_t i = 0; i < HISTOGRAM_BUCKETS - 1; i++)
    append(&bounds, json_integer(histogram_bounds_us[i]));
  return bounds;
}

static json_t *outcomes_json(const struct route_metrics *metrics) {
  json_t *object = json_object();
  for (int i = DUEBOX_DELIVERED; i <= DUEBOX_GONE; i++)
    put(&object, outcome_name((enum duebox_outcome_class)i), json_integer(count_of(&metrics->outcomes[i])));
  return object;
}

static json_t *events_json(const struct route_metrics *metrics) {
  json_t *object = json_object();
  for (int i = 0; i < TASK_EVENTS; i++)
    put(&object, task_event_text((enum task_event)i), json_integer(count_of(&metrics->events[i])));
  return object;
}

static json_t *results_json(const struct route_metrics *metrics) {
  json_t *object = json_object();
  for (int i = 0; i < RESULT_FATES; i++)
    put(&object, fate_name((enum result_fate)i), json_integer(count_of(&metrics->results[i])));
  return object;
}

/* The targets of a route that are suspended by themselves; the others of the route are well. */
static json_t *targets_json(const struct look *look, const struct route_status *route) {
  json_t *targets = json_array();
  for (size_t i = 0; route->targets && i < route->target_count; i++) {
    const struct target_status *target = &route->targets[i];
    append(&targets,
           json_pack("{so ss ss so so sI}", "target", look_said(look, target->name), "health", target->health,
                     "error_class", target->error_class, "reason", look_said(look, target->reason), "message_id",
                     look_said(look, target->message_id), "probe_in_us", (json_int_t)target->probe_in_us));
  }
  return targets;
}

static json_t *route_json(const struct look *look, const struct route_status *route) {
  const struct route_metrics *metrics = route->metrics;
  json_t *object = json_pack("{so so sb sb sb so sI so}", "name", json_any(route->name), "via",
                             route->via ? json_any(route->via) : json_null(), "known", route->known, "paused",
                             route->paused, "suspended", route->suspended, "reason",
                             look_said(look, route->paused ? route->pause_reason : route->reason), "waiting_groups",
                             (json_int_t)route->waiting_groups, "next_due_at", json_time(route->next_due_us));
  put(&object, "health", json_string(route->health ? route->health : "ok"));
  put(&object, "trouble", look_said(look, route->reason));
  put(&object, "stalled_us", json_integer(route->stalled_us));
  put(&object, "stalled_target", look_said(look, route->stalled_target));
  put(&object, "stalled_message_id", look_said(look, route->stalled_task));
  put(&object, "targets", targets_json(look, route));
  put(&object, "inflight", json_integer(gauge_value(&metrics->inflight)));
  put(&object, "inflight_bytes", json_integer(gauge_value(&metrics->inflight_bytes)));
  put(&object, "oldest_due_age_us", json_integer(due_age_us(&metrics->oldest_due_us, look->status.db_now_us)));
  put(&object, "oldest_blocked_age_us", json_integer(due_age_us(&metrics->first_blocked_us, look->status.db_now_us)));
  put(&object, "claim_gap_us", json_integer(gauge_value(&metrics->claim_gap_us)));
  put(&object, "vanished", json_integer(count_of(&metrics->vanished)));
  put(&object, "events", events_json(metrics));
  put(&object, "outcomes", outcomes_json(metrics));
  put(&object, "results", results_json(metrics));
  put(&object, "lateness", histogram_json(&metrics->lateness));
  put(&object, "duration", histogram_json(&metrics->duration));
  return object;
}

static json_t *routes_json(const struct look *look) {
  json_t *routes = json_array();
  for (size_t i = 0; i < look->status.route_count; i++)
    append(&routes, route_json(look, &look->status.routes[i]));
  return routes;
}

/* Before it has said anything, the words are ours. */
static json_t *plugin_text(const struct look *look, const struct plugin_status *plugin) {
  return strcmp(plugin->text, PLUGIN_UNHEARD) == 0 ? json_string(PLUGIN_UNHEARD) : look_said(look, plugin->text);
}

static json_t *plugins_json(const struct look *look) {
  json_t *plugins = json_array();
  for (size_t i = 0; i < look->status.plugin_count; i++) {
    const struct plugin_status *plugin = &look->status.plugins[i];
    append(&plugins, json_pack("{so so sb so sI sI}", "name", json_any(plugin->name), "role", json_any(plugin->role),
                               "up", plugin->up, "text", plugin_text(look, plugin), "inflight",
                               (json_int_t)plugin->inflight, "last_poll_age_us", (json_int_t)plugin->last_poll_age_us));
  }
  return plugins;
}

static json_t *shards_json(const struct engine_status *status) {
  json_t *shards = json_array();
  for (size_t i = 0; i < status->shard_count; i++) {
    char epoch[24];
    snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)status->shards[i].epoch);
    append(&shards, json_pack("{si ss sb sb}", "shard", (int)status->shards[i].shard, "epoch", epoch, "held",
                              status->shards[i].held, "leaving", status->shards[i].leaving));
  }
  return shards;
}

static json_t *database_json(const struct engine_status *status, const struct engine_metrics *metrics) {
  return json_pack("{sb sI sI sI sI}", "up", status->db_up, "round_trip_us",
                   (json_int_t)gauge_value(&metrics->db_round_trip_us), "clock_offset_us",
                   (json_int_t)gauge_value(&metrics->db_clock_offset_us), "errors", count_of(&metrics->db_errors),
                   "statements", count_of(&metrics->statements));
}

static json_t *engine_json(const struct engine_metrics *metrics) {
  const struct {
    const char *name;
    const counter *value;
  } counters[] = {
      {"rows_read", &metrics->rows_read},
      {"settled_rows", &metrics->settled_rows},
      {"settle_batches", &metrics->settle_batches},
      {"fence_lost", &metrics->fence_lost},
      {"settled_reduced", &metrics->settled_reduced},
      {"identity_mismatches", &metrics->identity_mismatches},
      {"leases_lost", &metrics->leases_lost},
      {"shards_taken", &metrics->shards_taken},
      {"completions_twice", &metrics->completions_twice},
      {"results_unrouted", &metrics->results_unrouted},
      {"reloads", &metrics->reloads},
      {"reloads_refused", &metrics->reloads_refused},
      {"drivers_replaced", &metrics->drivers_replaced},
      {"recoveries", &metrics->recoveries},
  };
  json_t *object = json_object();
  for (size_t i = 0; i < ARRAY_LEN(counters); i++)
    put(&object, counters[i].name, json_integer(count_of(counters[i].value)));
  put(&object, "settle_queue", json_integer(gauge_value(&metrics->settle_queue)));
  return object;
}

void status_stats(struct admin *admin, const struct request *request, struct response *response) {
  struct look look;
  if (!look_at(admin, request, &look, response))
    return;
  const struct engine_status *status = &look.status;
  const struct engine_metrics *metrics = engine_metrics(admin_engine(admin));
  const char *failed = engine_failed(admin_engine(admin));
  json_t *object =
      json_pack("{so ss sb sb so so so so}", "instance", json_any(status->instance), "version", DUEBOX_VERSION, "ready",
                status->ready, "draining", status->draining, "not_ready",
                json_any(status->ready ? "" : status->not_ready), "failed", failed ? json_any(failed) : json_null(),
                "started_at", json_time(status->started_us), "database_now", json_time(status->db_now_us));
  put(&object, "database", database_json(status, metrics));
  put(&object, "engine", engine_json(metrics));
  put(&object, "shards", shards_json(status));
  put(&object, "plugins", plugins_json(&look));
  put(&object, "bucket_bounds_us", bounds_json());
  put(&object, "routes", routes_json(&look));
  respond_json(response, 200, object);
  look_end(&look);
}

void status_routes(struct admin *admin, const struct request *request, struct response *response) {
  struct look look;
  if (!look_at(admin, request, &look, response))
    return;
  respond_json(response, 200, json_pack("{so so}", "bucket_bounds_us", bounds_json(), "routes", routes_json(&look)));
  look_end(&look);
}
