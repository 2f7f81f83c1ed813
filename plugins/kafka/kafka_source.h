/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_source.h - results in: a consumer group member whose offsets follow the table's commits.
 *
 * Driver thread. The offset of a record is stored only when that record and all before it in its partition have been
 * acknowledged by the host. A crash in between makes records come again; the host knows them by their message id.
 */
#ifndef PLUGINS_KAFKA_SOURCE_H
#define PLUGINS_KAFKA_SOURCE_H

#include "kafka_conf.h"
#include "kafka_handle.h"
#include "kafka_health.h"
#include "kafka_obstacle.h"
#include "kafka_reading.h"
#include "kafka_stable.h"
#include "kafka_window.h"

struct kafka_partition {
  struct kafka_window window;
  struct kafka_obstacle obstacle;
  struct kafka_stable stable;
  int64_t committed; /* offset the group holds as far as we know; -1 = unknown */
  bool assigned;
};

struct kafka_source {
  const struct duebox_host *host;
  const struct kafka_results *results;
  struct kafka_group group;
  const struct kafka_wake *wake;
  rd_kafka_conf_t *conf;
  struct kafka_handle handle;
  int64_t opened_us;
  bool fatal;                         /* the client is finished and will be replaced */
  struct kafka_partition *partitions; /* by partition number */
  size_t partition_count;
  const rd_kafka_message_t *held; /* the record the host had no room for; belongs to held_event */
  rd_kafka_event_t *held_event;
  int64_t max_record;
  bool full;         /* the host has no room: first nothing is read, later partitions are paused */
  bool paused;       /* since that lasts */
  int64_t full_us;   /* since when it is full */
  bool closed;       /* no more reading, */
  bool yielded;      /* until the host resumes */
  int64_t ask_us;    /* the brokers are not asked before this time where a log ends */
  bool dirty;        /* something was acknowledged since the last commit */
  bool commit_open;  /* a commit is on its way */
  int64_t commit_us; /* not before this time */
  struct kafka_health health;
  struct kafka_reading reading;
};

enum kafka_offered { KAFKA_TAKEN, KAFKA_REFUSED, KAFKA_NO_MEMORY };

/* Hands a record to the host, which has come from there; its origin is written here. */
MUSTCHECK enum kafka_offered kafka_source_offer(struct kafka_source *source, int32_t number, int64_t offset,
                                                struct duebox_record *record);

MUSTCHECK bool kafka_source_create(struct kafka_source *source, const struct duebox_instance_config *config,
                                   const struct duebox_host *host, const struct kafka_wake *wake,
                                   struct duebox_error *err);
void kafka_source_start(struct kafka_source *source);
void kafka_source_poll(struct kafka_source *source, int timeout_ms);
void kafka_source_ack(struct kafka_source *source, uint64_t cookie, bool committed);
/* Leaves the group, and reads nothing until resume. Up to a second. */
void kafka_source_yield(struct kafka_source *source);
void kafka_source_resume(struct kafka_source *source);
void kafka_source_close(struct kafka_source *source);
void kafka_source_stop(struct kafka_source *source, int deadline_ms);
void kafka_source_destroy(struct kafka_source *source);

#endif
