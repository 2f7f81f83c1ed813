/* SPDX-License-Identifier: MIT
 *
 * tests/abi/layout.c - the binary layout of ABI 1.0 on x86-64, frozen. It only has to compile.
 *
 * If this breaks, plugins that people have built break too. Appending a field means a new DUEBOX_ABI_MINOR, and new
 * lines here for the new version beside the old ones; nothing that stands here ever changes within a major.
 */
#include <duebox/plugin.h>

#define OFFSET(type, field, offset)                                                                                    \
  _Static_assert(offsetof(struct type, field) == (offset), #type "." #field " has moved: this breaks built plugins")
#define VALUE(name, value) _Static_assert((name) == (value), #name " has changed: this breaks built plugins")

/* The frozen prefix, in every version. */
OFFSET(duebox_plugin, magic, 0);
OFFSET(duebox_plugin, abi_major, 4);
OFFSET(duebox_plugin, abi_minor, 8);
OFFSET(duebox_plugin, size, 12);
VALUE(DUEBOX_PLUGIN_MAGIC, 0x44554542u);

#if defined(__x86_64__) && defined(__LP64__)
VALUE(DUEBOX_ABI_MAJOR, 1);
OFFSET(duebox_plugin, capabilities, 16);
OFFSET(duebox_plugin, name, 24);
OFFSET(duebox_plugin, version, 32);
OFFSET(duebox_plugin, summary, 40);
OFFSET(duebox_plugin, vendor, 48);
OFFSET(duebox_plugin, options, 56);
OFFSET(duebox_plugin, options_size, 64);
OFFSET(duebox_plugin, route_options, 72);
OFFSET(duebox_plugin, route_size, 80);
OFFSET(duebox_plugin, source_options, 88);
OFFSET(duebox_plugin, source_size, 96);
OFFSET(duebox_plugin, instance_size, 104);
OFFSET(duebox_plugin, check, 112);
OFFSET(duebox_plugin, check_route, 120);
OFFSET(duebox_plugin, create, 128);
OFFSET(duebox_plugin, start, 136);
OFFSET(duebox_plugin, poll, 144);
OFFSET(duebox_plugin, wakeup, 152);
OFFSET(duebox_plugin, close, 160);
OFFSET(duebox_plugin, stop, 168);
OFFSET(duebox_plugin, destroy, 176);
OFFSET(duebox_plugin, sink, 184);
OFFSET(duebox_plugin, source, 192);
#if DUEBOX_ABI_MINOR <= 1
VALUE(sizeof(struct duebox_plugin), 200);
#endif
OFFSET(duebox_plugin, check_targets, 200);
OFFSET(duebox_plugin, max_checkpoint, 208);
#if DUEBOX_ABI_MINOR <= 10
VALUE(sizeof(struct duebox_plugin), 216);
#endif

OFFSET(duebox_check, struct_size, 0);
OFFSET(duebox_check, route, 8);
OFFSET(duebox_check, source, 16);
OFFSET(duebox_check, name, 24);
OFFSET(duebox_check, expand, 32);
OFFSET(duebox_check, verdict, 40);
OFFSET(duebox_check, text, 44);
OFFSET(duebox_check, cure, 556);
OFFSET(duebox_check, outbox, 816);
OFFSET(duebox_check, max_payload, 824);

OFFSET(duebox_option, name, 0);
OFFSET(duebox_option, type, 8);
OFFSET(duebox_option, def, 16);
OFFSET(duebox_option, min, 24);
OFFSET(duebox_option, max, 32);
OFFSET(duebox_option, flags, 40);
OFFSET(duebox_option, offset, 48);
OFFSET(duebox_option, choices, 56);
OFFSET(duebox_option, help, 64);
VALUE(sizeof(struct duebox_option), 72); /* rows form arrays: it can never grow within a major */

OFFSET(duebox_list, items, 0);
OFFSET(duebox_list, count, 8);
OFFSET(duebox_durations, ms, 0);
OFFSET(duebox_durations, count, 8);
OFFSET(duebox_map, items, 0);
OFFSET(duebox_map, count, 8);
VALUE(sizeof(struct duebox_pair), 16);

OFFSET(duebox_bytes, data, 0);
OFFSET(duebox_bytes, len, 8);
OFFSET(duebox_header, name, 0);
OFFSET(duebox_header, value, 8);
VALUE(sizeof(struct duebox_header), 24);

OFFSET(duebox_task, struct_size, 0);
OFFSET(duebox_task, token, 8);
OFFSET(duebox_task, message_id, 16);
OFFSET(duebox_task, route, 24);
OFFSET(duebox_task, attempt, 32);
OFFSET(duebox_task, timeout_ms, 36);
OFFSET(duebox_task, due_us, 40);
OFFSET(duebox_task, priority, 48);
OFFSET(duebox_task, key, 56);
OFFSET(duebox_task, payload, 72);
OFFSET(duebox_task, checkpoint, 88);
OFFSET(duebox_task, headers, 104);
OFFSET(duebox_task, header_count, 112);
OFFSET(duebox_task, reply_to, 120);
OFFSET(duebox_task, route_data, 128);
OFFSET(duebox_task, revision, 136);
#if DUEBOX_ABI_MINOR <= 8
VALUE(sizeof(struct duebox_task), 144);
#endif
OFFSET(duebox_task, result_awaited, 144); /* not in what was padding at 140 */

OFFSET(duebox_outcome, struct_size, 0);
OFFSET(duebox_outcome, cls, 8);
OFFSET(duebox_outcome, scope, 12);
OFFSET(duebox_outcome, answer, 16);
OFFSET(duebox_outcome, retry_after_ms, 24);
OFFSET(duebox_outcome, error_class, 32);
OFFSET(duebox_outcome, message, 40);
OFFSET(duebox_outcome, record, 48);
OFFSET(duebox_outcome, record_len, 56);
OFFSET(duebox_outcome, blameless, 64);
#if DUEBOX_ABI_MINOR <= 9
VALUE(sizeof(struct duebox_outcome), 72);
#endif
OFFSET(duebox_outcome, recalled, 72); /* not in what was padding at 65 */

OFFSET(duebox_record, struct_size, 0);
OFFSET(duebox_record, body, 8);
OFFSET(duebox_record, full_len, 24);
OFFSET(duebox_record, truncated, 32);
OFFSET(duebox_record, origin, 40);
OFFSET(duebox_record, correlation_id, 48);

OFFSET(duebox_host, struct_size, 0);
OFFSET(duebox_host, ctx, 8);
OFFSET(duebox_host, complete, 16);
OFFSET(duebox_host, result, 24);
OFFSET(duebox_host, log, 32);
OFFSET(duebox_host, expand, 40);
OFFSET(duebox_host, health, 48);
OFFSET(duebox_host, unread, 56);

OFFSET(duebox_sink_ops, struct_size, 0);
OFFSET(duebox_sink_ops, submit, 8);
OFFSET(duebox_sink_ops, recall, 16);
OFFSET(duebox_source_ops, struct_size, 0);
OFFSET(duebox_source_ops, ack, 8);
OFFSET(duebox_source_ops, resume, 16);
OFFSET(duebox_source_ops, yield, 24);

OFFSET(duebox_instance_config, struct_size, 0);
OFFSET(duebox_instance_config, role, 8);
OFFSET(duebox_instance_config, name, 16);
OFFSET(duebox_instance_config, options, 24);
OFFSET(duebox_instance_config, source, 32);
OFFSET(duebox_instance_config, max_payload, 40);
OFFSET(duebox_instance_config, max_record, 48);
OFFSET(duebox_instance_config, max_inflight, 56);
OFFSET(duebox_instance_config, outbox, 64);
#endif

/* Numbers that cross the boundary. */
VALUE(DUEBOX_CHECK_UNSURE, 0);
VALUE(DUEBOX_CHECK_OK, 1);
VALUE(DUEBOX_CHECK_WRONG, 2);
VALUE(DUEBOX_DELIVERED, 1);
VALUE(DUEBOX_REJECTED, 2);
VALUE(DUEBOX_RETRY, 3);
VALUE(DUEBOX_UNAVAILABLE, 4);
VALUE(DUEBOX_UNKNOWN, 5);
VALUE(DUEBOX_GONE, 6);
VALUE(DUEBOX_OPT_STRING, 1);
VALUE(DUEBOX_OPT_MAP, 12);
VALUE(DUEBOX_CAP_SINK, 1);
VALUE(DUEBOX_CAP_SOURCE, 2);
VALUE(DUEBOX_CAP_LONG_CALLS, 4);
VALUE(DUEBOX_CAP_ANSWERS, 8);
VALUE(DUEBOX_CAP_SHARED_LINE, 16);
VALUE(DUEBOX_ROLE_SINK, 1);
VALUE(DUEBOX_ROLE_SOURCE, 2);
