/* SPDX-License-Identifier: MIT
 *
 * tests/sim/store_double_ops.h - the calls of the store double, by file. Their contract is core/store.h.
 */
#ifndef TESTS_SIM_STORE_DOUBLE_OPS_H
#define TESTS_SIM_STORE_DOUBLE_OPS_H

#include "store_double_session.h"

/* store_double_shards.c */
enum store_status double_now(struct store_session *ss, int64_t *now_us, struct err *err);
enum store_status double_beat(struct store_session *ss, const struct instance_row *me, int64_t ttl_ms, uint32_t *living,
                              uint32_t *route_sets, struct err *err);
enum store_status double_lease_name(struct store_session *ss, const struct instance_row *me, const char *name,
                                    int64_t ttl_ms, struct name_lease *out, struct err *err);
enum store_status double_leave(struct store_session *ss, const struct instance_row *me, struct err *err);
enum store_status double_namesake(struct store_session *ss, const char *instance, struct store_namesake *out,
                                  struct err *err);
enum store_status double_shards(struct store_session *ss, struct shard_row rows[STORE_SHARDS_MAX], size_t *count,
                                uint64_t *gone, struct err *err);
enum store_status double_remake_shards(struct store_session *ss, uint64_t gone, int64_t lease_ms, struct err *err);
enum store_status double_acquire(struct store_session *ss, const char *instance, const struct shard_row *seen,
                                 int64_t lease_ms, uint64_t *epoch, struct err *err);
enum store_status double_end_silent(struct store_session *ss, const char *instance, struct store_silent *out,
                                    struct err *err);
enum store_status double_renew(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                               size_t count, int64_t lease_ms, enum lease_fate *fates, int64_t *now_us,
                               struct err *err);
enum store_status double_give_back(struct store_session *ss, const char *instance, const struct shard_lease *lease,
                                   bool unclean, struct err *err);

/* store_double_read.c */
enum store_status double_look(struct store_session *ss, const struct store_look *what,
                              const struct store_group **groups, size_t *count, int64_t *now_us, struct err *err);
enum store_status double_next_due(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                                  int64_t *next_us, int64_t *now_us, struct err *err);
enum store_status double_read(struct store_session *ss, const struct store_range *ranges, size_t range_count,
                              int64_t ahead_us, struct store_limit limit, struct task_batch **batch, int64_t *next_us,
                              int64_t *now_us, struct err *err);
enum store_status double_find(struct store_session *ss, const struct store_range *ranges,
                              const struct store_cursor *until, size_t range_count, struct found_id *found,
                              size_t *count, struct err *err);
enum store_status double_read_ids(struct store_session *ss, enum task_state state, uint64_t shards, const char *host,
                                  const uint64_t *ids, size_t count, int64_t ahead_us, struct store_limit limit,
                                  struct task_batch **batch, struct err *err);
enum store_status double_read_misfits(struct store_session *ss, const struct store_group *group, uint32_t limit,
                                      struct task_batch **batch, struct err *err);
enum store_status double_find_routes(struct store_session *ss, uint8_t shard, const struct store_routes *which,
                                     uint64_t *ids, size_t *count, struct err *err);
enum store_status double_expired(struct store_session *ss, enum task_state state, uint8_t shard, uint64_t *ids,
                                 size_t *count, struct err *err);
enum store_status double_heads(struct store_session *ss, struct store_heads_part *part, store_head_fn *each, void *ctx,
                               struct err *err);

/* store_double_claim.c */
enum store_status double_claim(struct store_session *ss, const struct store_claim *claim, struct task_batch **batch,
                               uint64_t *lost, struct err *err);
enum store_status double_own_claims(struct store_session *ss, const char *instance, const struct shard_lease *leases,
                                    size_t lease_count, uint64_t after, uint32_t limit, struct task_batch **batch,
                                    struct err *err);
enum store_status double_lost_claims(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                     uint32_t limit, struct task_batch **batch, struct err *err);
enum store_status double_lost_bound_claims(struct store_session *ss, const char *host, int64_t ttl_ms, uint32_t limit,
                                           struct task_batch **batch, struct err *err);
enum store_status double_claims_elsewhere(struct store_session *ss, const char *instance, const char *host,
                                          const char *route, store_head_fn *each, void *ctx, struct err *err);

/* store_double_settle.c */
enum store_status double_settle(struct store_session *ss, const struct shard_lease *leases, size_t lease_count,
                                struct decision *decisions, size_t count, bool *lost, struct err *err);

/* store_double_results.c */
enum store_status double_settle_results(struct store_session *ss, struct store_result *results, size_t count,
                                        result_decide_fn *decide, void *ctx, struct err *err);

/* store_double_move.c */
enum store_status double_hold(struct store_session *ss, const struct shard_lease *lease,
                              const struct store_routes *which, uint32_t *moved, struct err *err);
enum store_status double_unhold(struct store_session *ss, const struct shard_lease *lease, const char *route,
                                uint32_t limit, uint32_t *moved, bool *all, struct err *err);
enum store_status double_unblock(struct store_session *ss, const struct shard_lease *lease, const char *host,
                                 const struct store_unblock *what, struct store_walk *walk, uint32_t *moved, bool *all,
                                 struct err *err);
enum store_status double_intervene(struct store_session *ss, const struct shard_lease *lease, enum intervention verb,
                                   const uint64_t *ids, size_t count, int64_t due_us, const char *actor,
                                   const char *filter, const char *reason, int64_t keep_us, enum intervened *became,
                                   struct err *err);

/* store_double_house.c */
enum store_status double_locate(struct store_session *ss, const char *const *names, size_t count,
                                struct task_place *places, struct err *err);
enum store_status double_route_settings(struct store_session *ss, const struct route_setting **settings, size_t *count,
                                        struct err *err);
enum store_status double_set_route(struct store_session *ss, const struct route_setting *setting, const char *actor,
                                   struct err *err);
enum store_status double_housekeep(struct store_session *ss, int64_t longest_keep_ms, int64_t attempts_keep_ms,
                                   struct err *err);
enum store_status double_stranded(struct store_session *ss, uint64_t *after, uint64_t *ids, size_t *count,
                                  struct err *err);
enum store_status double_row_ids(struct store_session *ss, int64_t waited_us, bool *reset, uint64_t *far,
                                 struct err *err);

/* store_double_watch.c */
enum store_status double_watch(void *store, const char *host, int64_t max_payload, struct store_watch **watch,
                               struct err *err);
enum store_status double_watch_next(struct store_watch *watch, const struct store_hint **hints, size_t *count,
                                    struct err *err);
void double_watch_end(struct store_watch *watch);
void double_watch_close(struct store_watch **watch);

#endif
