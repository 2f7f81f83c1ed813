/* SPDX-License-Identifier: MIT
 *
 * admin/metrics.c - /metrics: every counter, gauge and histogram of core/metrics.h, by name.
 *
 * Base units are seconds and bytes. Labels are names from the configuration (route, plugin), and of a hundred
 * routes at most that are in the table only; never a task's id or key. So the number of series is bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "admin/exposition.h"
#include "admin/look.h"
#include "admin/names.h"
#include "admin/process.h"

enum unit { PLAIN, MICROSECONDS };

/* One field of struct engine_metrics or struct route_metrics. */
struct series {
  const char *name;
  enum metric_type type;
  enum unit unit;
  size_t offset;
  const char *help;
};

#define E(field) offsetof(struct engine_metrics, field)
static const struct series engine_series[] = {
    {"duebox_rows_read", METRIC_COUNTER, PLAIN, E(rows_read), "Rows read from the outbox table."},
    {"duebox_statements", METRIC_COUNTER, PLAIN, E(statements), "Statements sent to the database."},
    {"duebox_db_server_changes", METRIC_COUNTER, PLAIN, E(server_changes),
     "Connections that reached another database server than the one before."},
    {"duebox_settle_batches", METRIC_COUNTER, PLAIN, E(settle_batches), "Transactions that settled tasks."},
    {"duebox_settled_rows", METRIC_COUNTER, PLAIN, E(settled_rows), "Rows settled."},
    {"duebox_fence_lost", METRIC_COUNTER, PLAIN, E(fence_lost),
     "Decisions dropped because the lease of their shard was lost."},
    {"duebox_settled_reduced", METRIC_COUNTER, PLAIN, E(settled_reduced),
     "Rows settled without an alert, a text or a line of the history that the server refused."},
    {"duebox_settle_stuck_tasks", METRIC_GAUGE, PLAIN, E(settle_stuck),
     "Outcomes that the server refuses in every form; they are tried again."},
    {"duebox_identity_mismatches", METRIC_COUNTER, PLAIN, E(identity_mismatches),
     "Tasks that were not in the table any more when they were settled: their id belongs to another."},
    {"duebox_leases_lost", METRIC_COUNTER, PLAIN, E(leases_lost), "Shard leases lost."},
    {"duebox_shards_taken", METRIC_COUNTER, PLAIN, E(shards_taken),
     "Shards taken over after an unclean end of their owner."},
    {"duebox_db_errors", METRIC_COUNTER, PLAIN, E(db_errors), "Failed units of work with the database."},
    {"duebox_completions_twice", METRIC_COUNTER, PLAIN, E(completions_twice),
     "Completions by a plugin of a task that was not open: a fault of the plugin."},
    {"duebox_results_unrouted", METRIC_COUNTER, PLAIN, E(results_unrouted),
     "Result records that fit no task or could not be understood."},
    {"duebox_reloads", METRIC_COUNTER, PLAIN, E(reloads), "Configurations taken."},
    {"duebox_reloads_refused", METRIC_COUNTER, PLAIN, E(reloads_refused), "Configurations refused."},
    {"duebox_drivers_replaced", METRIC_COUNTER, PLAIN, E(drivers_replaced),
     "Plugin drivers replaced because they hung."},
    {"duebox_recoveries", METRIC_COUNTER, PLAIN, E(recoveries), "Rows recovered from claims of a dead daemon."},
    {"duebox_binlog_hints", METRIC_COUNTER, PLAIN, E(hints), "Groups of tasks announced by the server's binlog."},
    {"duebox_binlog_up", METRIC_GAUGE, PLAIN, E(watch_up), "1 while the server's binlog is followed."},
    {"duebox_shards_held", METRIC_GAUGE, PLAIN, E(shards_held), "Shards whose lease this instance holds."},
    {"duebox_shards_unowned", METRIC_GAUGE, PLAIN, E(shards_unowned),
     "Shards that no daemon holds, as this one saw them last."},
    {"duebox_db_round_trip_seconds", METRIC_GAUGE, MICROSECONDS, E(db_round_trip_us), "Round trip to the database."},
    {"duebox_db_clock_offset_seconds", METRIC_GAUGE, MICROSECONDS, E(db_clock_offset_us),
     "The database's clock minus this machine's."},
    {"duebox_settle_queue_tasks", METRIC_GAUGE, PLAIN, E(settle_queue), "Outcomes that wait to be settled."},
};
#undef E

#define R(field) offsetof(struct route_metrics, field)
static const struct series route_series[] = {
    {"duebox_changed_in_flight", METRIC_COUNTER, PLAIN, R(changed),
     "Tasks that plain SQL changed while they were at their destination: sent again with their new content."},
    {"duebox_vanished", METRIC_COUNTER, PLAIN, R(vanished),
     "Tasks whose row was gone when they were settled, removed by plain SQL."},
    {"duebox_stalls", METRIC_COUNTER, PLAIN, R(stalls),
     "How often the destination stood still: it had not confirmed a task in time, nor any after it."},
    {"duebox_inflight_tasks", METRIC_GAUGE, PLAIN, R(inflight), "Tasks read from the table and not yet settled."},
    {"duebox_inflight_bytes", METRIC_GAUGE, PLAIN, R(inflight_bytes),
     "Bytes of payloads, headers and checkpoints in flight."},
    {"duebox_claim_gap_seconds", METRIC_GAUGE, MICROSECONDS, R(claim_gap_us),
     "Widest time seen between reading a row and its confirm by the sink, memory claims."},
};
static const struct series route_histograms[] = {
    {"duebox_lateness_seconds", METRIC_HISTOGRAM, MICROSECONDS, R(lateness),
     "Hand-over to the sink minus due time, first attempts."},
    {"duebox_attempt_duration_seconds", METRIC_HISTOGRAM, MICROSECONDS, R(duration), "Hand-over to outcome."},
};
#undef R

static const void *field(const void *metrics, const struct series *series) {
  return (const char *)metrics + series->offset;
}

/* counter and gauge are both 64-bit atomics; the type says which. */
static void write_value(struct exposition *ex, const struct series *series, const void *metrics,
                        const struct label *labels) {
  const void *at = field(metrics, series);
  int64_t value = series->type == METRIC_COUNTER ? (int64_t)counted(at) : gauge_value(at);
  if (series->unit == MICROSECONDS)
    exposition_seconds(ex, labels, value);
  else
    exposition_integer(ex, labels, value);
}

static void write_engine(struct exposition *ex, const struct engine_metrics *metrics) {
  for (size_t i = 0; i < ARRAY_LEN(engine_series); i++) {
    const struct series *series = &engine_series[i];
    exposition_begin(ex, series->name, series->type, series->help);
    write_value(ex, series, metrics, NULL);
  }
  exposition_begin(ex, "duebox_results_quarantined", METRIC_COUNTER, "Result records that were put into quarantine.");
  for (int i = 0; i < QUARANTINED_KINDS; i++)
    exposition_integer(ex, (struct label[]){{"reason", quarantined_name((enum quarantine_kind)i)}, {0}},
                       (int64_t)counted(&metrics->results_quarantined[i]));
}

static void write_route_fields(struct exposition *ex, const struct engine_status *status) {
  for (size_t i = 0; i < ARRAY_LEN(route_series); i++) {
    const struct series *series = &route_series[i];
    exposition_begin(ex, series->name, series->type, series->help);
    for (size_t r = 0; r < status->route_count; r++)
      write_value(ex, series, status->routes[r].metrics, (struct label[]){{"route", status->routes[r].name}, {0}});
  }
  for (size_t i = 0; i < ARRAY_LEN(route_histograms); i++) {
    const struct series *series = &route_histograms[i];
    exposition_begin(ex, series->name, series->type, series->help);
    for (size_t r = 0; r < status->route_count; r++)
      exposition_histogram(ex, (struct label[]){{"route", status->routes[r].name}, {0}},
                           field(status->routes[r].metrics, series));
  }
}

/* Counters by route and a second label: outcome, event, fate. */
static void write_route_vectors(struct exposition *ex, const struct engine_status *status) {
  exposition_begin(ex, "duebox_attempts", METRIC_COUNTER, "Attempts by what became of them.");
  for (size_t r = 0; r < status->route_count; r++)
    for (int i = DUEBOX_DELIVERED; i <= DUEBOX_GONE; i++)
      exposition_integer(ex,
                         (struct label[]){{"route", status->routes[r].name},
                                          {"outcome", outcome_name((enum duebox_outcome_class)i)},
                                          {0}},
                         (int64_t)counted(&status->routes[r].metrics->outcomes[i]));
  exposition_begin(ex, "duebox_task_events", METRIC_COUNTER, "Settled moves of tasks between states.");
  for (size_t r = 0; r < status->route_count; r++)
    for (int i = 0; i < TASK_EVENTS; i++)
      exposition_integer(
          ex, (struct label[]){{"route", status->routes[r].name}, {"event", task_event_text((enum task_event)i)}, {0}},
          (int64_t)counted(&status->routes[r].metrics->events[i]));
  exposition_begin(ex, "duebox_results", METRIC_COUNTER, "Result records by their fate.");
  for (size_t r = 0; r < status->route_count; r++)
    for (int i = 0; i < RESULT_FATES; i++)
      exposition_integer(
          ex, (struct label[]){{"route", status->routes[r].name}, {"fate", fate_name((enum result_fate)i)}, {0}},
          (int64_t)counted(&status->routes[r].metrics->results[i]));
}

static void write_route_states(struct exposition *ex, const struct engine_status *status) {
  exposition_begin(ex, "duebox_oldest_due_age_seconds", METRIC_GAUGE,
                   "How long the oldest due task that is not in flight has been due; 0 = none.");
  for (size_t r = 0; r < status->route_count; r++)
    exposition_seconds(ex, (struct label[]){{"route", status->routes[r].name}, {0}},
                       due_age_us(&status->routes[r].metrics->oldest_due_us, status->db_now_us));
  exposition_begin(ex, "duebox_oldest_blocked_age_seconds", METRIC_GAUGE,
                   "How long the oldest task that is blocked by its order_key has been due; 0 = none.");
  for (size_t r = 0; r < status->route_count; r++)
    exposition_seconds(ex, (struct label[]){{"route", status->routes[r].name}, {0}},
                       due_age_us(&status->routes[r].metrics->first_blocked_us, status->db_now_us));
  exposition_begin(ex, "duebox_next_due_timestamp_seconds", METRIC_GAUGE,
                   "Earliest known due time as Unix time by the database's clock; 0 = none.");
  for (size_t r = 0; r < status->route_count; r++)
    exposition_seconds(ex, (struct label[]){{"route", status->routes[r].name}, {0}}, status->routes[r].next_due_us);
  exposition_begin(ex, "duebox_waiting_groups", METRIC_GAUGE,
                   "Groups of rows (shard and priority) that wait for their time.");
  for (size_t r = 0; r < status->route_count; r++)
    exposition_integer(ex, (struct label[]){{"route", status->routes[r].name}, {0}},
                       (int64_t)status->routes[r].waiting_groups);
  exposition_begin(
      ex, "duebox_route_stalled_seconds", METRIC_GAUGE,
      "How long the destination has confirmed nothing of what it was given; 0 = it does, or less than 1 s.");
  for (size_t r = 0; r < status->route_count; r++)
    exposition_seconds(ex, (struct label[]){{"route", status->routes[r].name}, {0}}, status->routes[r].stalled_us);
  static const char *const states[] = {"known", "paused", "suspended"};
  exposition_begin(ex, "duebox_route_targets_suspended", METRIC_GAUGE,
                   "Topics, keys or URLs of the route that are suspended by themselves.");
  for (size_t r = 0; r < status->route_count; r++)
    exposition_integer(ex, (struct label[]){{"route", status->routes[r].name}, {0}},
                       (int64_t)status->routes[r].target_count);
  exposition_begin(ex, "duebox_route_state", METRIC_GAUGE,
                   "1 while the route is configured (known), paused by people, suspended because its destination is "
                   "down.");
  for (size_t r = 0; r < status->route_count; r++) {
    const struct route_status *route = &status->routes[r];
    const bool is[] = {route->known, route->paused, route->suspended};
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
      exposition_integer(ex, (struct label[]){{"route", route->name}, {"state", states[i]}, {0}}, is[i]);
  }
}

static void write_plugins(struct exposition *ex, const struct engine_status *status) {
  static const char *const families[][2] = {
      {"duebox_plugin_up", "1 while the plugin reaches its destination, and a source may read it."},
      {"duebox_plugin_inflight_tasks", "Tasks open with the plugin."},
      {"duebox_plugin_poll_age_seconds", "Since the plugin's driver was last seen alive."},
  };
  for (size_t f = 0; f < ARRAY_LEN(families); f++) {
    exposition_begin(ex, families[f][0], METRIC_GAUGE, families[f][1]);
    for (size_t i = 0; i < status->plugin_count; i++) {
      const struct plugin_status *plugin = &status->plugins[i];
      const struct label labels[] = {{"plugin", plugin->name}, {"role", plugin->role}, {0}};
      if (f == 2)
        exposition_seconds(ex, labels, plugin->last_poll_age_us);
      else
        exposition_integer(ex, labels, f == 0 ? plugin->up : (int64_t)plugin->inflight);
    }
  }
}

static void write_daemon(struct exposition *ex, const struct engine_status *status) {
  exposition_begin(ex, "duebox_build", METRIC_INFO, "The running program.");
  exposition_info(ex, (struct label[]){{"version", DUEBOX_VERSION}, {"compiler", __VERSION__}, {0}});
  exposition_begin(ex, "duebox_ready", METRIC_GAUGE, "1 while the daemon does its work.");
  exposition_integer(ex, NULL, status->ready && !status->draining);
  exposition_begin(ex, "duebox_problems", METRIC_GAUGE, "Reasons why it does not, as /readyz lists them.");
  exposition_integer(ex, NULL, (int64_t)status->problems.count);
  exposition_begin(ex, "duebox_db_up", METRIC_GAUGE,
                   "1 while the database answers; 0 also if finding and reading due tasks has failed for 30 s.");
  exposition_integer(ex, NULL, status->db_up);
  exposition_begin(ex, "duebox_draining", METRIC_GAUGE, "1 while the daemon finishes what is in flight.");
  exposition_integer(ex, NULL, status->draining);
}

void metrics_show(struct admin *admin, const struct request *request, struct response *response) {
  struct look look;
  if (!look_at(admin, request, &look, response))
    return;
  const struct engine_status *status = &look.status;
  char *text = NULL;
  size_t len = 0;
  struct exposition ex = {.out = open_memstream(&text, &len),
                          .open_metrics = exposition_prefers_open_metrics(request->accept)};
  if (ex.out) {
    write_daemon(&ex, status);
    write_engine(&ex, engine_metrics(admin_engine(admin)));
    write_route_fields(&ex, status);
    write_route_vectors(&ex, status);
    write_route_states(&ex, status);
    write_plugins(&ex, status);
    process_write(&ex);
    exposition_end(&ex);
    if (fclose(ex.out) != 0) {
      free(text);
      text = NULL;
    }
  }
  look_end(&look);
  respond_text(response, 200,
               ex.open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                               : "text/plain; version=0.0.4; charset=utf-8",
               text, len);
}
