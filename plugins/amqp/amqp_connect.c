/* SPDX-License-Identifier: MIT */
#include "amqp_connect.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "amqp_conn.h"
#include "amqp_watch.h"
#include "tls_limit.h"

struct amqp_connect {
  pthread_mutex_t lock;
  pthread_t thread;
  struct amqp_target *target;
  int wake_fd;
  bool ended;     /* under the lock */
  bool abandoned; /* under the lock */
  amqp_connection_state_t link;
  struct amqp_watch *watch; /* while the library connects and logs in */
  int64_t connected_by_us;
  struct amqp_connect_failure failure;
};

static bool fail(struct amqp_connect *attempt, const char *what, const char *why, const char *cure) {
  const struct amqp_target *t = attempt->target;
  snprintf(attempt->failure.text, sizeof attempt->failure.text, "%s %s:%d: %.300s%s%s", what, t->host, t->port, why,
           *cure ? "; " : "", cure);
  return false;
}

static void limit_until(struct amqp_connect *attempt, int64_t end_us) {
  amqp_watch_limit(attempt->watch, amqp_get_sockfd(attempt->link), end_us, (uint64_t)AMQP_WATCH_LOGIN_KIB * 1024);
}

/* The library opens the socket and does the TLS handshake in one call: this is called in between. */
static void on_handshake(const SSL *ssl, int where, int ignored) {
  (void)ignored;
  struct amqp_connect *attempt = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
  if (where & SSL_CB_HANDSHAKE_START)
    limit_until(attempt, attempt->connected_by_us);
}

static void on_message(int written, int version, int type, const void *data, size_t len, SSL *ssl, void *arg) {
  (void)ssl, (void)arg;
  if (!written && type == SSL3_RT_HANDSHAKE)
    tls_limit_message(version, data, len);
}

static bool set_up_tls(struct amqp_connect *attempt, amqp_socket_t *socket) {
  const struct amqp_target *t = attempt->target;
  SSL_CTX *context = amqp_ssl_socket_get_context(socket);
  X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);
  SSL_CTX_set_app_data(context, attempt);
  SSL_CTX_set_info_callback(context, on_handshake);
  SSL_CTX_set_msg_callback(context, on_message);
  tls_limit_context(context, false); /* brokers ask for our certificate in the first handshake */
  amqp_ssl_socket_set_verify_peer(socket, t->verify);
  /* The library compares names only; addresses are for OpenSSL. */
  bool address = t->verify && X509_VERIFY_PARAM_set1_ip_asc(param, t->host) == 1;
  amqp_ssl_socket_set_verify_hostname(socket, t->verify && !address);
  /* A key with a pass phrase is an error, not a question on the terminal. */
  amqp_ssl_socket_set_key_passwd(socket, "");
  if (amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST) != AMQP_STATUS_OK)
    return fail(attempt, "cannot ask for TLS 1.2 towards", "the TLS library does not have it", "");
  if (t->verify && amqp_ssl_socket_set_cacert(socket, t->ca_file) != AMQP_STATUS_OK)
    return fail(attempt, "cannot use ca_file for", t->ca_file, "is it there, readable and in PEM format?");
  if (t->cert_file && amqp_ssl_socket_set_key(socket, t->cert_file, t->key_file) != AMQP_STATUS_OK)
    return fail(attempt, "cannot use cert_file and key_file for", t->cert_file,
                "are both readable, in PEM format, and do they belong together?");
  return true;
}

static const char *cure_for(int status) {
  const char *why = ERR_reason_error_string(ERR_peek_error()), *cure = why ? tls_limit_cure(why) : NULL;
  if (cure && status == AMQP_STATUS_SSL_CONNECTION_FAILED)
    return cure;
  switch (status) {
  case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
    return "has the broker's certificate expired, or is the authority that signed it not in ca_file?";
  case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
    return "the url must name the host as the broker's certificate does";
  case AMQP_STATUS_SSL_CONNECTION_FAILED:
    return "does the broker speak TLS on this port, and does ca_file hold the authority that signed its certificate?";
  case AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED:
    return "correct the host in the url, or the name service";
  default:
    return "is the broker running, and does the port let us in?";
  }
}

/* A broker that takes nothing for long must not hold the driver for ever inside a send of the library: the kernel ends
 * the connection. Long, because a broker with an alarm reads nothing on purpose; dead peers are found by heartbeats. */
static void set_last_resort(int fd, int64_t confirm_timeout_ms) {
  unsigned limit_ms = (unsigned)(confirm_timeout_ms * 10 < 60000 ? 60000 : confirm_timeout_ms * 10);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

static bool open_socket(struct amqp_connect *attempt) {
  const struct amqp_target *t = attempt->target;
  amqp_socket_t *socket = t->tls ? amqp_ssl_socket_new(attempt->link) : amqp_tcp_socket_new(attempt->link);
  if (!socket)
    return fail(attempt, "cannot make a socket for", t->tls ? "the TLS library failed" : "out of memory", "");
  if (t->tls && !set_up_tls(attempt, socket))
    return false;
  struct timeval limit = {.tv_sec = t->connect_timeout_ms / 1000, .tv_usec = t->connect_timeout_ms % 1000 * 1000};
  attempt->connected_by_us = amqp_now_us() + t->connect_timeout_ms * 1000;
  ERR_clear_error();
  int status = amqp_socket_open_noblock(socket, t->host, t->port, &limit);
  if (t->tls) /* the next handshakes are of the connection, which outlives the attempt */
    SSL_CTX_set_info_callback(amqp_ssl_socket_get_context(socket), NULL);
  if (status != AMQP_STATUS_OK)
    return fail(attempt, "cannot connect to", amqp_error_string2(status), cure_for(status));
  set_last_resort(amqp_get_sockfd(attempt->link), t->confirm_timeout_ms);
  return true;
}

static bool refused(struct amqp_connect *attempt, const amqp_rpc_reply_t *reply) {
  const struct amqp_target *t = attempt->target;
  char why[512];
  const char *cure = "check user, password, vhost and permissions";
  if (reply->reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply->reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const amqp_connection_close_t *close = reply->reply.decoded;
    snprintf(why, sizeof why, "user '%s', vhost '%s': %u %.*s", t->user, t->vhost, close->reply_code,
             (int)close->reply_text.len, (const char *)close->reply_text.bytes);
    attempt->failure.refused = close->reply_code != AMQP_CONNECTION_FORCED; /* which is: the broker is going down */
  } else {
    snprintf(why, sizeof why, "user '%s', vhost '%s': %s", t->user, t->vhost, amqp_error_string2(reply->library_error));
    if (!t->tls) /* that hangs up without a word */
      cure = "check user, password, vhost and permissions, or is this the broker's port for TLS (amqps://)?";
  }
  return fail(attempt, "the login failed at", why, cure);
}

/* Capabilities that the library does not announce by itself, without which the broker keeps silent about an alarm or a
 * cancelled consumer. */
static bool log_in(struct amqp_connect *attempt) {
  static const char *const words[] = {"connection.blocked", "consumer_cancel_notify", "publisher_confirms",
                                      "basic.nack"};
  enum { WORDS = sizeof words / sizeof words[0] };
  const struct amqp_target *t = attempt->target;
  amqp_table_entry_t able[WORDS], top[3];
  for (int i = 0; i < WORDS; i++) {
    able[i].key = amqp_cstring_bytes(words[i]);
    able[i].value.kind = AMQP_FIELD_KIND_BOOLEAN;
    able[i].value.value.boolean = 1;
  }
  top[0].key = amqp_cstring_bytes("capabilities");
  top[0].value.kind = AMQP_FIELD_KIND_TABLE;
  top[0].value.value.table = (amqp_table_t){.num_entries = WORDS, .entries = able};
  top[1].key = amqp_cstring_bytes("product");
  top[1].value.kind = AMQP_FIELD_KIND_UTF8;
  top[1].value.value.bytes = amqp_cstring_bytes("duebox");
  top[2].key = amqp_cstring_bytes("connection_name");
  top[2].value.kind = AMQP_FIELD_KIND_UTF8;
  top[2].value.value.bytes = amqp_cstring_bytes(t->connection_name);
  amqp_table_t properties = {.num_entries = 3, .entries = top};

  struct timeval limit = {.tv_sec = t->connect_timeout_ms / 1000, .tv_usec = t->connect_timeout_ms % 1000 * 1000};
  if (amqp_set_handshake_timeout(attempt->link, &limit) != AMQP_STATUS_OK ||
      amqp_set_rpc_timeout(attempt->link, &limit) != AMQP_STATUS_OK)
    return fail(attempt, "cannot set the time-outs for", "connect_timeout is refused by rabbitmq-c", "");
  limit_until(attempt, amqp_now_us() + t->connect_timeout_ms * 1000);
  amqp_rpc_reply_t reply = amqp_login_with_properties(attempt->link, t->vhost, 0, t->frame_max, t->heartbeat_s,
                                                      &properties, AMQP_SASL_METHOD_PLAIN, t->user, t->password);
  return reply.reply_type == AMQP_RESPONSE_NORMAL || refused(attempt, &reply);
}

static void try_once(struct amqp_connect *attempt) {
  attempt->link = amqp_new_connection();
  attempt->watch = amqp_watch_start();
  bool logged_in = attempt->link && attempt->watch
                       ? open_socket(attempt) && log_in(attempt)
                       : fail(attempt, "cannot connect to", "out of memory, or the limit of threads is reached", "");
  const char *cut = amqp_watch_stop(attempt->watch);
  if (cut)
    logged_in = fail(attempt, "gave up connecting and logging in at", cut, "is this the port of an AMQP broker?");
  if (logged_in)
    return;
  if (attempt->link)
    amqp_destroy_connection(attempt->link);
  attempt->link = NULL;
}

static void free_attempt(struct amqp_connect *attempt) {
  if (attempt->link)
    amqp_destroy_connection(attempt->link);
  amqp_target_unref(attempt->target);
  pthread_mutex_destroy(&attempt->lock);
  free(attempt);
}

static void *run(void *arg) {
  struct amqp_connect *attempt = arg;
  try_once(attempt);
  pthread_mutex_lock(&attempt->lock);
  attempt->ended = true;
  bool abandoned = attempt->abandoned;
  if (!abandoned)
    (void)eventfd_write(attempt->wake_fd, 1);
  pthread_mutex_unlock(&attempt->lock);
  if (abandoned)
    free_attempt(attempt);
  return NULL;
}

struct amqp_connect *amqp_connect_start(struct amqp_target *target, int wake_fd) {
  struct amqp_connect *attempt = calloc(1, sizeof *attempt);
  if (!attempt)
    return NULL;
  pthread_mutex_init(&attempt->lock, NULL);
  attempt->target = amqp_target_ref(target);
  attempt->wake_fd = wake_fd;
  /* Signals are the host's: none may land on this thread. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&attempt->thread, NULL, run, attempt);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    free_attempt(attempt);
    return NULL;
  }
  return attempt;
}

bool amqp_connect_ended(struct amqp_connect *attempt) {
  pthread_mutex_lock(&attempt->lock);
  bool ended = attempt->ended;
  pthread_mutex_unlock(&attempt->lock);
  return ended;
}

amqp_connection_state_t amqp_connect_finish(struct amqp_connect *attempt, struct amqp_connect_failure *failure) {
  pthread_join(attempt->thread, NULL); /* it has ended but for its last few instructions */
  amqp_connection_state_t link = attempt->link;
  attempt->link = NULL;
  if (!link)
    *failure = attempt->failure;
  free_attempt(attempt);
  return link;
}

void amqp_connect_abandon(struct amqp_connect *attempt) {
  pthread_mutex_lock(&attempt->lock);
  bool ended = attempt->ended;
  if (!ended) {
    pthread_detach(attempt->thread);
    attempt->abandoned = true;
  }
  pthread_mutex_unlock(&attempt->lock);
  if (ended) {
    pthread_join(attempt->thread, NULL);
    free_attempt(attempt);
  }
}
