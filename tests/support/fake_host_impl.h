/* SPDX-License-Identifier: MIT
 *
 * tests/support/fake_host_impl.h - inside of the fake host, shared by its three files only.
 */
#ifndef TESTS_SUPPORT_FAKE_HOST_IMPL_H
#define TESTS_SUPPORT_FAKE_HOST_IMPL_H

#include <pthread.h>

#include "tests/support/fake_host.h"

struct fake_log {
  char id[48];
};

struct fake_entry {
  struct duebox_task *view; /* NULL once completed: freed, so that a late reader is caught */
  struct fake_outcome outcome;
};

struct fake_host {
  const struct duebox_plugin *plugin;
  void *inst;
  const char *name;
  struct duebox_host table;
  struct duebox_instance_config config;
  pthread_t driver;
  bool created, started, verbose;

  pthread_mutex_t lock; /* everything below */
  bool stopped;
  bool recalled; /* once at least */
  char breach[512];
  int health;
  char unread[512]; /* "" = nothing of the kind was said last */
  struct fake_log *log_ids;
  size_t log_count, log_cap;

  struct fake_entry *tasks;
  size_t task_count, task_cap;
  size_t offered;   /* tasks before this one were accepted */
  size_t offer_end; /* the tasks of the running submit() end here */

  struct fake_result *results;
  size_t result_count, result_cap;
  size_t room;
  bool full;
};

void *fake_grow(void *items, size_t count, size_t *cap, size_t item);
/* Notes the first breach of the contract. Caller holds the lock. */
void fake_breach(struct fake_host *host, const char *fmt, ...) DUEBOX_PRINTF(2, 3);

void fake_task_drop(struct fake_entry *entry);
void fake_complete(void *ctx, uint64_t token, const struct duebox_outcome *outcome);
bool fake_take_result(void *ctx, const struct duebox_record *record, uint64_t cookie);
size_t fake_expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape, char *out,
                   size_t cap);

#endif
