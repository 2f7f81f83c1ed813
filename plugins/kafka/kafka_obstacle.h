/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_obstacle.h - gets the source past what librdkafka does not get past by itself.
 *
 * Whoever may write to a result topic can write a batch that librdkafka does not unpack, which it reads again and
 * again, a record that ends too early for it, which it reads again as well and does not tell (kafka_standing.h), and a
 * record with an offset of its own choice, behind which it goes on: beyond the log it finds nothing, and begins at the
 * beginning. Reading is made to go on behind all of them (kafka_search.h). A record with such an offset is taken like
 * any other, at the first place where it may be; in place of what cannot be read the quarantine gets a note.
 * One within the log hides what is between its own place and the other: what comes behind a gap is read twice
 * (kafka_reread.h).
 *
 * rd_kafka_seek_partitions() raises the partition's version at once: what was fetched before does not come out of the
 * queue any more (rdkafka_queue.c, rd_kafka_op_filter). Only a fetch beyond the log whose refusal is on its way then
 * sends reading to the beginning all the same (rd_kafka_offset_reset() knows no version): what comes from before the
 * place is not taken, and reading begins there once more. Driver thread.
 */
#ifndef PLUGINS_KAFKA_OBSTACLE_H
#define PLUGINS_KAFKA_OBSTACLE_H

#include <librdkafka/rdkafka.h>

#include "kafka_reread.h"
#include "kafka_search.h"
#include "kafka_standing.h"

struct kafka_source;

struct kafka_obstacle {
  int64_t last;  /* the record taken last, or the end of the obstacle passed last; -1 = none yet */
  int64_t stray; /* the offset that the first of the records claimed which came since, and were not believed; or -1 */
  int64_t block; /* the batch or record met last that cannot be read; -1 = none */
  bool noted;    /* of which the quarantine has a note */
  int64_t since_us; /* when the first was met of batches that followed soon upon each other, */
  int64_t seen_us;  /* and when the last */
  struct kafka_search search;
  bool silent;      /* what is searched past is never told: nothing comes */
  int64_t began_us; /* when the search began, or reading again did */
  int64_t asked_us; /* when reading was made to begin at search.at */
  struct kafka_reread reread;
  int64_t reread_us; /* when that was begun, or brought something, last */
  int64_t from;      /* where reading was made to begin, until something comes from there; -1 = nothing is awaited */
  struct kafka_offsets offsets; /* as of the last statistics event */
  struct kafka_standing standing;
};

#define KAFKA_OBSTACLE_NONE                                                                                            \
  ((struct kafka_obstacle){.last = -1,                                                                                 \
                           .stray = -1,                                                                                \
                           .block = -1,                                                                                \
                           .search = KAFKA_SEARCH_NONE,                                                                \
                           .reread = KAFKA_REREAD_NONE,                                                                \
                           .from = -1,                                                                                 \
                           .standing = KAFKA_STANDING_NONE})

void kafka_obstacle_forget(struct kafka_obstacle *obstacle);
/* Whether an error event tells of a batch that the client reads again and again. */
bool kafka_obstacle_is_batch(rd_kafka_resp_err_t err);
void kafka_obstacle_batch(struct kafka_source *source, int32_t number, int64_t offset, const char *reason);

/* Whether a record is not to be taken: it answers where reading begins and comes again, or was taken before. */
bool kafka_obstacle_drops(struct kafka_source *source, int32_t number, int64_t claimed);
/* The offset to believe of a record. */
int64_t kafka_obstacle_place(struct kafka_source *source, int32_t number, int64_t claimed);
/* The host has taken the record. */
void kafka_obstacle_took(struct kafka_source *source, int32_t number, int64_t claimed, int64_t place);
/* The client's queue has been served: what is to be read again is read from the right place. */
void kafka_obstacle_go_on(struct kafka_source *source);
/* A statistics event. excused: nothing is fetched now, for a reason that is known. */
void kafka_obstacle_stats(struct kafka_source *source, const char *stats, bool excused);
/* No offset above this may be stored yet; -1 = any may. */
int64_t kafka_obstacle_doubt(const struct kafka_obstacle *obstacle);
/* A partition that has not got past obstacles for long; offset -1 = none. */
rd_kafka_topic_partition_t kafka_obstacle_lasting(const struct kafka_source *source);

#endif
