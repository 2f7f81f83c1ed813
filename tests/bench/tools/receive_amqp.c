/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/time.h>

#include "bench_amqp.h"
#include "receive.h"

static int64_t due_of(const amqp_basic_properties_t *properties) {
  if (!(properties->_flags & AMQP_BASIC_HEADERS_FLAG))
    return 0;
  for (int i = 0; i < properties->headers.num_entries; i++) {
    const amqp_table_entry_t *entry = &properties->headers.entries[i];
    if (entry->key.len == 10 && memcmp(entry->key.bytes, "duebox-due", 10) == 0)
      return book_parse_due(entry->value.value.bytes.bytes, entry->value.value.bytes.len);
  }
  return 0;
}

void receive_amqp(struct receiver *receiver) {
  amqp_connection_state_t connection = bench_amqp_connect(receiver->where, "receive");
  amqp_basic_consume(connection, BENCH_AMQP_CHANNEL, amqp_cstring_bytes(receiver->what), amqp_empty_bytes, 0, 1, 0,
                     amqp_empty_table);
  bench_amqp_check("consume", amqp_get_rpc_reply(connection));
  receive_ready();
  while (receive_goes_on(receiver)) {
    struct timeval limit = {.tv_usec = RECEIVE_POLL_MS * 1000};
    amqp_envelope_t envelope;
    amqp_maybe_release_buffers(connection);
    amqp_rpc_reply_t reply = amqp_consume_message(connection, &envelope, &limit, 0);
    if (bench_amqp_timed_out(&reply))
      continue;
    bench_amqp_check("message", reply);
    receive_one(receiver, envelope.message.body.bytes, envelope.message.body.len, due_of(&envelope.message.properties));
    amqp_destroy_envelope(&envelope);
  }
  bench_amqp_check("close", amqp_connection_close(connection, AMQP_REPLY_SUCCESS));
  amqp_destroy_connection(connection);
}
