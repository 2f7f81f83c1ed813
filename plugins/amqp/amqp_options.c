/* SPDX-License-Identifier: MIT */
#include "amqp_options.h"

#include <stdio.h>
#include <string.h>

#include <duebox/link.h>

#include "amqp_target.h"

#define AT(field) offsetof(struct amqp_options, field)
#define AT_ROUTE(field) offsetof(struct amqp_route, field)
#define AT_SOURCE(field) offsetof(struct amqp_source_options, field)

enum { SHORTSTR_MAX = 255 }; /* AMQP 0-9-1, section 4.2.5.3 */

const struct duebox_option amqp_option_rows[] = {
    {.name = "url",
     .type = DUEBOX_OPT_STRING,
     .flags = DUEBOX_OPT_REQUIRED,
     .offset = AT(url),
     .help = "broker as amqp://user@host:port/vhost, or amqps:// for TLS; the vhost / is written %2f"},
    {.name = "password",
     .type = DUEBOX_OPT_SECRET,
     .offset = AT(password),
     .help = "password of the user in the url; takes the place of one written there"},
    {.name = "connect_timeout",
     .type = DUEBOX_OPT_DURATION,
     .def = "10s",
     .min = 100,
     .max = 300000,
     .offset = AT(connect_timeout_ms),
     .help = "limit for connecting and for logging in, each"},
    {.name = "confirm_timeout",
     .type = DUEBOX_OPT_DURATION,
     .def = "30s",
     .min = 100,
     .max = 3600000,
     .offset = AT(confirm_timeout_ms),
     .help = "how long a message may wait for the broker's confirm before it counts as possibly sent"},
    {.name = "heartbeat",
     .type = DUEBOX_OPT_DURATION,
     .def = "10s",
     .min = 1000,
     .max = 3600000,
     .offset = AT(heartbeat_ms),
     .help = "heartbeat asked for, in whole seconds; a silent broker is given up after two of them, and a silent "
             "daemon by the broker"},
    /* rabbitmq-c decodes tables within tables by recursion: 20,000 levels fit into 128 KiB and a thread's stack, the
       100,000 of a larger frame would end the process. */
    {.name = "frame_max",
     .type = DUEBOX_OPT_SIZE,
     .def = "128KiB",
     .min = 4096,
     .max = 128 << 10,
     .offset = AT(frame_max),
     .help = "largest frame asked for; the broker may lower it"},
    {.name = "ca_file",
     .type = DUEBOX_OPT_STRING,
     .def = "/etc/ssl/certs/ca-certificates.crt",
     .flags = DUEBOX_OPT_PATH,
     .offset = AT(ca_file),
     .help = "file in PEM format with the authorities that may have signed the broker's certificate"},
    {.name = "cert_file",
     .type = DUEBOX_OPT_STRING,
     .flags = DUEBOX_OPT_PATH,
     .offset = AT(cert_file),
     .help = "file in PEM format with our certificate, where the broker asks for one"},
    {.name = "key_file",
     .type = DUEBOX_OPT_STRING,
     .flags = DUEBOX_OPT_PATH,
     .offset = AT(key_file),
     .help = "file in PEM format with the key of cert_file, without a pass phrase"},
    {.name = "allow_unverified",
     .type = DUEBOX_OPT_BOOL,
     .def = "false",
     .offset = AT(allow_unverified),
     .help = "accept any certificate of the broker: whoever is between can read the password and every message"},
    {.name = "allow_plaintext",
     .type = DUEBOX_OPT_BOOL,
     .def = "false",
     .offset = AT(allow_plaintext),
     .help = "permit amqp:// to another host: the password and every message can be read on the way"},
    {0},
};

const struct duebox_option amqp_route_rows[] = {
    {.name = "exchange",
     .type = DUEBOX_OPT_STRING,
     .def = "",
     .offset = AT_ROUTE(exchange),
     .help = "exchange to publish to; empty is the default exchange, where the routing key is the queue's name"},
    {.name = "routing_key",
     .type = DUEBOX_OPT_STRING,
     .def = "{route}",
     .flags = DUEBOX_OPT_TEMPLATE | DUEBOX_OPT_TARGET,
     .offset = AT_ROUTE(routing_key),
     .help = "routing key of each message"},
    {.name = "content_type",
     .type = DUEBOX_OPT_STRING,
     .def = "application/json",
     .offset = AT_ROUTE(content_type),
     .help = "content type of the payload"},
    {.name = "app_id",
     .type = DUEBOX_OPT_STRING,
     .def = "duebox",
     .offset = AT_ROUTE(app_id),
     .help = "application id of each message; empty for none"},
    {.name = "persistent",
     .type = DUEBOX_OPT_BOOL,
     .def = "true",
     .offset = AT_ROUTE(persistent),
     .help = "the broker confirms a message to a durable queue only when it is on disk; false is faster and loses it "
             "when the broker restarts"},
    {0},
};

const struct duebox_option amqp_source_rows[] = {
    {.name = "queue",
     .type = DUEBOX_OPT_STRING,
     .flags = DUEBOX_OPT_REQUIRED,
     .offset = AT_SOURCE(queue),
     .help = "queue that the results are read from; it must exist"},
    {.name = "prefetch",
     .type = DUEBOX_OPT_INT,
     .def = "200",
     .min = 1,
     .max = 200,
     .offset = AT_SOURCE(prefetch),
     .help = "how many results may be on their way into the table at once"},
    {0},
};

static bool refuse(struct duebox_error *err, const char *text) {
  snprintf(err->text, sizeof err->text, "%s", text);
  return false;
}

bool amqp_options_check(const void *options, struct duebox_error *err) {
  const struct amqp_options *o = options;
  struct amqp_target *target = amqp_target_new(o, "check", err);
  if (!target)
    return false;
  /* The broker's other methods that the library has reveal the password too: allow_plaintext says so. */
  const struct duebox_link link = {.host = target->host,
                                   .host_len = strlen(target->host),
                                   .tls = target->tls,
                                   .verified = target->verify,
                                   .allow_plaintext = o->allow_plaintext,
                                   .allow_unverified = o->allow_unverified};
  enum duebox_link_verdict verdict = duebox_link_judge(&link);
  amqp_target_unref(target);
  if (verdict != DUEBOX_LINK_ALLOWED)
    return refuse(err, "url: amqp:// would send the password and every message in clear text to another host; write "
                       "amqps://, or set allow_plaintext: true");
  if (!o->cert_file != !o->key_file)
    return refuse(err, "cert_file and key_file belong together: set both or none");
  return true;
}

static bool check_shortstr(const char *name, const char *value, struct duebox_error *err) {
  if (!value || strlen(value) <= SHORTSTR_MAX)
    return true;
  snprintf(err->text, sizeof err->text, "%s: AMQP takes at most %d bytes, this has %zu", name, SHORTSTR_MAX,
           strlen(value));
  return false;
}

bool amqp_route_check(const void *options, const void *route, struct duebox_error *err) {
  (void)options;
  const struct amqp_route *r = route;
  return check_shortstr("exchange", r->exchange, err) && check_shortstr("content_type", r->content_type, err) &&
         check_shortstr("app_id", r->app_id, err);
}

size_t amqp_max_checkpoint(const void *options, const void *route) {
  enum { BESIDE = (16 + 2) * 1024 }; /* the application's headers; properties, our headers and the frame itself */
  (void)route;
  int64_t frame_max = ((const struct amqp_options *)options)->frame_max;
  return frame_max > BESIDE ? (size_t)(frame_max - BESIDE) : 0;
}
