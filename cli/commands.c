/* SPDX-License-Identifier: MIT
 *
 * cli/commands.c - the table: every command with its options, help and examples.
 */
#include <string.h>

#include "cli/change.h"
#include "cli/command.h"
#include "cli/select.h"
#include "core/options.h"

#define TAKES(...)                                                                                                     \
  (const enum option_id[]) { __VA_ARGS__ __VA_OPT__(, ) OPTIONS }

#define IDS_OR_FILTERS                                                                                                 \
  "Which tasks: ids (row ids, or message ids) as operands, or filters as options, which must all hold.\n"              \
  "Digits that are the row id of one task and the message id of another: say id:100 or message_id:100.\n"              \
  "A name that means two tasks is refused with 65 (task list lists both), and so is id:100 or message_id:m where\n"    \
  "another task has just that text for its message id; --where \"id = 100\" means the row whatever tasks are "         \
  "called.\n"                                                                                                          \
  "Tables show a message id that begins with id:, message_id: or - as message_id:..., so that it can be copied into\n" \
  "a command; JSON has it as it is in the table: a script puts message_id: in front of every message id.\n"            \
  "TIME is 2026-01-31T08:00:00Z (UTC unless it says otherwise), now, +30m or -2h by the database's clock.\n"           \
  "--where is raw SQL, one condition beside the other filters; it runs with the rights of the database user.\n"
#define OTHER_ID                                                                                                       \
  "One whose row id another task has by now, or whose id is from 2^61 on, has another row id then (\"other_id\"\n"     \
  "in JSON); its message id stays.\n"
#define MANY                                                                                                           \
  "With filters the number of tasks is said first and confirmed on a terminal; elsewhere --yes is needed.\n"           \
  "Each change leaves an audit row: who, what, why, which, and the values from before; audit_first and\n"              \
  "audit_last in JSON are the ids of the first and the last that the command wrote, with those of others between\n"    \
  "perhaps; null: none. A daemon that holds the tasks writes rows for them instead, and the command with filters\n"    \
  "one for the whole (changed is 0 in it). Exit code 0 says that each task that was named, or that the filters\n"      \
  "matched, is changed. Where one is not: 75, it is on its way out, or awaits a result (which cancel ends), or\n"      \
  "another transaction holds its row; 65, its state does not allow it, it has moved on meanwhile, another has its\n"   \
  "key, or the server refuses it (a trigger, say; refusal in JSON is what it said last); 66, there is none of that\n"  \
  "id. The others are changed all the same; but where the server refuses 1000 one after the other, the command\n"      \
  "stops and says how many it has not tried. Filters that match no task are no failure.\n"                             \
  "For rows that other transactions hold a command waits some seconds in all, however many they are.\n"                \
  "Ctrl-C (SIGINT, SIGTERM, SIGHUP) lets the step that runs end, says what was changed, and then ends the command\n"   \
  "by that signal (130, 143 or 129 in a shell).\n"
#define NEWEST                                                                                                         \
  "The newest of them are changed first, as the oldest are mostly due first and may leave meanwhile; with --limit\n"   \
  "the oldest.\n"
#define LIVING_MATCH                                                                                                   \
  "Filters without --state match all living tasks, as those of task list do: one that cannot be changed at the\n"      \
  "moment is counted, and said.\n"
#define MAYBE_SENT                                                                                                     \
  "A task of which a copy has left, or may have, is said to have been sent, or maybe: maybe_sent in JSON. That\n"      \
  "is one that awaits its result or has had an attempt (with recorded claims also one that was given back\n"           \
  "unsent), and one that a daemon had, or may have had, that died, or has lost its lease: what that one has not\n"     \
  "begun to send by then stays. It is no failure: the exit code is 0.\n"

const struct noun nouns[] = {
    {"run", "the daemon"},
    {"migrate", "create and update the tables"},
    {"check", "prove the configuration without starting anything"},
    {"doctor", "examine configuration, database and daemon, with a cure for each finding"},
    {"reload", "let the daemon load its configuration again"},
    {"task", "tasks: add, find, show, change"},
    {"dead", "tasks that were given up"},
    {"route", "routes: what waits where, pause and resume"},
    {"quarantine", "result records that fitted no task, were flawed, or came too late with the opposite"},
    {"plugin", "plugin modules and their options"},
    {"config", "the effective configuration"},
    {"completion", "a completion script for the shell"},
    {"version", "the version of duebox and of its libraries"},
};
const size_t noun_count = ARRAY_LEN(nouns);

const struct command commands[] = {
    {.noun = "run",
     .operands = "",
     .options = TAKES(OPT_HOLD),
     .summary = "run the daemon in the foreground",
     .details =
         "Signals: SIGTERM ends it after what is in flight (a second one at once), SIGHUP reloads the\n"
         "configuration as one step. Log lines go to standard error.\n"
         "With --hold it takes the shards, shows what is due and does what people ask (task cancel), but sends\n"
         "nothing, takes nothing back and lets nothing expire, until it is started without: see duebox doctor.\n",
     .examples = "  duebox run --config /etc/duebox/duebox.yaml\n"
                 "  duebox run --hold\n",
     .run = run_run},
    {.noun = "migrate",
     .operands = "[status]",
     .max = 1,
     .options = TAKES(OPT_DRY_RUN, OPT_SHOW_SQL, OPT_SHARDS),
     .summary = "create and update the tables",
     .details =
         "Applies the migrations that the database has not had yet, as database.migrate_user. One that broke off\n"
         "goes on where it stopped; two migrators at once are fine. `status` only says what there is.\n"
         "The number of shards is fixed by the first migration: tables that have another number than --shards says\n"
         "are left as they are, with exit code 78. What --show-sql prints is all that a first migrate\n"
         "does: an empty database to which somebody applies it by hand needs no other. It sets its own sql_mode,\n"
         "and at its end that of before.\n",
     .examples = "  duebox migrate\n"
                 "  duebox migrate --dry-run\n"
                 "  duebox migrate --show-sql > outbox.sql\n"
                 "  duebox migrate status -o json\n",
     .run = run_migrate},
    {.noun = "check",
     .operands = "",
     .options = TAKES(OPT_CONNECT),
     .summary = "prove the configuration without starting anything",
     .details =
         "Reads the configuration with its drop-ins, loads the plugin modules and checks every option. All that is\n"
         "wrong is said, one line each, as far as the files are YAML. Changes nothing.\n",
     .examples = "  duebox check --config ./duebox.yaml\n"
                 "  duebox check --connect\n",
     .run = run_check},
    {.noun = "doctor",
     .operands = "",
     .options = TAKES(),
     .summary = "examine configuration, database and daemon, with a cure for each finding",
     .details =
         "Looks at rights, settings of the server, clocks, partitions, the backlog, tasks that died within a day,\n"
         "the daemon's listener, and the destinations that the daemon cannot reach or that are missing.\n"
         "Changes nothing. Exit code 78 when something is wrong that must be mended, 77 where it is a password or a "
         "right\n"
         "alone, 69 where the database cannot be reached.\n",
     .examples = "  duebox doctor\n"
                 "  duebox doctor -o jsonl | jq -r 'select(.level != \"ok\") | .cure'\n",
     .run = run_doctor},
    {.noun = "reload",
     .operands = "",
     .options = TAKES(),
     .summary = "let the daemon load its configuration again",
     .details = "Asks the daemon at admin.url. Routes and limits are swapped as one step, or nothing is changed.\n",
     .examples = "  duebox check && duebox reload\n",
     .run = run_reload},
    {.noun = "task",
     .verb = "add",
     .operands = "ROUTE",
     .min = 1,
     .max = 1,
     .options =
         TAKES(OPT_PAYLOAD, OPT_PAYLOAD_FILE, OPT_DELAY, OPT_AT, OPT_KEY, OPT_HEADER, OPT_PRIORITY, OPT_DEDUP_KEY,
               OPT_ORDER_KEY, OPT_MESSAGE_ID, OPT_MAX_ATTEMPTS, OPT_TIMEOUT, OPT_EXPIRES_AT, OPT_TARGET_HOST),
     .summary = "insert a task",
     .details = "The payload comes from --payload, --payload-file or standard input, byte for byte.\n",
     .examples =
         "  duebox task add orders.cancel --payload '{\"order\":17}' --delay 30m --key 17\n"
         "  duebox task add invoice.send --payload-file invoice.json --at 2026-01-31T08:00:00Z\n"
         "  date | duebox task add crm.push -H traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
     .run = run_task_add},
    {.noun = "task",
     .verb = "list",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(SELECTION, OPT_PRIORITY, OPT_LIMIT),
     .summary = "list tasks, the newest first",
     .details = IDS_OR_FILTERS
     "An id that names no task is told of, with exit code 66; the others are listed.\n"
     "Without --state the living are listed; without ids 100 unless --limit says otherwise; 0 = all. Times are UTC.\n",
     .examples = "  duebox task list --route orders.cancel --state scheduled,awaiting\n"
                 "  duebox task list --state dead --created-after -1d -o jsonl --limit 0\n"
                 "  duebox task list --where \"payload LIKE '%\\\"order\\\":17%'\"\n",
     .run = run_task_list},
    {.noun = "task",
     .verb = "show",
     .operands = "ID",
     .min = 1,
     .max = 1,
     .options = TAKES(OPT_FULL),
     .summary = "show one task with its attempts",
     .details =
         "ID is a row id (decimal digits) or a message id; id:100 and message_id:100 say which. What names two tasks\n"
         "is refused with 65, as by task cancel. Tasks that have ended are found in the history. Times are UTC.\n"
         "The message id is shown as commands take it, with message_id: in front where it could be taken for "
         "something\n"
         "else; JSON has it as it is in the table.\n",
     .examples = "  duebox task show 4711\n"
                 "  duebox task show 5f1c9a0e-8a39-11ef-9d3a-0242ac120002 -o json\n",
     .run = run_task_show},
    {.noun = "task",
     .verb = "cancel",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(SELECTION, OPT_PRIORITY, CHANGING),
     .summary = "cancel tasks that have not ended",
     .details = IDS_OR_FILTERS LIVING_MATCH
     "\nThe daemon that holds a task's shard is asked, so that \"cancelled\" is certain: nothing of it has left, nor\n"
     "will, unless that is said. Where it cannot be reached nothing is changed. Where no daemon runs the rows are\n"
     "changed directly.\n"
     "A task whose attempt runs is on its way out, and stays.\n" NEWEST MAYBE_SENT MANY,
     .examples = "  duebox task cancel 4711 --reason 'paid meanwhile'\n"
                 "  duebox task cancel --route orders.cancel --key 17 --yes\n"
                 "  duebox task cancel --route crm.push --due-before +1h --dry-run\n",
     .run = run_task_cancel},
    {.noun = "task",
     .verb = "reschedule",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(OPT_AT, OPT_DELAY, SELECTION, OPT_PRIORITY, CHANGING),
     .summary = "give scheduled tasks another due time",
     .details = IDS_OR_FILTERS LIVING_MATCH
     "\nAs with cancel, the daemon that holds a task's shard is asked.\n"
     "A task whose expires_at is not later than the new time would never be sent, and stays as it is: 65.\n" NEWEST
         MAYBE_SENT MANY,
     .examples = "  duebox task reschedule 4711 --at now\n"
                 "  duebox task reschedule --route crm.push --delay 2h --reason 'their maintenance' --yes\n",
     .run = run_task_reschedule},
    {.noun = "task",
     .verb = "retry",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(SELECTION, OPT_PRIORITY, CHANGING),
     .summary = "bring ended tasks back, and waiting retries forward",
     .details = IDS_OR_FILTERS
     "\nDead, expired and cancelled tasks come back as scheduled, due now, with a fresh budget; the attempt\n"
     "goes on counting. Scheduled tasks with failures are due now. Filters mean dead tasks unless --state\n"
     "names others.\n" OTHER_ID MANY,
     .examples = "  duebox task retry 4711\n"
                 "  duebox task retry --route crm.push --error http.503 --rate 50/s --yes\n"
                 "  duebox task retry --state scheduled --route crm.push --yes\n",
     .run = run_task_retry},
    {.noun = "task",
     .verb = "set",
     .operands = "[ID]...",
     .max = -1,
     .options =
         TAKES(OPT_PRIORITY, OPT_MAX_ATTEMPTS, OPT_TIMEOUT, OPT_EXPIRES_AT, OPT_TARGET_HOST, SELECTION, CHANGING),
     .summary = "change settings of scheduled tasks",
     .details = IDS_OR_FILTERS LIVING_MATCH
     "\n--max-attempts 0 and --timeout 0 mean the route's; --expires-at never; --target-host ''\n"
     "any host. A task that is due, or has an order_key, is taken to its host by a daemon, as soon as no\n"
     "copy of it is out, its turn has come and its route is read (\"moves\" in JSON, move_to_host in\n"
     "task show until then); one that is on its way out ends where it is.\n"
     "A task that is due when it has expired would never be sent, and stays as it is: 65.\n" MANY,
     .examples = "  duebox task set 4711 --priority 9 --max-attempts 20\n"
                 "  duebox task set --route crm.push --target-host crm-2 --yes\n",
     .run = run_task_set},
    {.noun = "task",
     .verb = "result",
     .operands = "ID",
     .min = 1,
     .max = 1,
     .options = TAKES(OPT_ATTEMPT, OPT_STATUS, OPT_RETRY_IN, OPT_ERROR_CLASS, OPT_ERROR_MESSAGE, OPT_RESULT),
     .summary = "answer for a consumer",
     .details =
         "Says what became of an attempt, as the consumer would. A result changes a task at most once: the same again\n"
         "is no failure. Where the task comes to something else than the result says, the exit code is 65: the "
         "attempt\n"
         "had another result, the task was changed since and is sent again, or its attempts are used up.\n"
         "--retry-in goes with retry, --error-class and --error-message with retry and fail.\n",
     .examples = "  duebox task result 4711 --attempt 2 --status done --result '{\"invoice\":\"R-1\"}'\n"
                 "  duebox task result 4711 --attempt 2 --status retry --retry-in 10m --error-message 'bank closed'\n",
     .run = run_task_result},
    {.noun = "dead",
     .verb = "list",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(OPT_ROUTE, OPT_KEY, OPT_ERROR, OPT_DUE_BEFORE, OPT_DUE_AFTER, OPT_CREATED_BEFORE,
                      OPT_CREATED_AFTER, OPT_WHERE, OPT_PRIORITY, OPT_LIMIT),
     .summary = "list tasks that were given up, with why",
     .details = IDS_OR_FILTERS "An id that names no dead task is told of, with exit code 66; the others are listed.\n",
     .examples = "  duebox dead list --route crm.push\n"
                 "  duebox dead list --where \"finished_at > UTC_TIMESTAMP() - INTERVAL 1 HOUR\" -o jsonl\n",
     .run = run_dead_list},
    {.noun = "dead",
     .verb = "retry",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(OPT_ROUTE, OPT_KEY, OPT_ERROR, OPT_DUE_BEFORE, OPT_DUE_AFTER, OPT_CREATED_BEFORE,
                      OPT_CREATED_AFTER, OPT_WHERE, OPT_PRIORITY, CHANGING),
     .summary = "bring dead tasks back",
     .details = IDS_OR_FILTERS
     "\nThey are scheduled, due now, with a fresh budget; the attempt goes on counting.\n" OTHER_ID MANY,
     .examples = "  duebox dead retry --route crm.push --error http.503 --yes\n"
                 "  duebox dead retry 4711 4712 --reason 'bug 1234 is fixed'\n",
     .run = run_dead_retry},
    {.noun = "route",
     .verb = "list",
     .operands = "",
     .options = TAKES(),
     .summary = "list routes with what waits in them",
     .details =
         "Counts stop at 10000, so that the list is quick on any table. STATE is ok; paused, by people or by the\n"
         "endpoint; suspended, the destination is down, or stalled, it confirms nothing, as the daemon at admin.url\n"
         "sees it; unknown, in no configuration; not loaded, the daemon has not reloaded yet; ? where no daemon "
         "answers.\n",
     .examples = "  duebox route list\n"
                 "  duebox route list -o json | jq '.[] | select(.paused or .suspended)'\n",
     .run = run_route_list},
    {.noun = "route",
     .verb = "show",
     .operands = "ROUTE",
     .min = 1,
     .max = 1,
     .options = TAKES(),
     .summary = "show one route",
     .examples = "  duebox route show crm.push\n",
     .run = run_route_show},
    {.noun = "route",
     .verb = "pause",
     .operands = "ROUTE",
     .min = 1,
     .max = 1,
     .options = TAKES(OPT_REASON),
     .summary = "hold a route's tasks back, for all daemons",
     .details =
         "Each daemon learns of it within a second (or a third of engine.lease, where that is shorter), and until\n"
         "then goes on. What is in flight goes on. The other routes do not notice. ROUTE is configured, or has tasks.\n"
         "A route that is paused already keeps its reason unless another one is given.\n",
     .examples = "  duebox route pause crm.push --reason 'their maintenance until 08:00'\n",
     .run = run_route_pause},
    {.noun = "route",
     .verb = "resume",
     .operands = "ROUTE",
     .min = 1,
     .max = 1,
     .options = TAKES(OPT_REASON),
     .summary = "let a paused route go on",
     .examples = "  duebox route resume crm.push\n",
     .run = run_route_resume},
    {.noun = "quarantine",
     .verb = "list",
     .operands = "",
     .options = TAKES(OPT_LIMIT),
     .summary = "list quarantined result records, the newest first",
     .details =
         "Records that could not be read or belong to no task, and those whose status counted although something\n"
         "else in them is wrong (their reason begins with the message id). 100 unless --limit says otherwise;\n"
         "0 = all.\n",
     .examples = "  duebox quarantine list\n"
                 "  duebox quarantine list -o jsonl --limit 0 | jq -r .reason | sort | uniq -c\n",
     .run = run_quarantine_list},
    {.noun = "quarantine",
     .verb = "show",
     .operands = "ID",
     .min = 1,
     .max = 1,
     .options = TAKES(),
     .summary = "show one quarantined record with its body",
     .details = "Of a body the first 4096 bytes are kept.\n",
     .examples = "  duebox quarantine show 17\n",
     .run = run_quarantine_show},
    {.noun = "quarantine",
     .verb = "replay",
     .operands = "ID...",
     .min = 1,
     .max = -1,
     .options = TAKES(),
     .summary = "apply quarantined records by today's rules",
     .details =
         "For records that came before their task was restored, or that an older duebox could not read. One that\n"
         "counts now leaves the quarantine; another stays.\n",
     .examples = "  duebox quarantine replay 17 18\n",
     .run = run_quarantine_replay},
    {.noun = "quarantine",
     .verb = "purge",
     .operands = "[ID]...",
     .max = -1,
     .options = TAKES(OPT_CREATED_BEFORE, OPT_REASON, OPT_YES),
     .summary = "forget quarantined records",
     .details =
         "By number, or all that were received before --created-before, which needs --yes. They also go by themselves\n"
         "after engine.attempts_retention.\n",
     .examples = "  duebox quarantine purge 17\n"
                 "  duebox quarantine purge --created-before -1d --yes --reason 'the consumer is repaired'\n",
     .run = run_quarantine_purge},
    {.noun = "plugin",
     .verb = "list",
     .operands = "",
     .options = TAKES(),
     .summary = "list the modules in the plugin folders",
     .examples = "  duebox plugin list\n",
     .run = run_plugin_list},
    {.noun = "plugin",
     .verb = "info",
     .operands = "MODULE",
     .min = 1,
     .max = 1,
     .options = TAKES(),
     .summary = "show a module's options",
     .details = "MODULE is a name that is looked for in the plugin folders, or a path: a word with a slash is one.\n",
     .examples = "  duebox plugin info kafka\n"
                 "  duebox plugin info kafka -o jsonl | jq -r .option\n",
     .run = run_plugin_info},
    {.noun = "config",
     .verb = "show",
     .operands = "",
     .options = TAKES(),
     .summary = "print the effective configuration, secrets masked",
     .examples = "  duebox config show\n"
                 "  duebox config show -o json | jq .routes\n",
     .run = run_config_show},
    {.noun = "completion",
     .operands = "bash",
     .min = 1,
     .max = 1,
     .options = TAKES(),
     .summary = "print a completion script for the shell",
     .examples = "  duebox completion bash > /usr/share/bash-completion/completions/duebox\n"
                 "  source <(duebox completion bash)\n",
     .run = run_completion},
    {.noun = "version",
     .operands = "",
     .options = TAKES(),
     .summary = "print the version of duebox and of its libraries",
     .examples = "  duebox --version\n"
                 "  duebox version -o json\n",
     .run = run_version},
};
const size_t command_count = ARRAY_LEN(commands);

const struct noun *noun_find(const char *name) {
  for (size_t i = 0; i < noun_count; i++)
    if (strcmp(nouns[i].name, name) == 0)
      return &nouns[i];
  return NULL;
}

const struct command *command_find(const char *noun, const char *verb) {
  for (size_t i = 0; i < command_count; i++) {
    const struct command *c = &commands[i];
    if (strcmp(c->noun, noun) == 0 && (verb ? c->verb && strcmp(c->verb, verb) == 0 : c->verb == NULL))
      return c;
  }
  return NULL;
}

bool command_takes(const struct command *command, enum option_id id) {
  const enum option_id *at = command->options;
  while (*at != OPTIONS && *at != id)
    at++;
  return *at != OPTIONS;
}

const char *command_suggest(const char *noun, const char *word) {
  const char *known[64];
  size_t count = 0;
  for (size_t i = 0; !noun && i < noun_count && count < ARRAY_LEN(known); i++)
    known[count++] = nouns[i].name;
  for (size_t i = 0; noun && i < command_count && count < ARRAY_LEN(known); i++)
    if (strcmp(commands[i].noun, noun) == 0)
      known[count++] = commands[i].verb;
  return option_suggest(word, known, count);
}
