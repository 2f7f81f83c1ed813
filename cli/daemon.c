/* SPDX-License-Identifier: MIT */
#include "cli/daemon.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/listener.h"
#include "cli/text.h"
#include "core/admin_url.h"
#include "core/base/random.h"
#include "core/mask.h"
#include "core/options.h"

enum {
  CONNECT_TIMEOUT_MS = 3000,
  GET_TIMEOUT_MS = 3000,
  HEADERS_MAX_BYTES = 64 << 10,
  ANSWER_MAX_BYTES = 16 << 20,
  HTTP_OK = 200,
  HTTP_ERROR = 400,
  HTTP_MISDIRECTED = 421
};

struct daemon_client {
  const struct admin_config *admin;
  const struct operator* op; /* NULL: requests name no outbox */
  char name[64];             /* of this command, in outbox_instances; "" = not there yet */
  CURLSH *connections;       /* outlive the handle of a request */
  struct curl_slist *headers;
  struct mask mask; /* the token, which whoever answers may repeat */
  bool is_tls;      /* the present request is by https */
  char *location;   /* where a redirect of the last answer goes */
  char error[CURL_ERROR_SIZE];
  const char *refused; /* why nothing was sent, or no more of the answer taken; NULL = all was */
  char stranger[256];  /* the text of the first */
  size_t headers_len;  /* of the answer, with those of interim ones */
  char *answer;
  size_t answer_len;
};

/* libcurl undoes gzip, deflate and br as a Transfer-Encoding without being asked, in five layers: some hundred bytes
 * can cost minutes that way within one read, in which no time-out is looked at. A proxy sends none but chunked. */
static bool is_recoding(const char *line, size_t len) {
  static const char name[] = "transfer-encoding:";
  size_t name_len = strlen(name);
  char text[64], word[16], more;
  if (len < name_len || strncasecmp(line, name, name_len) != 0)
    return false;
  int text_len = snprintf(text, sizeof text, "%.*s", (int)(len - name_len), line + name_len);
  return text_len >= (int)sizeof text || sscanf(text, "%15s %c", word, &more) != 1 || strcasecmp(word, "chunked") != 0;
}

static size_t judge_header(char *line, size_t size, size_t count, void *ctx) {
  struct daemon_client *client = ctx;
  size_t len = size * count;
  client->headers_len += len;
  if (is_recoding(line, len))
    client->refused = "the answer has a Transfer-Encoding other than chunked";
  else if (client->headers_len > HEADERS_MAX_BYTES)
    client->refused = "the answer has more than 64 KiB of headers";
  return client->refused ? 0 : len;
}

static size_t take_answer(char *data, size_t size, size_t count, void *ctx) {
  struct daemon_client *client = ctx;
  size_t len = size * count;
  if (client->answer_len + len > ANSWER_MAX_BYTES) {
    client->refused = "the answer has more than 16 MiB";
    return 0;
  }
  char *grown = realloc(client->answer, client->answer_len + len + 1);
  if (!grown)
    return 0;
  client->answer = grown;
  memcpy(grown + client->answer_len, data, len);
  client->answer_len += len;
  grown[client->answer_len] = '\0';
  return len;
}

/* Before the request leaves. By https the daemon has proved who it is. */
static int judge_listener(void *ctx, char *peer, char *self, int peer_port, int self_port) {
  struct daemon_client *client = ctx;
  uid_t stranger;
  if (!client->admin->token || client->is_tls ||
      !listener_is_strange((struct listener_end){peer, (uint16_t)peer_port},
                           (struct listener_end){self, (uint16_t)self_port}, client->admin->token_owner, &stranger))
    return CURL_PREREQFUNC_OK;
  snprintf(client->stranger, sizeof client->stranger,
           "a process of another user (uid %u) listens there, so the token was not sent; where that is the daemon's "
           "user, run this as root or as that user, whose token file it can read",
           (unsigned)stranger);
  client->refused = client->stranger;
  return CURL_PREREQFUNC_ABORT;
}

static bool add_header(struct daemon_client *client, const char *header) {
  struct curl_slist *longer = curl_slist_append(client->headers, header);
  if (longer)
    client->headers = longer;
  return longer != NULL;
}

static bool set_up(struct daemon_client *client) {
  char bearer[1024];
  mask_begin(&client->mask);
  if (client->admin->token) {
    mask_add_secret(&client->mask, client->admin->token);
    int len = snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", client->admin->token);
    if (len >= (int)sizeof bearer || !add_header(client, bearer))
      return false;
  }
  return add_header(client, "Content-Type: application/json") && (client->connections = curl_share_init()) &&
         curl_share_setopt(client->connections, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) == CURLSHE_OK;
}

/* Instead of the system's authorities, also of the folder that libcurl was built with. */
static bool trust(const struct daemon_client *client, CURL *curl) {
  const char *file = client->admin->ca_file;
  return !file || (curl_easy_setopt(curl, CURLOPT_CAINFO, file) == CURLE_OK &&
                   curl_easy_setopt(curl, CURLOPT_CAPATH, NULL) == CURLE_OK);
}

/* A handle for one request: before libcurl 8.1.0 what a handle remembers of an answer may crash it in the next one. */
static bool prepare(struct daemon_client *client, CURL *curl) {
  return trust(client, curl) && curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_SHARE, client->connections) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_USERAGENT, "duebox/" DUEBOX_VERSION) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_NOPROXY, "*") == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, judge_listener) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_PREREQDATA, client) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, judge_header) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_HEADERDATA, client) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_WRITEDATA, client) == CURLE_OK;
}

/* Says in our database that this command runs, once. */
static bool announce(struct daemon_client *client, struct err *err) {
  char name[sizeof client->name] = "command-", header[sizeof OUTBOX_HEADER + sizeof name + 2];
  if (!client->op || client->name[0])
    return true;
  random_hex(name + strlen(name), 16);
  enum store_status status = client->op->ops->announce(client->op->self, name, err);
  if (status != STORE_OK) {
    err->code = cli_store_code(status, err);
    return false;
  }
  memcpy(client->name, name, sizeof name);
  snprintf(header, sizeof header, OUTBOX_HEADER ": %s", name);
  return add_header(client, header) || err_set(err, EX_OSERR, "out of memory");
}

/* What stays behind when that fails is forgotten a day later. */
static void withdraw(struct daemon_client *client) {
  struct err ignored;
  if (client->name[0])
    (void)!client->op->ops->withdraw(client->op->self, client->name, &ignored);
}

bool daemon_client_new(const struct admin_config *admin, const struct operator* op, struct daemon_client **out,
                       struct err *err) {
  *out = calloc(1, sizeof **out);
  if (*out) {
    (*out)->admin = admin;
    (*out)->op = op;
    if (set_up(*out))
      return true;
  }
  daemon_client_free(out);
  err_set(err, EX_SOFTWARE, "libcurl could not be set up");
  return false;
}

void daemon_client_free(struct daemon_client **client) {
  if (!*client)
    return;
  withdraw(*client);
  curl_share_cleanup((*client)->connections);
  curl_slist_free_all((*client)->headers);
  free((*client)->location);
  free((*client)->answer);
  free(*client);
  *client = NULL;
}

/* ---- who answers ---- */

static void hide_text(const struct mask *mask, json_t *value) {
  char *text = strdup(json_string_value(value));
  if (text)
    mask_hide(mask, text);
  if (!text || (strcmp(text, json_string_value(value)) != 0 && json_string_set(value, text) != 0))
    json_string_set(value, OPTION_MASK);
  free(text);
}

/* The token in all texts of an answer. The names of members stay, but for one that holds it: no daemon sends that. */
static void hide(const struct daemon_client *client, json_t *value) {
  const char *name;
  json_t *one;
  void *next;
  size_t i;
  if (json_is_string(value))
    hide_text(&client->mask, value);
  json_array_foreach(value, i, one) hide(client, one);
  json_object_foreach_safe(value, next, name, one) {
    if (client->admin->token && strstr(name, client->admin->token))
      json_object_del(value, name);
    else
      hide(client, one);
  }
}

/* Fills code and detail from a problem+json body (RFC 9457). False: it is none of a daemon's. */
static bool read_problem(struct daemon_answer *answer) {
  static const char urn[] = "urn:duebox:problem:";
  const char *type = json_string_value(json_object_get(answer->body, "type"));
  const char *code = json_string_value(json_object_get(answer->body, "code"));
  const char *detail = json_string_value(json_object_get(answer->body, "detail"));
  if (!type || strncmp(type, urn, strlen(urn)) != 0 || !code || !detail)
    return false;
  snprintf(answer->code, sizeof answer->code, "%s", code);
  snprintf(answer->detail, sizeof answer->detail, "%s", detail);
  return true;
}

/* Everything but what docs/openapi.yaml promises may come from any web server. */
static bool is_from_daemon(struct daemon_answer *answer, enum daemon_proof proof) {
  static const struct {
    const char *member;
    json_type type;
  } proofs[] = {[DAEMON_READY] = {"ready", JSON_TRUE},    [DAEMON_RELOADED] = {"reloaded", JSON_TRUE},
                [DAEMON_ROUTES] = {"routes", JSON_ARRAY}, [DAEMON_TASK] = {"state", JSON_STRING},
                [DAEMON_TASKS] = {"tasks", JSON_ARRAY},   [DAEMON_FATE] = {"fate", JSON_STRING}};
  const json_t *value = json_object_get(answer->body, proofs[proof].member);
  if (answer->status == HTTP_OK)
    return value && json_typeof(value) == proofs[proof].type;
  return answer->status >= HTTP_ERROR && read_problem(answer);
}

static bool refuse_stranger(const struct daemon_client *client, const char *url, long status, struct err *err) {
  char location[512];
  snprintf(location, sizeof location, "%s", client->location ? client->location : "");
  mask_hide(&client->mask, location);
  return err_set(err, EX_UNAVAILABLE,
                 "%s: that is no daemon of duebox: it answers with HTTP status %ld%s%s; admin.url must be where the "
                 "daemon itself is reached, and a proxy there must pass its answers on",
                 url, status, *location ? ", a redirect (which is not followed) to " : " and not as the API does",
                 location);
}

static bool is_other(const struct daemon_answer *answer) {
  return answer->status == HTTP_MISDIRECTED && strcmp(answer->code, "outbox") == 0;
}

static bool refuse_other(const char *url, struct err *err) {
  return err_set(
      err, EX_UNAVAILABLE,
      "%s: the daemon there works on another outbox, and has done nothing; each outbox needs an admin.url of its "
      "own, and in a copied database outbox_instances must be emptied",
      url);
}

/* ---- asking ---- */

/* Nothing has been sent when the name did not resolve, nobody took the connection, or who took it was not to be
 * trusted. */
static bool never_sent(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT || code == CURLE_UNSUPPORTED_PROTOCOL ||
         code == CURLE_URL_MALFORMAT || code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_SSL_CACERT_BADFILE || code == CURLE_ABORTED_BY_CALLBACK;
}

static void keep_location(struct daemon_client *client, CURL *curl) {
  char *location = NULL;
  free(client->location);
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &location);
  client->location = location ? strdup(location) : NULL;
}

static CURLcode perform(struct daemon_client *client, const char *url, const char *body, long timeout_ms,
                        long *status) {
  CURL *curl = curl_easy_init();
  CURLcode code = curl && prepare(client, curl) ? CURLE_OK : CURLE_FAILED_INIT;
  if (code == CURLE_OK)
    code = curl_easy_setopt(curl, CURLOPT_URL, url);
  if (code == CURLE_OK)
    code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
  if (code == CURLE_OK && body)
    code = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
  if (code == CURLE_OK)
    code = curl_easy_perform(curl);
  if (code == CURLE_OK) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    keep_location(client, curl);
  }
  curl_easy_cleanup(curl);
  return code;
}

bool daemon_ask(struct daemon_client *client, const char *base_url, const char *path, enum daemon_proof proof,
                const char *body, long timeout_ms, struct daemon_answer *answer, struct err *err) {
  *answer = (struct daemon_answer){0};
  client->headers_len = client->answer_len = 0;
  client->refused = NULL;
  client->is_tls = strncmp(base_url, "https://", 8) == 0;
  client->error[0] = '\0';
  if (!admin_url_check(base_url, client->admin->token, client->admin->allow_plaintext, err)) {
    answer->status = DAEMON_NEVER_SENT;
    err->code = EX_CONFIG;
    return err_wrap(err, "its admin.url");
  }
  if (!announce(client, err)) {
    answer->status = DAEMON_UNNAMED;
    return false;
  }
  char url[4096];
  snprintf(url, sizeof url, "%.*s%s", (int)base_url_len(base_url), base_url, path);

  CURLcode code = perform(client, url, body, timeout_ms, &answer->status);
  if (code != CURLE_OK) {
    answer->status = never_sent(code) ? DAEMON_NEVER_SENT : 0;
    return err_set(err, EX_UNAVAILABLE, "%s: %s%s", url,
                   client->refused    ? client->refused
                   : client->error[0] ? client->error
                                      : curl_easy_strerror(code),
                   code == CURLE_PEER_FAILED_VERIFICATION ? "; admin.ca_file names the authorities to trust" : "");
  }
  answer->body = client->answer_len ? json_loadb(client->answer, client->answer_len, 0, NULL) : NULL;
  hide(client, answer->body);
  bool ours = is_from_daemon(answer, proof), other = ours && is_other(answer);
  if (ours && !other)
    return true;
  if (other)
    refuse_other(base_url, err);
  else
    refuse_stranger(client, base_url, answer->status, err);
  json_decref(answer->body);
  *answer = (struct daemon_answer){.status = other ? DAEMON_OTHER : 0};
  return false;
}

static json_t *by_name(const json_t *list) {
  json_t *routes = json_object(), *route;
  size_t i;
  json_array_foreach(list, i, route) {
    const char *name = json_string_value(json_object_get(route, "name"));
    if (name)
      json_object_set(routes, name, route);
  }
  return routes;
}

json_t *daemon_get(const struct admin_config *admin, const struct operator* op, const char *path,
                   enum daemon_proof proof, struct err *err) {
  struct daemon_client *client;
  struct daemon_answer answer;
  json_t *body = NULL;
  if (!admin->host) {
    err_set(err, EX_CONFIG, "admin.listen is off");
    return NULL;
  }
  if (!daemon_client_new(admin, op, &client, err))
    return NULL;
  if (daemon_ask(client, admin->url, path, proof, NULL, GET_TIMEOUT_MS, &answer, err)) {
    if (answer.status == HTTP_OK)
      body = json_incref(answer.body);
    else
      err_set(err, EX_UNAVAILABLE, "%s: %s", admin->url, answer.detail);
  }
  json_decref(answer.body);
  daemon_client_free(&client);
  return body;
}

json_t *daemon_routes(const struct admin_config *admin, const struct operator* op, struct err *err) {
  json_t *body = daemon_get(admin, op, "/api/v1/routes", DAEMON_ROUTES, err);
  json_t *routes = body ? by_name(json_object_get(body, "routes")) : NULL;
  json_decref(body);
  return routes;
}

const char *daemon_said(const json_t *of, const char *key) {
  const char *text = json_string_value(json_object_get(of, key));
  return !text ? "(shown with admin.token_file)" : *text ? text : "?";
}

const char *daemon_said_prefix(const json_t *of, const char *key) {
  const char *text = json_string_value(json_object_get(of, key));
  return text_name_prefix(text ? text : "");
}

char *daemon_segment(const char *text) {
  char *escaped = curl_easy_escape(NULL, text, 0);
  char *copy = escaped ? strdup(escaped) : NULL;
  curl_free(escaped);
  return copy;
}
