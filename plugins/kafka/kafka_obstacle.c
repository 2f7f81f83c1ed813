/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_obstacle.c - see kafka_obstacle.h.
 */
#include "kafka_obstacle.h"

#include "kafka_source.h"

#define BATCH_PATIENCE_US 5000000 /* a batch may be unreadable for want of memory; */
#define BATCH_RUN_US 60000000     /* those that follow so soon have had that patience */
#define SILENCE_US 5000000        /* after it, a place from which nothing comes counts as free */
#define REREAD_US 1000000         /* a stream of transactions is read twice, a second later, with one seek for it */
#define REREAD_LASTS_US 60000000
#define LASTING_US 10000000 /* longer than getting past one takes */
#define RECENT_US 8000000   /* one that cannot be read is met so soon after the one before */
#define SETTLED_US 1000000  /* where a partition is fetched does not stand in the statistics at once */
#define ANSWER_MS 1000
#define ASK_AGAIN_US 5000000

static struct kafka_obstacle *obstacle_of(struct kafka_source *source, int32_t number) {
  return &source->partitions[number].obstacle;
}

static void seek(struct kafka_source *source, int32_t number, int64_t offset) {
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, source->results->topic, number)->offset = offset;
  rd_kafka_error_t *error = rd_kafka_seek_partitions(source->handle.rk, list, 0); /* does not wait */
  if (error)
    rd_kafka_error_destroy(error); /* the obstacle comes again, and so do we */
  rd_kafka_topic_partition_list_destroy(list);
}

/* Where the log ends, as far as may be read; -1 = unknown. A refused fetch leaves that unknown (rdkafka_fetcher.c), as
 * one behind a record that claims to be beyond the log, so that the brokers are asked; where they did not answer, not
 * again at once, for nothing is read meanwhile. */
static int64_t log_end(struct kafka_source *source, int32_t number) {
  int64_t low, high = -1;
  if (!rd_kafka_get_watermark_offsets(source->handle.rk, source->results->topic, number, &low, &high) && high >= 0)
    return high;
  if (kafka_now_us() < source->ask_us)
    return -1;
  if (!rd_kafka_query_watermark_offsets(source->handle.rk, source->results->topic, number, &low, &high, ANSWER_MS))
    return high;
  source->ask_us = kafka_now_us() + ASK_AGAIN_US;
  return -1;
}

/* Where reading began, for a partition that has given no believable record yet: where the group is, or the beginning.
 */
static int64_t log_begin(struct kafka_source *source, int32_t number) {
  int64_t low = 0, high = 0;
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_t *place = rd_kafka_topic_partition_list_add(list, source->results->topic, number);
  bool found = !rd_kafka_committed(source->handle.rk, list, ANSWER_MS) && !place->err;
  int64_t offset = found ? place->offset : -1;
  rd_kafka_topic_partition_list_destroy(list);
  if (rd_kafka_query_watermark_offsets(source->handle.rk, source->results->topic, number, &low, &high, ANSWER_MS))
    return offset < 0 ? 0 : offset;
  return offset < low || offset > high ? low : offset;
}

/* --- searching --- */

static void read_from(struct kafka_source *source, int32_t number) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  if (obstacle->search.obstacle < 0)
    obstacle->last = obstacle->search.at - 1;
  obstacle->asked_us = kafka_now_us();
  obstacle->from = obstacle->search.at;
  seek(source, number, obstacle->search.at);
}

static void begin_search(struct kafka_source *source, int32_t number, int64_t claimed, int64_t taken, int64_t high,
                         bool silent) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  obstacle->silent = silent;
  kafka_search_begin(&obstacle->search, claimed, taken, high, silent ? KAFKA_SEARCH_SINGLES : 0);
  obstacle->began_us = kafka_now_us();
  read_from(source, number);
}

/* Whether it is to be taken. */
static bool saw(struct kafka_source *source, int32_t number, int64_t first) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  int64_t from = obstacle->from;
  obstacle->from = -1;
  bool elsewhere = first >= 0 && first < from && first != obstacle->search.obstacle && first != obstacle->block;
  if (elsewhere) { /* reading was sent to the beginning meanwhile */
    seek(source, number, from);
    return false;
  }
  if (obstacle->search.obstacle < 0)
    return true;
  if (!kafka_search_saw(&obstacle->search, first)) {
    read_from(source, number);
    return false;
  }
  obstacle->last = obstacle->search.at - 1;
  return true;
}

/* --- what cannot be read --- */

bool kafka_obstacle_is_batch(rd_kafka_resp_err_t err) {
  return err == RD_KAFKA_RESP_ERR__BAD_COMPRESSION || err == RD_KAFKA_RESP_ERR__BAD_MSG;
}

/* A note for the quarantine in place of the records that nobody can read. False: the host is full, or memory is short.
 */
static bool note(struct kafka_source *source, int32_t number, int64_t offset) {
  struct duebox_record record = {.body = {"", 0}, .full_len = (size_t)source->max_record + 1, .truncated = true};
  return kafka_source_offer(source, number, offset, &record) == KAFKA_TAKEN;
}

/* It has been in the way since since_us. */
static void met(struct kafka_source *source, int32_t number, int64_t offset, int64_t since_us, bool silent,
                const char *reason) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  int64_t now = kafka_now_us(), high;
  if (obstacle->block != offset) {
    if (obstacle->block < 0 || now - obstacle->seen_us > BATCH_RUN_US)
      obstacle->since_us = since_us;
    obstacle->block = offset;
    obstacle->noted = false;
    source->host->log(source->host->ctx, DUEBOX_LOG_ERROR, "KAFKA-RECORD-UNREADABLE",
                      "%s[%d]@%lld cannot be read and is passed over if that lasts: %s", source->results->topic,
                      (int)number, (long long)offset, reason);
  }
  obstacle->seen_us = now;
  if (now - obstacle->since_us < BATCH_PATIENCE_US || (high = log_end(source, number)) < 0)
    return;
  obstacle->noted = obstacle->noted || note(source, number, offset);
  if (obstacle->noted)
    begin_search(source, number, offset, offset, high, silent);
}

/* What was read before the batch has all been taken: it comes through the same queue. */
void kafka_obstacle_batch(struct kafka_source *source, int32_t number, int64_t offset, const char *reason) {
  if (number >= 0 && (size_t)number < source->partition_count && source->partitions[number].assigned && offset >= 0 &&
      !source->full && !source->closed && !source->fatal && saw(source, number, offset))
    met(source, number, offset, kafka_now_us(), false, reason);
}

/* A search past what is never told. */
static void search_silently(struct kafka_source *source, int32_t number, bool proved) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  int64_t at = obstacle->search.at;
  bool moved = obstacle->offsets.position > at || !kafka_standing_is_behind(&obstacle->offsets);
  if (obstacle->offsets.position < at || kafka_now_us() - obstacle->asked_us < SETTLED_US)
    return;
  if (proved || moved)
    saw(source, number, proved ? obstacle->search.obstacle : KAFKA_SEARCH_NOTHING);
}

static void judge_standing(struct kafka_source *source, int32_t number, const struct kafka_fetched *fetched,
                           const struct kafka_sharers *sharers) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  bool proved = kafka_standing_is_proved(&obstacle->standing, fetched, sharers);
  int64_t asked_us = obstacle->asked_us;
  if (obstacle->search.obstacle >= 0 && obstacle->silent)
    search_silently(source, number, proved);
  else if (obstacle->search.obstacle < 0 && obstacle->stray < 0 && proved)
    met(source, number, obstacle->standing.position, obstacle->standing.since_us, true,
        "for the client it ends too early");
  /* Reading was made to begin elsewhere: what comes from now on comes from there. */
  if (obstacle->asked_us != asked_us && kafka_standing_is_behind(&obstacle->offsets))
    kafka_standing_begin(&obstacle->standing, obstacle->search.at, fetched, obstacle->asked_us);
}

static struct kafka_sharers sharers_of(const struct kafka_source *source, int32_t broker) {
  struct kafka_sharers sharers = {0};
  for (size_t i = 0; i < source->partition_count; i++) {
    const struct kafka_offsets *offsets = &source->partitions[i].obstacle.offsets;
    bool shares = source->partitions[i].assigned && offsets->broker == broker;
    sharers.all += shares;
    sharers.behind += shares && kafka_standing_is_behind(offsets);
  }
  return sharers;
}

static void take_offsets(struct kafka_source *source, const char *stats) {
  struct kafka_offsets found;
  while (kafka_stable_next(&stats, &found))
    if (found.partition >= 0 && (size_t)found.partition < source->partition_count)
      obstacle_of(source, found.partition)->offsets = found;
}

/* The next broker that serves partitions of ours, by number. */
static bool next_broker(const struct kafka_source *source, int32_t *broker) {
  bool found = false;
  int32_t last = *broker;
  for (size_t i = 0; i < source->partition_count; i++) {
    int32_t one = source->partitions[i].obstacle.offsets.broker;
    if (source->partitions[i].assigned && one > last && (!found || one < *broker)) {
      *broker = one;
      found = true;
    }
  }
  return found;
}

void kafka_obstacle_stats(struct kafka_source *source, const char *stats, bool excused) {
  int64_t now = kafka_now_us();
  take_offsets(source, stats);
  for (int32_t broker = INT32_MIN; next_broker(source, &broker);) {
    struct kafka_sharers sharers = sharers_of(source, broker);
    struct kafka_fetched fetched = {0};
    if (sharers.behind > 0) /* a long text, with many partitions */
      fetched = kafka_standing_fetched(stats, broker);
    for (size_t i = 0; i < source->partition_count; i++) {
      struct kafka_obstacle *obstacle = &source->partitions[i].obstacle;
      if (!source->partitions[i].assigned || obstacle->offsets.broker != broker)
        continue;
      kafka_standing_follow(&obstacle->standing, &obstacle->offsets, &fetched, excused, now);
      if (!excused)
        judge_standing(source, (int32_t)i, &fetched, &sharers);
    }
  }
}

/* --- records that are not where they say --- */

int64_t kafka_obstacle_place(struct kafka_source *source, int32_t number, int64_t claimed) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  bool next = kafka_search_believes(obstacle->last, claimed, -1);
  int64_t high = next ? -1 : log_end(source, number);
  if (next || high < 0 || kafka_search_believes(obstacle->last, claimed, high))
    return claimed; /* when the end is not known, reading again behind the gap judges it */
  if (obstacle->last < 0)
    obstacle->last = log_begin(source, number) - 1;
  return obstacle->last + 1;
}

/* Others of the same fetch may follow, and the client goes on behind the last of them: only if that is one that was not
 * believed, reading has to be put right. */
static void follow(struct kafka_obstacle *obstacle, int64_t claimed, int64_t place) {
  obstacle->last = place;
  if (claimed == place)
    obstacle->stray = -1;
  else if (obstacle->stray < 0)
    obstacle->stray = claimed;
}

void kafka_obstacle_took(struct kafka_source *source, int32_t number, int64_t claimed, int64_t place) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  kafka_reread_took(&obstacle->reread, obstacle->last, place, claimed);
  follow(obstacle, claimed, place);
}

bool kafka_obstacle_drops(struct kafka_source *source, int32_t number, int64_t claimed) {
  if (number < 0 || (size_t)number >= source->partition_count)
    return false;
  if (!saw(source, number, claimed))
    return true;
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  if (obstacle->reread.from >= 0)
    obstacle->reread_us = kafka_now_us();
  if (!kafka_reread_knows(&obstacle->reread, claimed))
    return false;
  follow(obstacle, claimed, kafka_obstacle_place(source, number, claimed));
  source->dirty = true; /* more may be stored when this was the last */
  return true;
}

static void put_right(struct kafka_source *source, int32_t number) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  int64_t high = log_end(source, number);
  if (high < 0)
    return;
  source->host->log(
      source->host->ctx, DUEBOX_LOG_WARN, "KAFKA-OFFSET-UNTRUE",
      "a record of %s[%d] claims offset %lld, where the log ends at %lld; it is taken, and reading goes on "
      "behind it",
      source->results->topic, (int)number, (long long)obstacle->stray, (long long)high);
  begin_search(source, number, obstacle->stray, obstacle->last, high, false);
  obstacle->stray = -1;
}

/* --- records that may have been passed over --- */

static void read_again(struct kafka_source *source, int32_t number) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  obstacle->from = kafka_reread_begin(&obstacle->reread);
  obstacle->last = obstacle->from - 1;
  obstacle->reread_us = obstacle->began_us = kafka_now_us();
  seek(source, number, obstacle->from);
}

static void look_into_gaps(struct kafka_source *source, int32_t number, int64_t now) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  int64_t quiet_us = now - obstacle->reread_us;
  bool stands = obstacle->standing.position >= 0;
  bool ends = (quiet_us > SILENCE_US && !stands) || now - obstacle->began_us > REREAD_LASTS_US;
  if (obstacle->reread.from >= 0 && ends) { /* some were compacted away meanwhile */
    kafka_reread_end(&obstacle->reread);
    source->dirty = true;
  }
  if (kafka_reread_is_due(&obstacle->reread) && (quiet_us > REREAD_US || kafka_reread_is_full(&obstacle->reread)))
    read_again(source, number);
}

static void go_on(struct kafka_source *source, int32_t number, int64_t now) {
  struct kafka_obstacle *obstacle = obstacle_of(source, number);
  if (source->full) /* nothing comes, for that reason */
    obstacle->reread_us = obstacle->asked_us = now;
  else if (obstacle->search.obstacle < 0 && obstacle->stray >= 0)
    put_right(source, number);
  else if (obstacle->search.obstacle < 0)
    look_into_gaps(source, number, now);
  else if (!obstacle->silent && now - obstacle->asked_us > SILENCE_US)
    saw(source, number, KAFKA_SEARCH_NOTHING);
}

void kafka_obstacle_go_on(struct kafka_source *source) {
  if (!source->handle.rk || source->closed || source->fatal)
    return;
  int64_t now = kafka_now_us();
  for (size_t i = 0; i < source->partition_count; i++)
    if (source->partitions[i].assigned)
      go_on(source, (int32_t)i, now);
}

int64_t kafka_obstacle_doubt(const struct kafka_obstacle *obstacle) { return kafka_reread_doubt(&obstacle->reread); }

void kafka_obstacle_forget(struct kafka_obstacle *obstacle) {
  kafka_reread_forget(&obstacle->reread);
  *obstacle = KAFKA_OBSTACLE_NONE;
}

rd_kafka_topic_partition_t kafka_obstacle_lasting(const struct kafka_source *source) {
  rd_kafka_topic_partition_t found = {.offset = -1};
  int64_t now = kafka_now_us();
  for (size_t i = 0; i < source->partition_count; i++) {
    const struct kafka_obstacle *obstacle = &source->partitions[i].obstacle;
    bool meets = obstacle->block >= 0 && obstacle->seen_us - obstacle->since_us > LASTING_US &&
                 now - obstacle->seen_us < RECENT_US,
         searches = obstacle->search.obstacle >= 0 && now - obstacle->began_us > LASTING_US,
         stands = obstacle->standing.position >= 0 && now - obstacle->standing.since_us > LASTING_US;
    if (meets || searches || stands)
      found = (rd_kafka_topic_partition_t){.partition = (int32_t)i,
                                           .offset = stands ? obstacle->standing.position : obstacle->last + 1};
  }
  return found;
}
