/* SPDX-License-Identifier: MIT
 *
 * tests/bench/http_bench.c - plugins/http against a bare libcurl multi loop, in one run.
 *
 *   http_bench [requests] [in flight] [secret]
 *
 * A child process answers every request with the same 200 on kept connections and does nothing else. Both sides send
 * the same bytes over the same number of connections; they take turns, and the ratio of their best rounds is printed,
 * by wall clock and by the sender's own CPU time (which a busy machine distorts less). What the plugin does beyond the
 * bare loop: it makes URL and headers for each task, limits the time, looks at the kept connection, judges the answer,
 * reports it.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <duebox/plugin.h>

#include "http_options.h"
#include "tests/support/fake_host.h"

extern const struct duebox_plugin duebox_plugin_v1;

enum { ROUNDS = 5, BODY = 200, CONNECTIONS = 1024 };

struct cost {
  double wall_s, cpu_s;
};

/* ---- the receiver ---- */

/* Counts request heads; a body holds no empty line and each request arrives in one piece or two. */
static void serve_ready(int epoll, int fd) {
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  char data[65536];
  ssize_t got = recv(fd, data, sizeof(data), 0);
  if (got <= 0) {
    close(fd);
    return;
  }
  for (const char *at = data; (at = memmem(at, (size_t)(data + got - at), "\r\n\r\n", 4)); at += 4)
    if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
      return;
}

static _Noreturn void serve(int listener) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
  int epoll = epoll_create1(0), one = 1;
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int ready = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.fd != listener) {
        serve_ready(epoll, events[i].data.fd);
        continue;
      }
      event.data.fd = accept(listener, NULL, NULL);
      setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
      epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
    }
  }
}

static pid_t start_receiver(int *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(address);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, CONNECTIONS) ||
      getsockname(listener, (struct sockaddr *)&address, &len)) {
    perror("the receiver's socket");
    exit(1);
  }
  *port = ntohs(address.sin_port);
  pid_t pid = fork();
  if (pid == 0)
    serve(listener);
  close(listener);
  return pid;
}

/* ---- measuring ---- */

static struct cost now(void) {
  struct timespec wall, cpu;
  clock_gettime(CLOCK_MONOTONIC, &wall);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  return (struct cost){(double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec,
                       (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

static void keep_best(struct cost *best, struct cost from) {
  struct cost to = now();
  if (best->wall_s == 0 || to.wall_s - from.wall_s < best->wall_s)
    best->wall_s = to.wall_s - from.wall_s;
  if (best->cpu_s == 0 || to.cpu_s - from.cpu_s < best->cpu_s)
    best->cpu_s = to.cpu_s - from.cpu_s;
}

/* ---- the bare loop ---- */

struct bare {
  CURLM *multi;
  CURL **easy;
  struct curl_slist *headers;
};

/* What the plugin sends, ready made. */
static const char *const same_headers[] = {
    "webhook-id: 0194f2a0-7b0e-7c3e-8a50-6e2f3d2b1c00",
    "webhook-timestamp: 1767323045",
    "duebox-attempt: 1",
    "duebox-route: crm.push",
    "duebox-due: 2026-01-02T03:04:05.123456Z",
    "Content-Type: application/json",
    "User-Agent: duebox/0.1.0",
    "Expect:",
};

static size_t discard(char *data, size_t size, size_t count, void *arg) { return size * count; }

static void bare_open(struct bare *bare, const char *url, const char *body, int inflight) {
  bare->multi = curl_multi_init();
  bare->easy = calloc((size_t)inflight, sizeof(CURL *));
  for (size_t i = 0; i < sizeof(same_headers) / sizeof(same_headers[0]); i++)
    bare->headers = curl_slist_append(bare->headers, same_headers[i]);
  curl_multi_setopt(bare->multi, CURLMOPT_MAXCONNECTS, (long)inflight);
  for (int i = 0; i < inflight; i++) {
    bare->easy[i] = curl_easy_init();
    curl_easy_setopt(bare->easy[i], CURLOPT_URL, url);
    curl_easy_setopt(bare->easy[i], CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(bare->easy[i], CURLOPT_HTTPHEADER, bare->headers);
    curl_easy_setopt(bare->easy[i], CURLOPT_POSTFIELDSIZE, (long)BODY);
    curl_easy_setopt(bare->easy[i], CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(bare->easy[i], CURLOPT_WRITEFUNCTION, discard);
  }
}

static void bare_round(struct bare *bare, int requests, int inflight) {
  int begun = 0, done = 0, left;
  for (; begun < inflight && begun < requests; begun++)
    curl_multi_add_handle(bare->multi, bare->easy[begun]);
  while (done < requests) {
    curl_multi_perform(bare->multi, &left);
    bool any = false;
    for (CURLMsg *msg = curl_multi_info_read(bare->multi, &left); msg; msg = curl_multi_info_read(bare->multi, &left)) {
      CURL *easy = msg->easy_handle;
      if (msg->data.result != CURLE_OK) {
        fprintf(stderr, "bare loop: %s\n", curl_easy_strerror(msg->data.result));
        exit(1);
      }
      curl_multi_remove_handle(bare->multi, easy);
      done++;
      any = true;
      if (begun < requests) {
        curl_multi_add_handle(bare->multi, easy);
        begun++;
      }
    }
    if (!any)
      curl_multi_poll(bare->multi, NULL, 0, 1000, NULL);
  }
}

static void bare_close(struct bare *bare, int inflight) {
  for (int i = 0; i < inflight; i++)
    curl_easy_cleanup(bare->easy[i]);
  free(bare->easy);
  curl_multi_cleanup(bare->multi);
  curl_slist_free_all(bare->headers);
}

/* ---- the plugin, under a host without locks and queues ---- */

struct counters {
  int done, failed;
};

static void on_complete(void *ctx, uint64_t token, const struct duebox_outcome *outcome) {
  struct counters *counters = ctx;
  counters->done++;
  counters->failed += outcome->cls != DUEBOX_DELIVERED;
}
static size_t on_expand(void *ctx, const char *tmpl, const struct duebox_task *task, enum duebox_escape escape,
                        char *out, size_t cap) {
  return (size_t)snprintf(out, cap, "%s", tmpl);
}
static void on_health(void *ctx, bool up, const char *text) {}

struct plugged {
  struct counters counters;
  struct duebox_host host;
  struct http_options options;
  struct http_route route;
  struct duebox_task task;
  void *inst;
};

static void plugged_open(struct plugged *p, const char *url, const char *body, int inflight) {
  struct duebox_error err = {""};
  fake_options(http_option_rows, &p->options);
  fake_options(http_route_rows, &p->route);
  p->options.allow_private = true;
  p->route.url = url;
  p->host = (struct duebox_host){.struct_size = sizeof(p->host),
                                 .ctx = &p->counters,
                                 .complete = on_complete,
                                 .expand = on_expand,
                                 .health = on_health};
  p->task = (struct duebox_task){.struct_size = sizeof(p->task),
                                 .message_id = "0194f2a0-7b0e-7c3e-8a50-6e2f3d2b1c00",
                                 .route = "crm.push",
                                 .attempt = 1,
                                 .timeout_ms = 30000,
                                 .payload = {body, BODY},
                                 .checkpoint = {"", 0},
                                 .route_data = &p->route};
  p->inst = calloc(1, duebox_plugin_v1.instance_size);
  const struct duebox_instance_config config = {.struct_size = sizeof(config),
                                                .role = DUEBOX_ROLE_SINK,
                                                .name = "bench",
                                                .options = &p->options,
                                                .max_inflight = (uint32_t)inflight};
  if (!duebox_plugin_v1.create(p->inst, &config, &p->host, &err) || !duebox_plugin_v1.start(p->inst, &err)) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
}

static void plugged_round(struct plugged *p, int requests, int inflight) {
  const struct duebox_task *tasks[CONNECTIONS];
  int begun = 0;
  for (int i = 0; i < inflight; i++)
    tasks[i] = &p->task;
  p->counters = (struct counters){0};
  while (p->counters.done < requests) {
    int room = inflight - (begun - p->counters.done), more = requests - begun;
    if (room > 0 && more > 0)
      begun += (int)duebox_plugin_v1.sink->submit(p->inst, tasks, (size_t)(room < more ? room : more));
    duebox_plugin_v1.poll(p->inst, 1000);
  }
  if (p->counters.failed) {
    fprintf(stderr, "plugin: %d of %d requests failed\n", p->counters.failed, requests);
    exit(1);
  }
}

static void plugged_close(struct plugged *p) {
  duebox_plugin_v1.stop(p->inst, 1000);
  duebox_plugin_v1.destroy(p->inst);
  free(p->inst);
}

int main(int argc, char **argv) {
  int requests = argc > 1 ? atoi(argv[1]) : 20000, inflight = argc > 2 ? atoi(argv[2]) : 64, port;
  char url[64], body[BODY];
  struct bare bare = {0};
  struct plugged plugged = {0};
  struct cost bare_best = {0}, plugged_best = {0};
  if (inflight < 1 || inflight > CONNECTIONS || requests < inflight) {
    fprintf(stderr, "usage: http_bench [requests] [in flight, at most %d] [whsec_... or whsk_...]\n", CONNECTIONS);
    return 1;
  }
  memset(body, 'x', sizeof(body));
  pid_t receiver = start_receiver(&port);
  snprintf(url, sizeof(url), "http://127.0.0.1:%d/hooks/crm", port);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  bare_open(&bare, url, body, inflight);
  plugged_open(&plugged, url, body, inflight);
  plugged.route.secret = argc > 3 ? argv[3] : NULL;
  for (int round = 0; round < ROUNDS; round++) {
    struct cost from = now();
    bare_round(&bare, requests, inflight);
    keep_best(&bare_best, from);
    from = now();
    plugged_round(&plugged, requests, inflight);
    keep_best(&plugged_best, from);
  }
  printf("%d requests, %d in flight, best of %d rounds\n", requests, inflight, ROUNDS);
  printf("bare libcurl multi: %.0f/s, %.1f us CPU each\n", requests / bare_best.wall_s,
         1e6 * bare_best.cpu_s / requests);
  printf("plugins/http:       %.0f/s, %.1f us CPU each\n", requests / plugged_best.wall_s,
         1e6 * plugged_best.cpu_s / requests);
  printf("ratio: %.2f by wall clock, %.2f by CPU time\n", bare_best.wall_s / plugged_best.wall_s,
         bare_best.cpu_s / plugged_best.cpu_s);
  plugged_close(&plugged);
  bare_close(&bare, inflight);
  curl_global_cleanup();
  kill(receiver, SIGTERM);
  waitpid(receiver, NULL, 0);
  return 0;
}
