/* SPDX-License-Identifier: MIT */
#include "tests/contract/hostile_server.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

enum { START_MS = 60000 };

extern char **environ;

struct hostile_server {
  char folder[64];
  char file[64 + 256];
  pid_t pid;
  int to, from; /* its standard input and output */
  char output[2048];
  size_t len;
};

static void spawn(struct hostile_server *server) {
  int in[2], out[2];
  posix_spawn_file_actions_t actions;
  const char *const arguments[] = {"/usr/bin/python3", "-W", "ignore", HTTP_HOSTILE, server->folder, NULL};
  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  assert_int_equal(posix_spawn(&server->pid, arguments[0], &actions, NULL, (char *const *)arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  server->to = in[1];
  server->from = out[0];
}

struct hostile_server *hostile_server_start(void) {
  struct hostile_server *server = calloc(1, sizeof(*server));
  assert_non_null(server);
  snprintf(server->folder, sizeof(server->folder), "/tmp/duebox-http-XXXXXX");
  assert_non_null(mkdtemp(server->folder));
  spawn(server);
  struct pollfd fd = {.fd = server->from, .events = POLLIN};
  while (!strstr(server->output, "ready\n")) {
    ssize_t got = poll(&fd, 1, START_MS) == 1
                      ? read(server->from, server->output + server->len, sizeof(server->output) - 1 - server->len)
                      : -1;
    if (got <= 0)
      fail_msg("waited %d ms for the hostile server to say ready; it said \"%s\"", START_MS, server->output);
    server->len += (size_t)got;
  }
  return server;
}

void hostile_server_stop(struct hostile_server *server) {
  struct dirent *entry;
  close(server->to); /* its sign to end */
  close(server->from);
  waitpid(server->pid, NULL, 0);
  DIR *dir = opendir(server->folder);
  while (dir && (entry = readdir(dir)))
    if (entry->d_name[0] != '.')
      unlink(hostile_server_file(server, entry->d_name));
  if (dir)
    closedir(dir);
  rmdir(server->folder);
  free(server);
}

void hostile_server_go_on(struct hostile_server *server) { assert_int_equal(write(server->to, "\n", 1), 1); }

int hostile_server_port(const struct hostile_server *server, const char *name) {
  size_t len = strlen(name);
  for (const char *line = server->output; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (strncmp(line, name, len) == 0 && line[len] == '=')
      return atoi(line + len + 1);
  fail_msg("the hostile server has no listener %s", name);
  return 0;
}

const char *hostile_server_file(struct hostile_server *server, const char *name) {
  snprintf(server->file, sizeof(server->file), "%s/%s", server->folder, name);
  return server->file;
}

size_t hostile_server_copies(struct hostile_server *server, const char *id) {
  char line[1024];
  size_t copies = 0, len = strlen(id);
  FILE *log = fopen(hostile_server_file(server, "requests.log"), "r");
  assert_non_null(log);
  while (fgets(line, sizeof(line), log))
    copies += strncmp(line, id, len) == 0 && line[len] == ' ';
  fclose(log);
  return copies;
}
