/* SPDX-License-Identifier: MIT */
#include "http_flood.h"

#include <string.h>
#include <time.h>

#include <openssl/ssl.h>

#include "http_tls.h"
#include "tls_limit.h"

/* Answers within their limits take a fraction of it. Processor time: on a busy machine nobody is cut off for that. */
enum { LONGEST_US = 250000 };
/* Of a handshake, in one turn: records, and messages in them. Some twenty are usual. */
enum { HANDSHAKE_MAX = 512 };

static int64_t worked_us(void) {
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void say(const struct http_flood *flood, const SSL *ssl, const char *what) {
  const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  flood->host->log(flood->host->ctx, DUEBOX_LOG_WARN, "HTTP-FLOOD", "%.255s wrote %s",
                   name ? name : "an endpoint without a host name", what);
}

/* OpenSSL gives no more bytes of a connection whose other end has closed it, so libcurl takes it for closed. */
static void end_connection(struct http_flood *flood, SSL *ssl) {
  SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
  http_flood_turn(flood);
  say(flood, ssl,
      "HTTP/2 frames without a pause; the connection is ended, the outcome of the requests on it is unknown");
}

/* OpenSSL asks the socket for more in a handshake, whatever its state: from now on it reads from where nothing is. What
 * came in one record is still told of. */
static void on_handshake(struct http_flood *flood, SSL *ssl) {
  flood->steps = flood->shaking == ssl ? flood->steps + 1 : 1;
  flood->shaking = ssl;
  if (flood->steps != HANDSHAKE_MAX + 1)
    return;
  BIO *nothing = BIO_new(BIO_s_null());
  if (!nothing) {
    flood->shaking = NULL; /* once more after as many */
    return;
  }
  SSL_set0_rbio(ssl, nothing);
  say(flood, ssl, "records of a TLS handshake without a pause; the connection is ended");
}

static void on_record(int written, int version, int type, const void *data, size_t len, SSL *ssl, void *arg) {
  struct http_flood *flood = arg;
  if (!written && SSL_in_init(ssl))
    on_handshake(flood, ssl);
  if (!written && type == SSL3_RT_HANDSHAKE)
    tls_limit_message(version, data, len);
  if (written || type != SSL3_RT_HEADER || !flood->measures)
    return;
  int64_t now = worked_us();
  if (flood->reading == ssl)
    flood->spent_us += now - flood->last_us;
  flood->reading = ssl;
  flood->last_us = now;
  if (flood->spent_us > LONGEST_US)
    end_connection(flood, ssl);
}

/* A record of TLS itself, such as a KeyUpdate, ends a read then, and libcurl looks at the other connections and at the
 * time; OpenSSL would read on as long as there are any. */
static CURLcode on_context(CURL *easy, void *context, void *arg) {
  struct http_flood *flood = arg;
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  flood->shaking = NULL; /* the next connection may be where another one was in memory */
  SSL_CTX_set_app_data(context, (void *)++flood->connections);
  SSL_CTX_set_msg_callback(context, on_record);
  SSL_CTX_set_msg_callback_arg(context, flood);
  tls_limit_context(context, flood->client_cert);
  return !flood->authorities || http_tls_add_authorities(context, flood->authorities) ? CURLE_OK : CURLE_OUT_OF_MEMORY;
}

uintptr_t http_flood_connection(const SSL *tls) {
  return tls ? (uintptr_t)SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls)) : 0;
}

void http_flood_pause(struct http_flood *flood) { flood->reading = NULL; }

bool http_flood_measurable(void) {
  const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;
  return library && strncmp(library, "OpenSSL/", strlen("OpenSSL/")) == 0;
}

bool http_flood_watch(CURL *easy, struct http_flood *flood) {
  if (!http_flood_measurable())
    return true;
  return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, flood) == CURLE_OK;
}

void http_flood_turn(struct http_flood *flood) {
  flood->reading = flood->shaking = NULL;
  flood->spent_us = 0;
}
