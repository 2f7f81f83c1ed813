/* SPDX-License-Identifier: MIT
 *
 * plugins/kafka/kafka_conf.c - see kafka_conf.h.
 *
 * Order: our defaults, the operator's `rdkafka` map over them, then what the contract demands. Defaults that differ
 * from librdkafka's say why.
 */
#include "kafka_conf.h"

#include <duebox/link.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka_group.h"

struct property {
  const char *key;
  const char *value;
};

static const struct property both_defaults[] = {
    {"socket.nagle.disable", "true"},                /* latency: a small request must not wait for an ACK */
    {"socket.keepalive.enable", "true"},             /* a dead peer behind a firewall is noticed */
    {"reconnect.backoff.max.ms", "2000"},            /* 10 s is a long outage after a short restart */
    {"topic.metadata.refresh.interval.ms", "10000"}, /* a topic created later is found within 10 s, not 5 min */
    {"statistics.interval.ms", "2000"}, /* the only news of a broker that is back without traffic, and of the group */
};

static const struct property producer_defaults[] = {
    /* The host bounds the bytes of each route; a limit on all would fill with those of a dead topic. */
    {"queue.buffering.max.kbytes", "2147483647"},
    {"linger.ms", "0"},                /* under load five requests in flight make the batches; alone, nothing waits */
    {"partitioner", "murmur2_random"}, /* a key goes where the Java clients put it */
    {"topic.metadata.propagation.max.ms", "2000"}, /* an unknown topic is reported soon; the host probes again */
};

static const struct property consumer_defaults[] = {
    {"queued.min.messages", "1000"}, /* results are small; the host's queue does the buffering */
    {"queued.max.messages.kbytes", "4096"},
    {"fetch.max.bytes", "4194304"},         /* one record is sent whatever its size (KIP-74) */
    {"fetch.message.max.bytes", "4194304"}, /* what is read again has room for two of the largest batches by default */
    {"fetch.error.backoff.ms", "100"},      /* getting past a batch that cannot be unpacked takes a few of them */
    /* After a crash nobody reads the dead member's partitions until its session is over, and results that have come
     * count as missing: brokers allow no shorter one by default. */
    {"session.timeout.ms", "6000"},
    {"heartbeat.interval.ms", "2000"},
};

static const struct property both_demands[] = {
    {"allow.auto.create.topics", "false"},
    {"log.queue", "true"},                          /* log lines come through poll(), on the driver thread */
    {"sasl.kerberos.min.time.before.relogin", "0"}, /* never run kinit */
};

static const struct property producer_demands[] = {
    {"enable.idempotence", "true"},
    {"acks", "all"},
};

static const struct property consumer_demands[] = {
    {"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"},
    {"auto.offset.reset", "earliest"},
    {"isolation.level", "read_committed"},
    {"partition.assignment.strategy", "range,roundrobin"},
};

static bool set(rd_kafka_conf_t *conf, const char *key, const char *value, struct duebox_error *err) {
  char text[256];
  if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
    return true;
  return kafka_fail(err, "librdkafka refuses %s: %s", key, text);
}

static bool set_number(rd_kafka_conf_t *conf, const char *key, int64_t value, struct duebox_error *err) {
  char text[24];
  snprintf(text, sizeof(text), "%lld", (long long)value);
  return set(conf, key, text, err);
}

static bool set_given(rd_kafka_conf_t *conf, const char *key, const char *value, struct duebox_error *err) {
  return !value || set(conf, key, value, err);
}

static bool set_all(rd_kafka_conf_t *conf, const struct property *rows, size_t count, struct duebox_error *err) {
  for (size_t i = 0; i < count; i++)
    if (!set(conf, rows[i].key, rows[i].value, err))
      return false;
  return true;
}

static bool set_brokers(rd_kafka_conf_t *conf, const struct duebox_list *brokers, struct duebox_error *err) {
  size_t size = 1;
  for (size_t i = 0; i < brokers->count; i++)
    size += strlen(brokers->items[i]) + 1;
  if (size == 1)
    return kafka_fail(err, "brokers is empty: give at least one host:port");
  char *joined = malloc(size);
  if (!joined)
    return kafka_fail(err, "out of memory");
  char *at = joined;
  for (size_t i = 0; i < brokers->count; i++)
    at += sprintf(at, "%s%s", i ? "," : "", brokers->items[i]);
  bool ok = set(conf, "bootstrap.servers", joined, err);
  free(joined);
  return ok;
}

/* Host of "host:port", "[v6]:port" or "PROTOCOL://host:port". */
static struct duebox_link link_to(const struct kafka_options *o, const char *broker) {
  const char *scheme = strstr(broker, "://"), *host = scheme ? scheme + 3 : broker, *colon = strrchr(host, ':');
  bool port = colon && (host[0] == '[' ? colon[-1] == ']' : strchr(host, ':') == colon);
  return (struct duebox_link){.host = host,
                              .host_len = port ? (size_t)(colon - host) : strlen(host),
                              .tls = o->tls,
                              .verified = true,
                              .reveals_password = o->username && o->sasl == KAFKA_SASL_PLAIN,
                              .allow_plaintext = o->allow_plaintext};
}

/* Where brokers' metadata says they are is judged like what the configuration says, for librdkafka goes there by
 * itself: without TLS nowhere but this machine. The address counts, a name could mean any. */
static int connect_local(int fd, const struct sockaddr *addr, int len, const char *id, void *opaque) {
  (void)id;
  if (!kafka_address_local(addr)) {
    if (opaque)
      atomic_store((atomic_bool *)opaque, true);
    return EPERM;
  }
  return connect(fd, addr, (socklen_t)len) == 0 || errno == EINPROGRESS ? 0 : errno;
}

bool kafka_address_local(const struct sockaddr *addr) {
  const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
  if (addr->sa_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr) >> 24 == 127;
  return addr->sa_family == AF_INET6 &&
         (IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127));
}

/* Who reads the list may take a blank for the end of a host, or for a comma. */
static bool check_blanks(const struct kafka_options *o, struct duebox_error *err) {
  for (size_t i = 0; i < o->brokers.count; i++)
    for (const char *p = o->brokers.items[i]; *p; p++)
      if ((unsigned char)*p <= ' ' || *p == 0x7f)
        return kafka_fail(err, "brokers: \"%s\" has a blank in it; put a comma between two brokers",
                          o->brokers.items[i]);
  return true;
}

static bool check_links(const struct kafka_options *o, struct duebox_error *err) {
  if (!check_blanks(o, err))
    return false;
  for (size_t i = 0; i < o->brokers.count; i++)
    for (const char *rest = o->brokers.items[i]; rest; rest = strchr(rest, ',') ? strchr(rest, ',') + 1 : NULL) {
      char broker[512];
      snprintf(broker, sizeof broker, "%.*s", (int)strcspn(rest, ","), rest);
      struct duebox_link link = link_to(o, broker);
      switch (duebox_link_judge(&link)) {
      case DUEBOX_LINK_ALLOWED:
      case DUEBOX_LINK_UNVERIFIED:
        break;
      case DUEBOX_LINK_PLAINTEXT:
        return kafka_fail(err,
                          "brokers: %s is another host and every message would cross the network readable; set "
                          "tls: true, or allow_plaintext: true",
                          broker);
      case DUEBOX_LINK_PASSWORD:
        return kafka_fail(err,
                          "sasl: plain sends the password itself, readable for anybody on the way and for "
                          "whatever answers at %s; set tls: true, or use sasl: scram-sha-512",
                          broker);
      }
    }
  return true;
}

static bool check_security(const struct kafka_options *o, struct duebox_error *err) {
  if (!o->tls && (o->ca_file || o->cert_file || o->key_file))
    return kafka_fail(err, "ca_file, cert_file and key_file need tls: true");
  if (!o->cert_file != !o->key_file)
    return kafka_fail(err, "cert_file and key_file belong together: give both or none");
  if (!o->username != !o->password)
    return kafka_fail(err, "username and password belong together: give both (password_file) or none");
  if (o->username && o->sasl == KAFKA_SASL_GSSAPI)
    return kafka_fail(err, "sasl: gssapi takes user and key from the Kerberos ticket; remove username and password");
  return check_links(o, err);
}

static bool set_security(rd_kafka_conf_t *conf, const struct kafka_options *o, struct duebox_error *err) {
  static const char *const mechanisms[] = {"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "GSSAPI"};
  static const char *const protocols[2][2] = {{"plaintext", "ssl"}, {"sasl_plaintext", "sasl_ssl"}};
  bool sasl = o->username || o->sasl == KAFKA_SASL_GSSAPI;
  if (!check_security(o, err) || (sasl && !set(conf, "sasl.mechanism", mechanisms[o->sasl], err)))
    return false;
  if (o->username && (!set(conf, "sasl.username", o->username, err) || !set(conf, "sasl.password", o->password, err)))
    return false;
  return set(conf, "security.protocol", protocols[sasl][o->tls], err) &&
         set(conf, "enable.ssl.certificate.verification", "true", err) &&
         set(conf, "ssl.endpoint.identification.algorithm", "https", err) &&
         set_given(conf, "ssl.ca.location", o->ca_file, err) &&
         set_given(conf, "ssl.certificate.location", o->cert_file, err) &&
         set_given(conf, "ssl.key.location", o->key_file, err) &&
         set_given(conf, "ssl.key.password", o->key_password, err);
}

static bool set_passed(rd_kafka_conf_t *conf, const struct duebox_map *map, struct duebox_error *err) {
  for (size_t i = 0; i < map->count; i++) {
    const char *reason = kafka_refusal(map->items[i].key, map->items[i].value);
    if (reason)
      return kafka_fail(err, "rdkafka property %s is refused: %s", map->items[i].key, reason);
    if (!set(conf, map->items[i].key, map->items[i].value, err))
      return false;
  }
  return true;
}

static bool set_common(rd_kafka_conf_t *conf, const struct kafka_options *o, const struct kafka_limits *limits,
                       struct duebox_error *err) {
  char client_id[KAFKA_NAME_SIZE];
  if (!o->tls && !o->allow_plaintext)
    rd_kafka_conf_set_connect_cb(conf, connect_local);
  return set_all(conf, both_defaults, ARRAY_LEN(both_defaults), err) && set_brokers(conf, &o->brokers, err) &&
         set(conf, "client.id", kafka_client_id(o, limits->outbox, limits->name, client_id), err) &&
         set_security(conf, o, err);
}

/* message.max.bytes counts key, headers and framing too, a checkpoint of 1 MiB among the headers, and the broker has
 * the last word: room for all of them. */
static int64_t message_max_bytes(int64_t max_payload) {
  int64_t want = max_payload + max_payload / 16 + (2 << 20);
  return want > 1000000000 ? 1000000000 : want;
}

rd_kafka_conf_t *kafka_conf_producer(const struct kafka_options *options, const struct kafka_limits *limits,
                                     struct duebox_error *err) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_STATS);
  if (set_common(conf, options, limits, err) && set_all(conf, producer_defaults, ARRAY_LEN(producer_defaults), err) &&
      set_number(conf, "message.max.bytes", message_max_bytes(limits->max_payload), err) &&
      set_number(conf, "queue.buffering.max.messages", limits->max_inflight ? limits->max_inflight : 1, err) &&
      set_passed(conf, &options->rdkafka, err) && set_all(conf, both_demands, ARRAY_LEN(both_demands), err) &&
      set_all(conf, producer_demands, ARRAY_LEN(producer_demands), err) &&
      set_number(conf, "message.timeout.ms", options->delivery_timeout_ms, err))
    return conf;
  rd_kafka_conf_destroy(conf);
  return NULL;
}

rd_kafka_conf_t *kafka_conf_consumer(const struct kafka_options *options, const char *group,
                                     const struct kafka_limits *limits, struct duebox_error *err) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_FETCH | RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT |
                                     RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_STATS);
  if (set_common(conf, options, limits, err) && set_all(conf, consumer_defaults, ARRAY_LEN(consumer_defaults), err) &&
      set_passed(conf, &options->rdkafka, err) && set_all(conf, both_demands, ARRAY_LEN(both_demands), err) &&
      set_all(conf, consumer_demands, ARRAY_LEN(consumer_demands), err) && set(conf, "group.id", group, err))
    return conf;
  rd_kafka_conf_destroy(conf);
  return NULL;
}

/* Whether librdkafka starts with all properties: which of them exclude others is known only then. Without brokers
 * nothing connects, and without TLS no file is read, which the machine may not have. Takes the configuration; NULL is
 * false. */
static bool goes_together(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct duebox_error *err) {
  char text[512];
  if (!conf)
    return false;
  rd_kafka_t *rk =
      rd_kafka_conf_set(conf, "bootstrap.servers", NULL, text, sizeof(text)) == RD_KAFKA_CONF_OK &&
              rd_kafka_conf_set(conf, "security.protocol", "plaintext", text, sizeof(text)) == RD_KAFKA_CONF_OK
          ? rd_kafka_new(type, conf, text, sizeof(text))
          : NULL;
  if (rk)
    rd_kafka_destroy(rk);
  else
    rd_kafka_conf_destroy(conf); /* rd_kafka_new() takes it only when it succeeds */
  return rk || kafka_fail(err, "librdkafka would not start: %s; see rdkafka and delivery_timeout", text);
}

bool kafka_check(const void *options, struct duebox_error *err) {
  const struct kafka_limits limits = {.name = "check", .max_payload = 1 << 20, .max_inflight = 1000};
  return goes_together(RD_KAFKA_PRODUCER, kafka_conf_producer(options, &limits, err), err) &&
         goes_together(RD_KAFKA_CONSUMER, kafka_conf_consumer(options, "check", &limits, err), err);
}
