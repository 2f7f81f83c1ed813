/* SPDX-License-Identifier: MIT
 *
 * admin/process.c - reads /proc/self. Stateless.
 */
#include "admin/process.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void write_cpu(struct exposition *ex) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0)
    return;
  exposition_begin(ex, "process_cpu_seconds", METRIC_COUNTER, "User and system CPU time spent.");
  exposition_seconds(ex, NULL,
                     (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
                         usage.ru_stime.tv_usec);
}

static void write_memory(struct exposition *ex) {
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file)
    return;
  char line[128];
  char *end = fgets(line, sizeof(line), file) ? line : NULL;
  fclose(file);
  if (!end)
    return;
  int64_t page = sysconf(_SC_PAGESIZE), size = strtoll(end, &end, 10), resident = strtoll(end, NULL, 10);
  exposition_begin(ex, "process_virtual_memory_bytes", METRIC_GAUGE, "Virtual memory size.");
  exposition_integer(ex, NULL, size * page);
  exposition_begin(ex, "process_resident_memory_bytes", METRIC_GAUGE, "Resident memory size.");
  exposition_integer(ex, NULL, resident * page);
}

static void write_fds(struct exposition *ex) {
  DIR *dir = opendir("/proc/self/fd");
  if (dir) {
    int64_t count = -3; /* ".", ".." and the directory's own */
    while (readdir(dir))
      count++;
    closedir(dir);
    exposition_begin(ex, "process_open_fds", METRIC_GAUGE, "Open file descriptors.");
    exposition_integer(ex, NULL, count);
  }
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    exposition_begin(ex, "process_max_fds", METRIC_GAUGE, "Limit of open file descriptors.");
    exposition_integer(ex, NULL, limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur);
  }
}

/* When the machine started, Unix time; -1 when it cannot be had. */
static int64_t boot_time(void) {
  FILE *file = fopen("/proc/stat", "re");
  char line[256];
  int64_t seconds = -1;
  while (file && seconds < 0 && fgets(line, sizeof(line), file))
    if (strncmp(line, "btime ", 6) == 0)
      seconds = strtoll(line + 6, NULL, 10);
  if (file)
    fclose(file);
  return seconds;
}

/* Field 22 of /proc/self/stat, counted after the command's name, which may hold anything (proc(5)). */
static int64_t start_ticks(void) {
  FILE *file = fopen("/proc/self/stat", "re");
  if (!file)
    return -1;
  char line[1024];
  char *at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
  fclose(file);
  for (int field = 2; at && field < 22; field++)
    at = strchr(at + 1, ' ');
  return at ? strtoll(at, NULL, 10) : -1;
}

static void write_start(struct exposition *ex) {
  int64_t boot = boot_time(), ticks = start_ticks(), per_second = sysconf(_SC_CLK_TCK);
  if (boot < 0 || ticks < 0 || per_second <= 0)
    return;
  exposition_begin(ex, "process_start_time_seconds", METRIC_GAUGE, "Start of the process as Unix time.");
  exposition_seconds(ex, NULL, boot * 1000000 + ticks * 1000000 / per_second);
}

void process_write(struct exposition *ex) {
  write_cpu(ex);
  write_memory(ex);
  write_fds(ex);
  write_start(ex);
}
