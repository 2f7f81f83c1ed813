/* SPDX-License-Identifier: MIT
 *
 * core/settler_decide.c - what follows from how a flight ended: the rules are asked, and answers of consumers read.
 */
#include <stdio.h>
#include <string.h>

#include "core/config_ref.h"
#include "core/lane.h"
#include "core/result_origin.h"
#include "core/settler_internal.h"

static void note_flaw(struct batch *batch, struct flight *flight, const char *status, const char *flaw) {
  if (batch->flawed_count == FLAWED_MAX)
    return;
  struct flawed *flawed = &batch->flawed[batch->flawed_count++];
  flawed->flight = flight;
  flawed->status = status;
  snprintf(flawed->flaw, sizeof flawed->flaw, "%s", flaw);
}

/* Reads what the consumer answered to the call; NULL when that is no record. */
static struct result_record *read_answer(struct flight *flight, const struct route_config *route, struct batch *batch,
                                         struct duebox_outcome *outcome) {
  const struct record_road road = {.message_id = flight->task->view.message_id,
                                   .attempt = flight->task->attempt_now,
                                   .checkpoint_max = route->max_checkpoint};
  struct result_record *record = &batch->records[batch->record_count];
  struct err err = {0};
  if (result_record_parse(outcome->record ? outcome->record : "", outcome->record_len, &road, record, &err)) {
    batch->record_count++;
    if (record->flaw && !flight->counted)
      note_flaw(batch, flight, result_status_text(record->status), record->flaw);
    return record;
  }
  /* It was meant to say something, and nobody knows what. */
  if (outcome->answer == DUEBOX_ANSWER_RECORD || err.code == RECORD_DOUBTFUL) {
    outcome->cls = DUEBOX_RETRY;
    outcome->error_class = RECORD_BROKEN;
    if (!outcome->message)
      outcome->message = "the answer was to be a result record, and no status can be made out";
    if (!flight->counted) {
      count(&flight->lane->metrics.results[RESULT_BROKEN], 1);
      note_flaw(batch, flight, NULL, outcome->message);
    }
  }
  return NULL;
}

static void decide_outcome(struct flight *flight, const struct route_config *route, const struct rules_context *context,
                           const struct rules_task *facts, struct batch *batch, bool *written) {
  struct result_record *record = NULL;
  struct duebox_outcome outcome = flight->outcome;
  if (outcome.cls == DUEBOX_DELIVERED && (outcome.record || outcome.answer == DUEBOX_ANSWER_RECORD))
    record = read_answer(flight, route, batch, &outcome);
  rules_outcome(context, route, facts, &outcome, record, &flight->decision, written);
}

bool settler_decide(struct flight *flight, struct batch *batch) {
  struct rules_context context = {.config = flight->config->config, .now_us = batch->db_us, .random = batch->random};
  /* When the sink had it, by the database's clock: the settling itself may come later. */
  if (flight->completed_us)
    context.now_us -= batch->mono_us - flight->completed_us;
  const struct route_config *route = config_route(context.config, flight->lane->name, strlen(flight->lane->name));
  struct rules_task facts = flight_facts(flight);
  bool written = true;
  switch (flight->end) {
  case FLIGHT_OUTCOME:
    decide_outcome(flight, route, &context, &facts, batch, &written);
    break;
  case FLIGHT_UNSENT:
    rules_unsent(&facts, &flight->decision, &written);
    break;
  case FLIGHT_REFUSED:
    rules_refuse(&context, route, &facts, flight->outcome.error_class, flight->outcome.message, &flight->decision);
    break;
  case FLIGHT_EXPIRED:
    rules_expire(&context, &facts, &flight->decision);
    break;
  case FLIGHT_MOVES:
    rules_move(&facts, &flight->decision);
    break;
  case FLIGHT_BLOCKED:
    rules_block(&facts, &flight->decision);
    break;
  case FLIGHT_DEFERRED:
    rules_defer(&context, route, &facts, flight->outcome.retry_after_ms * 1000, flight->outcome.error_class,
                flight->outcome.message, &flight->decision);
    break;
  case FLIGHT_NO_RESULT:
    rules_no_result(&context, route, &facts, &flight->decision);
    break;
  case FLIGHT_STOPPED:
    rules_stopped(&facts, &flight->decision);
    break;
  case FLIGHT_RECOVER:
    rules_recover(&context, route, &facts, &flight->decision);
    break;
  }
  /* A recovered one goes before the others of its key too. */
  bool again = flight->decision.event == EVENT_RETRY || flight->decision.event == EVENT_DEFER ||
               (flight->end == FLIGHT_RECOVER && flight->decision.event == EVENT_RELEASE);
  bool failed = again && route && route->order == ORDER_BLOCK;
  /* Whoever stays where it was, or comes there, does not overtake one that has moved. */
  flight->decision.head = flight->in_order && (failed || flight->end == FLIGHT_MOVES);
  return written;
}

void settler_keep_flawed(struct settler *settler, struct store_session *ss, const struct batch *batch) {
  struct store_result results[FLAWED_MAX];
  char why[FLAWED_MAX][320];
  for (size_t i = 0; i < batch->flawed_count; i++) {
    const struct flawed *flawed = &batch->flawed[i];
    const struct flight *flight = flawed->flight;
    log_repeated(&settler->flaws, LOG_LEVEL_WARN, "DUEBOX-ANSWER-BROKEN", "route=%s status=%s %s: %s",
                 flight->lane->name, flawed->status ? flawed->status : "?",
                 flawed->status ? "counts, but" : "counts as a failure", flawed->flaw);
    snprintf(why[i], sizeof why[i], "%s: %s", flight->task->view.message_id, flawed->flaw);
    results[i] = (struct store_result){
        .broken = why[i],
        .source = SOURCE_ANSWER,
        .origin = flight->lane->name,
        .body = {flight->outcome.record ? flight->outcome.record : "", flight->outcome.record_len}};
  }
  struct err err = {0};
  if (batch->flawed_count &&
      settler->store->ops->settle_results(ss, results, batch->flawed_count, NULL, NULL, &err) != STORE_OK)
    count(&settler->metrics->db_errors, 1);
}
