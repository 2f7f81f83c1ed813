/* SPDX-License-Identifier: MIT */
#include "amqp_target.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amqp_vendor.h"

static bool refuse(struct duebox_error *err, const char *text) {
  snprintf(err->text, sizeof err->text, "%s", text);
  return false;
}

/* strdup() that keeps an absent value absent and notes a failure. */
static char *copy(const char *text, bool *failed) {
  char *made = text ? strdup(text) : NULL;
  *failed |= text && !made;
  return made;
}

/* The library fills in "guest" for a user or password that the url does not give: that is told by the pointer. */
static bool given(const char *value, const char *text, size_t len) { return value >= text && value <= text + len; }

static bool fill(struct amqp_target *target, const struct amqp_connection_info *info,
                 const struct amqp_options *options, const char *password, const char *name) {
  bool failed = false;
  target->host = copy(info->host, &failed);
  target->port = info->port;
  target->vhost =
      copy(*info->vhost ? info->vhost : "/", &failed); /* by the letter "host/" is the vhost without a name */
  target->user = copy(info->user, &failed);
  target->password = copy(password, &failed);
  target->connection_name = copy(name, &failed);
  target->tls = info->ssl;
  target->verify = !options->allow_unverified;
  target->ca_file = copy(options->ca_file, &failed);
  target->cert_file = copy(options->cert_file, &failed);
  target->key_file = copy(options->key_file, &failed);
  target->heartbeat_s = (int)((options->heartbeat_ms + 999) / 1000);
  target->frame_max = (int)options->frame_max;
  target->connect_timeout_ms = options->connect_timeout_ms;
  target->confirm_timeout_ms = options->confirm_timeout_ms;
  return !failed;
}

/* Decodes %80 to %ff, which the library (0.11) takes for an error: of UTF-8 each character beyond ASCII is written so.
 * It takes the bytes themselves. False: there is a %00, behind which the library would see nothing. */
static bool decode_beyond_ascii(char *text) {
  char *to = text;
  for (const char *p = text; *p; p++) {
    bool escape = p[0] == '%' && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2]);
    unsigned long byte = escape ? strtoul((char[]){p[1], p[2], '\0'}, NULL, 16) : 1;
    if (byte == 0)
      return false;
    *to++ = byte >= 0x80 ? (char)byte : *p;
    p += byte >= 0x80 ? 2 : 0;
  }
  *to = '\0';
  return true;
}

/* Takes apart `text`, which is changed by it. */
static bool parse(struct amqp_target *target, char *text, const struct amqp_options *options, const char *name,
                  struct duebox_error *err) {
  struct amqp_connection_info info;
  if (strchr(text, '?'))
    return refuse(err, "url: parameters behind a ? are not known here; use the options of the instance");
  if (!decode_beyond_ascii(text))
    return refuse(err, "url: %00 cannot be part of a name or a password; remove it");
  size_t len = strlen(text);
  if (amqp_parse_url(text, &info) != AMQP_STATUS_OK)
    return refuse(err, "url: write amqp://user@host:port/vhost or amqps://user@host:port/vhost, with special "
                       "characters percent-encoded (the vhost / is %2f)");
  if (info.port < 1 || info.port > 65535)
    return refuse(err, "url: a port is between 1 and 65535");
  const char *password = options->password;
  if (!password && given(info.user, text, len) && !given(info.password, text, len))
    return refuse(err, "password: the url names a user but no password; set password_file (or password)");
  if (!fill(target, &info, options, password ? password : info.password, name))
    return refuse(err, "url: not enough memory to keep it");
  return true;
}

struct amqp_target *amqp_target_new(const struct amqp_options *options, const char *name, struct duebox_error *err) {
  struct amqp_target *target = calloc(1, sizeof *target);
  char *text = strdup(options->url);
  if (!target || !text) {
    refuse(err, "url: not enough memory to keep it");
    free(text);
    free(target);
    return NULL;
  }
  atomic_init(&target->refs, 1);
  size_t len = strlen(text);
  bool ok = parse(target, text, options, name, err);
  explicit_bzero(text, len);
  free(text);
  if (!ok) {
    amqp_target_unref(target);
    return NULL;
  }
  return target;
}

struct amqp_target *amqp_target_ref(struct amqp_target *target) {
  atomic_fetch_add(&target->refs, 1);
  return target;
}

void amqp_target_unref(struct amqp_target *target) {
  if (!target || atomic_fetch_sub(&target->refs, 1) != 1)
    return;
  if (target->password)
    explicit_bzero(target->password, strlen(target->password));
  free(target->password);
  free(target->host);
  free(target->vhost);
  free(target->user);
  free(target->connection_name);
  free(target->ca_file);
  free(target->cert_file);
  free(target->key_file);
  free(target);
}
