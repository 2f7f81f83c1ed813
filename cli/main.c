/* SPDX-License-Identifier: MIT
 *
 * cli/main.c - duebox: finds the command that the words name, and runs it.
 */
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "core/daemon.h"

static int give_help(const struct args *args) {
  FILE *out = args->help ? stdout : stderr;
  if (args->command)
    help_command(out, args->command);
  else if (args->noun)
    help_noun(out, args->noun);
  else
    help_all(out);
  return args->help ? EX_OK : EX_USAGE;
}

/* Whoever starts us with a closed standard stream would get the number of a connection for it, and our log or output in
 * that connection. What we open in their place cannot be used: reading and writing fail as they did. */
static void occupy_standard_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      _exit(EX_OSERR);
  }
}

/* Else a thread's stack is what RLIMIT_STACK says: too small for a batch of rows, or so large that memory runs out. */
static void set_thread_stacks(void) {
  enum { STACK_BYTES = 8 * 1024 * 1024 };
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, STACK_BYTES) != 0 ||
      pthread_setattr_default_np(&attr) != 0)
    _exit(EX_OSERR);
  pthread_attr_destroy(&attr);
}

int main(int argc, char **argv) {
  struct args args;
  struct err err = {0};
  struct cli cli;
  int code;
  occupy_standard_streams();
  set_thread_stacks();
  bool known = args_parse(argc, argv, &args, &err);
  if (known && args.command && args.command->run == run_run)
    daemon_block_signals();
  setlocale(LC_CTYPE, "C.UTF-8"); /* widths of characters in tables; texts are UTF-8 whatever the terminal says */
  signal(SIGPIPE, SIG_IGN);       /* who closes our output must not end a change half way: see output_unwanted() */
  unsetenv("SSLKEYLOGFILE");      /* libcurl would write the keys of its connections there, and with them passwords */
  if (!known) {
    code = cli_fail_err(&err);
  } else if (args.help || !args.command) {
    code = give_help(&args);
    int written = cli_flush();
    code = code ? code : written;
  } else if ((code = cli_open(&cli, &args)) == EX_OK) {
    code = args.command->run(&cli, &args);
    int closed = cli_close(&cli);
    code = code ? code : closed;
    if (cli.interruptible)
      interrupt_obey();
    if (cli.outlived)
      cli_leave(code);
  }
  args_free(&args);
  return code;
}
