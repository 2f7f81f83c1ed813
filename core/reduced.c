/* SPDX-License-Identifier: MIT */
#include "core/reduced.h"

#include "core/base/log.h"

void reduced_note(struct log_repeat *said, struct engine_metrics *metrics, const char *route, const char *message_id,
                  enum decision_form form, const char *why) {
  static const char *const left_out[DECISION_FORMS] = {
      [DECISION_WHOLE] = "nothing",
      [DECISION_CUT] = "what its columns in outbox_history or outbox_attempts do not take",
      [DECISION_OWN_ID] = "the next row id for its alert",
      [DECISION_NO_ALERT] = "the alert",
      [DECISION_NO_TEXTS] = "the alert and the texts",
      [DECISION_NO_LINES] = "alert, texts and line in outbox_attempts",
      [DECISION_NO_HEAD] =
          "alert, texts, line in outbox_attempts and outbox_heads: others of its order_key do not wait",
      [DECISION_NO_LINES_CUT] = "alert, texts, lines and what its columns in the history do not take",
      [DECISION_NO_HISTORY] = "all that was to be kept of it, its line in the history too"};
  count(&metrics->settled_reduced, 1);
  log_repeated(said, LOG_LEVEL_ERROR, "DUEBOX-SETTLE-REDUCED",
               "route=%s message_id=%s settled without %s, which the server refuses: %s", route, message_id,
               left_out[form], why);
}
