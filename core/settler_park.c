/* SPDX-License-Identifier: MIT
 *
 * core/settler_park.c - outcomes that wait because somebody holds their rows: they leave their places to others of
 * their route, and are shown.
 *
 * @thread the settler's
 */
#include "core/base/log.h"
#include "core/settler_internal.h"

enum {
  PARK_AFTER_US = 1000 * 1000, /* short transactions are over by then, mostly, */
  SAID_US = 5 * 1000 * 1000,   /* and others */
  LOOK_EVERY_US = 250 * 1000,
};

/* Not where somebody holds another table as a whole: what would be sent in its place needs that table as well. */
static bool is_to_be_parked(const struct flight *flight, int64_t now_us) {
  return !flight->parked && !flight->decision.beside && now_us - flight->busy_us >= PARK_AFTER_US;
}

void settler_park(struct settler *settler, int64_t now_us) {
  const struct flight *oldest = NULL;
  bool parked = false;
  if (settler->busy.flights.head && now_us < settler->park_at_us)
    return;
  settler->park_at_us = now_us + LOOK_EVERY_US;
  for (struct flight *flight = settler->busy.flights.head; flight; flight = flight->next) {
    if (!oldest || flight->busy_us < oldest->busy_us)
      oldest = flight;
    if (!is_to_be_parked(flight, now_us))
      continue;
    lane_park(flight->lane, flight);
    parked = true;
  }
  set_gauge(&settler->locked_since_us, oldest ? oldest->busy_us : 0);
  if (parked)
    mailbox_poke(settler->scheduler);
  if (oldest && now_us - oldest->busy_us >= SAID_US)
    log_repeated(
        &settler->trouble, LOG_LEVEL_WARN, "DUEBOX-SETTLE-LOCKED",
        "route=%s message_id=%s its outcome cannot be written: each try has met a lock on its row, on a table, "
        "or on a place that is needed beside them. Look for a transaction that is open for long "
        "(information_schema.INNODB_TRX) or a table that is locked (SHOW PROCESSLIST); where there is none the "
        "server is slow. The outcomes of others are written",
        oldest->lane->name, oldest->task->message_id.data);
}
