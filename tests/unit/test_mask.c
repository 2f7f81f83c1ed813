/* SPDX-License-Identifier: MIT
 *
 * Secrets never appear in logs, in the HTTP API or in a row's last_error, although a broker, a proxy or a hook repeats
 * what it was sent, in whatever form. And what is no secret stays readable.
 */
#include "core/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct options {
  const char *url, *user, *password;
  struct duebox_map headers, printed;
};

static const struct duebox_option rows[] = {
    {.name = "url", .type = DUEBOX_OPT_STRING, .offset = offsetof(struct options, url)},
    {.name = "user", .type = DUEBOX_OPT_STRING, .offset = offsetof(struct options, user)},
    {.name = "password", .type = DUEBOX_OPT_SECRET, .offset = offsetof(struct options, password)},
    {.name = "headers", .type = DUEBOX_OPT_MAP, .flags = DUEBOX_OPT_FILE, .offset = offsetof(struct options, headers)},
    {.name = "printed", .type = DUEBOX_OPT_MAP, .offset = offsetof(struct options, printed)},
    {.name = NULL},
};

static void check_options(const struct options *options, const char *text, const char *expected) {
  size_t size = strlen(text) + 1;
  char *hidden = malloc(size); /* of that size, so that a checker sees what goes beyond */
  struct mask mask;
  assert_non_null(hidden);
  memcpy(hidden, text, size);
  mask_begin(&mask);
  mask_add(&mask, rows, options);
  mask_hide(&mask, hidden);
  assert_string_equal(hidden, expected);
  free(hidden);
}

static void check(const char *password, const char *text, const char *expected) {
  check_options(&(struct options){.user = "app", .password = password}, text, expected);
}

static void as_it_is(void **state) {
  check("hunter2sekret", "user 'app' password 'hunter2sekret' refused", "user 'app' password '***' refused");
  check("hunter2sekret", "hunter2sekrethunter2sekret", "******");
  check("hunter2sekret", "HUNTER2SEKRET", "***");
  check("p$a!", "no p$a!", "no ***");
  check("s3cret", "s3cre, s3crets3cret of app", "s3cre, ****** of app");
  check("hunter2sekret", "", "");
}

/* What a broker's log, a JSON text and a URL make of it. */
static void quoted(void **state) {
  static const char password[] = "hun\"ter\\2s&t/";
  check(password, "refused <<\"hun\\\"ter\\\\2s&t/\">>", "refused <<\"***\">>");
  check(password, "{\"password\":\"hun\\\"ter\\\\2s\\u0026t\\/\"}", "{\"password\":\"***\"}");
  check(password, "\\\"hun\\\\\\\"ter\\\\\\\\2s\\x26t/\\\"", "\\\"***\\\"");
  check(password, "amqp://app:hun%22ter%5C2s%26t%2F@h/", "amqp://app:***@h/");
  check("a b/c@d:e99x", "refused amqp://app:a%20b%2fc%40d%3Ae99x@host/", "refused amqp://app:***@host/");
  check("a b/c@d:e99x", "password=a+b%2Fc%40d%3Ae99x&", "password=***&");
  check("t\tb\b/\xf0\x9f\x94\x91\xc3\xa4", "{\"p\":\"t\\tb\\b/\\ud83d\\udd11\\u00e4\"}", "{\"p\":\"***\"}");
  check("t\tb\b/\xf0\x9f\x94\x91\xc3\xa4", "\\\\tt\\\\tb\\\\b\\\\/\\\\ud83d\\\\udd11\\\\u00e4", "\\\\t***");
  check("a&b<\"c\"", "a&amp;b&lt;&quot;c&#34; a&#38;b&#x3C;\"c\"", "*** ***");
  check("first-word!second_word", "&#39;first-word&#x21;second_word&#39;", "&#39;***&#39;");
}

static void cut(void **state) {
  check("hunter2sekretLongPassword", "xxxhunter2sekretLongP; check user", "xxx***; check user");
  check("hunter2sekretLongPassword", "xxxhunte; check user", "xxx***; check user");
  check("hunter2sekretLongPassword", "xxxhunte...", "xxx***...");
  check("hunter2sekretLongPassword", "xxxhunt", "xxx***");
  check("hunter2sekretLongPassword", "xxx%68unt%65", "xxx***");
  check("hunter2sekretLongPassword", "the hunter comes", "the hunter comes");
}

/* The end of it, as of one that was cut in front. */
static void beheaded(void **state) {
  check("hunter2-Pa55phrase", "sorry, you sent <er2-Pa55phrase> end", "sorry, you sent <***> end");
  check("hunter2-Pa55phrase", "unter2-Pa55phrase, Pa55phrase; R2-PA55PHRASE!", "***, Pa55phrase; ***!");
  check("hunter2-Pa55phrase", "er2-Pa55phrasunter2-Pa55phrase", "er2-Pa55phras***");
  check("hunter2-Pa55phrase", "r2-Pa55phrase", "***");
  check("hunter2-Pa55phrase", "2-Pa55phrase, -Pa55phrase", "***, -Pa55phrase");
  check("hunter2-Pa55phrase", "%65r%32-Pa55phrase \\u0072\\u0032\\u002dPa55phras&#101; +er2-Pa\r\n 55phrase",
        "*** *** +***");
  check("Bearer hunter2-Pa55phrase", "hunter2-Pa55phrase, nter2-Pa55phrase", "***, ***");
  check("p:hunter2/Pa55phrase4567890", "ter2/Pa55phrase4567890", "***"); /* and not its last word alone */
  check("hunter2-Pa55phrase", "dGVyMi1QYTU1cGhyYXNl, AB1bnRlcjItUGE1NXBocmFzZQ==!", "***, AB***!");
  check("hunter2sekret", "inter2sekret", "inter2sekret");
}

/* Who repeats it wraps it at a width; and the lines' ends are cleaned or escaped before it gets here. */
static void wrapped(void **state) {
  static const char key[] = "eyJhbGciOiJIUzI1.nr-9tRjF0vQ";
  check(key, "Bearer eyJhbGciOi\nJIUzI1.nr-\r\n\t9tRjF0vQ\n", "Bearer ***\n");
  check(key, "eyJhbGciOi JIUzI1.nr-9  tRjF0vQ is wrong", "*** is wrong");
  check(key, "eyJhbGciOi\\nJIUzI1.\\nnr-9\\r\\ntRjF0vQ\\n", "***\\n");
  check(key, "eyJhbGciOi\\\\nJIUzI1.\\u000anr-9%0D%0AtRjF\\x0a0v&#10;&#x0d;Q!", "***!");
  check(key,
        "eyJhbGciOi?\nJIUzI1.\xe2\x80\x8bnr-9tRj\x7f"
        "F0vQ",
        "***");
  check(key, "e y J h b G c i O i J I U z I 1 . n r - 9 t R j F 0 v Q", "***");
  check(key, "eyJhbGciOi\nJIUzI...", "***...");
  check("hun\\name\\ter2sekret", "hun\\name\\ter2 sekret hun\\\\name\\\\ter2sekret hun\\\n name\\ter2sekret",
        "*** *** ***");
  check("n nn\\nn\\n nn\\nnr", "n nn\\nn\\n nn\\nnr!", "***!");
  check("a b+c d?e f=g h", "a b+c d?e f=g h, a\n b+\nc d?\ne f=g h", "***, ***");
  check("0123456789abcdef0123456789abcdef0123456789abcdef",
        "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0\r\nNTY3ODlhYmNkZWYwMTIzNDU2Nzg5\r\nYWJjZGVm\r\n", "***\r\n");
  check("hunter2sekret", "hunter is 2 sekret, hunter; hunter 2se...", "hunter is 2 sekret, ***; hunter 2se...");
  check("s3cret-word", "s3cret- word", "s3cret- word");
}

/* As a mail has it that somebody bounces: lines that go on, and characters by their number. */
static void in_quoted_printable(void **state) {
  static const char key[] = "eyJhbGciOiJIUzI1.nr-9tRjF0vQ";
  check(key, "you sent eyJhbGciOiJIU=\r\nzI1.nr-9tRj=\n  F0vQ=\r\n!", "you sent ***=\r\n!");
  check(key, "eyJhbGciOiJIU=?\nzI1.nr-9=??tRjF0vQ", "***"); /* as it is when what controls a screen is taken out */
  check(key, "{\"said\":\"eyJhbGciOiJIU=\\r\\nzI1.nr=2D9tRjF0vQ\"}", "{\"said\":\"***\"}");
  check(key, "see=\r\nI1.nr-9tRjF=\r\n0vQ.", "see=\r\n***.");
  check("s3cret", "no s3c=\r\nret, no s3=63ret, s3c=ret", "no ***, no ***, s3c=ret");
  check("p\xc3\xa4ss=w0rd", "p=C3=A4ss=3Dw0rd", "***");
  check("hunter2sekret", "68756e7465723273656b726574, 00 68756E7465723273656B726574", "***, 00 ***"); /* a dump */
}

/* As certificates, dumps and programs write bytes. */
static void in_hexadecimal_and_in_octal(void **state) {
  check("Kp9+/x-Zq73&", "near: 4b:70:39:2b:2f:78:2d:5a:71:37:33:26 end", "near: *** end");
  check("Kp9+/x-Zq73&", "4B-70-39-2B-2F-78-2D-5A-71-37-33-26", "***");
  check("Kp9+/x-Zq73&", "{0x4b, 0x70, 0x39, 0x2b, 0x2f, 0x78, 0x2d, 0x5A, 0x71, 0x37, 0x33, 0x26}", "{0x***}");
  check("Kp9+/x-Zq73&", "4b 70 39 2b 2f 78\n2d 5a 71 37 33 26", "***");
  check("Kp9+/x-Zq73&", "4b703 92b2f:782d:5a71:3733:26", "***");
  check("Kp9+/x-Zq73&", "39:2b:2f:78:2d:5a:71:37:33:26, 4b:70:39:2b:2f:78...", "***, ***...");
  check("Kp9+/x-Zq73&", "at 00:4b:70:3a, 0x4b", "at 00:4b:70:3a, 0x4b");
  check("s3cret", "73:33:63:72:65:74 s3c", "*** s3c");
  check("Kp9+/x-Zq73&", "\\113\\160\\071+/x-\\132q73&", "***");
  check("Kp9+/x-Zq73&", "\\u{4b}\\u{70}\\u{0039}\\u{2B}/x-Zq73&, \\u{zz}", "***, \\u{zz}");
  check("K\xf0\x9f\x94\x91p9+x", "K\\u{1F511}p9+x", "***");
}

/* Whatever is in front of it: "\0app\0hunter2sekret", "\0me..", "app:.." */
static void in_base64(void **state) {
  check("hunter2sekret", "AGFwcABodW50ZXIyc2VrcmV0", "AGFwcAB***"); /* before the secret there is the user */
  check("hunter2sekret", "AG1lAGh1bnRlcjJzZWtyZXQ= is wrong", "AG1lAG*** is wrong");
  check("hunter2sekret", "bWUxOmh1bnRlcjJzZWtyZXQ=", "bWUxOm***");
  check("hunter2sekret", "aHVudGVyMnNla3JldA==", "***");
  check("a1!Z", "AGFwcABhMSFa YWExIVo= YWFhMSFa YTEhWg==", "AGFwcAB*** YW*** YWF*** ***");
  check("\xff\xfe\xfd\xfb\xfa\xf9", "__79-_r5 //79+/r5", "*** ***"); /* as URLs have it, too */
}

static void credentials_in_other_forms(void **state) {
  check("Bearer aaa.Zm9vYmFyOjEyMzQ1Ng==", "'Authorization': 'Bearer aaa.Zm9vYmFyOjEyMzQ1Ng=='",
        "'Authorization': 'Bearer ***'");
  check("Basic ZHVlYm94OnMzY3JldFBhc3N3MHJk", "bad: duebox:s3cretPassw0rd, s3cretPassw0rd", "bad: ***, ***");
  check("Basic ZHVlYm94OnMzY3JldFBhc3N3MHJk", "ZHVlYm94OnMzY3JldFBhc3N3MHJk", "***");
  check("proxyuser:Pr0xyS3cretPw", "no proxyuser:Pr0xyS3cretPw (cHJveHl1c2VyOlByMHh5UzNjcmV0UHc=)", "no *** (***)");
  check("proxyuser:Pr0xyS3cretPw", "user proxyuser, password Pr0xyS3cretPw", "user ***, password ***");
  check("px:s%3Acret%00", "no s:cret", "no ***"); /* reads nothing behind the text */
  check("px:s%3Acret%2B%5E", "px:s:cret+^ cHg6czpjcmV0K14= s%3Acret%2B%5E", "*** *** ***");
}

static void in_a_url_and_in_a_map(void **state) {
  const struct duebox_pair header = {"X-Api-Key", "swordfish"};
  struct options o = {.url = "amqp://app:p%40ssw%C3%B6rd9@h:5672/v", .headers = {.items = &header, .count = 1}};
  check_options(&o, "app, p@ssw\xc3\xb6rd9, p%40ssw%C3%B6rd9, swordfish", "app, ***, ***, ***");
  o = (struct options){.printed = {.items = &header, .count = 1}};
  check_options(&o, "swordfish", "swordfish");
}

/* Over a word of many messages "***" tells the password to whoever can complete a sentence. */
static void a_word_of_many_messages(void **state) {
  check("task", "no such task: 3 tasks in outbox_task, multitask", "no such task: 3 tasks in outbox_task, multitask");
  check("Task", "user 'app' password 'task' refused", "user 'app' password '***' refused");
  check("task", "amqp://app:task@h/ {\"password\":\"task\"} password=task, <<\"task\">>",
        "amqp://app:***@h/ {\"password\":\"***\"} password=***, <<\"***\">>");
  check("task", "Basic YXBwOnRhc2s=", "Basic YXBwOn***");
  check("app:task", "app:task is no task", "*** is no task");
  check("correct-task battery", "no task here, correct-task battery", "no task here, ***");
  check("taskforce", "no taskforce here", "no *** here"); /* another word */
}

/* Whoever answers chooses the text, and a thread that others wait for looks through it. What would take thousands of
 * times as long as an ordinary answer is hidden whole; an ordinary one that repeats a long secret is not. */
static void a_text_made_to_take_long(void **state) {
  enum { TOKEN = 1000, TEXT = 4095, END = 12 };
  static const char *const parts[] = {"%41", "=41", "\\u0041", "&#65;", "a\\n"};
  char token[TOKEN + 1], text[TEXT + 1];
  for (size_t i = 0; i < TOKEN; i++)
    token[i] = "AbC4eFg8iJ"[i * i % 97 % 10];
  token[TOKEN] = '\0';
  snprintf(text, sizeof(text), "<p>\"You\" sent</p> {\"authorization\":\"Bearer %s\"}%2000s again %s", token, "",
           token + 400);
  char expected[TEXT + 1];
  snprintf(expected, sizeof(expected), "<p>\"You\" sent</p> {\"authorization\":\"Bearer ***\"}%2000s again ***", "");
  check(token, text, expected);
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    size_t len = 0;
    while (len + strlen(parts[i]) <= TEXT - END)
      len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", parts[i]);
    snprintf(text + len, sizeof(text) - len, "%s", token + TOKEN - END);
    check(token, text, "***");
  }
}

/* An endpoint that repeats a long token (a JWT, say) among text of its own: the token is hidden, and the rest is there
 * to be read, not hidden as a text that was made to take long. */
static void a_long_token_among_other_text(void **state) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  static const char *const others[] = {
      "upstream connect error or disconnect/reset before headers. reset reason: connection failure, ",
      "{\\\"level\\\": \\\"error\\\", \\\"path\\\": \\\"\\\\/orders\\\\/new?a=1\\u0026b=2\\\", \\\"code\\\": 500},\\n "
      " "};
  static const size_t lengths[] = {300, 1000, 2000, 3000, 4000};
  char secret[4100], text[4096], expected[4096];
  for (size_t i = 0; i < 10; i++) {
    const char *other = others[i % 2], *token = secret + strlen("Bearer ");
    size_t len = lengths[i / 2], room = sizeof text - len - 40, to = 0;
    memcpy(secret, "Bearer ", strlen("Bearer "));
    for (size_t k = 0; k < len; k++)
      secret[strlen("Bearer ") + k] = k == 36 || k + 43 == len ? '.' : digits[((k + i) * 2654435761u >> 16) % 64];
    secret[strlen("Bearer ") + len] = '\0';
    for (size_t n = strlen(other); to + n < room; to += n)
      memcpy(text + to, other, n);
    memcpy(expected, text, to);
    snprintf(text + to, sizeof text - to, "got <%s> from you", token);
    snprintf(expected + to, sizeof expected - to, "got <***> from you");
    check(secret, text, expected);
  }
}

static void what_is_no_secret(void **state) {
  check("app", "the user app", "the user app");
  check_options(&(struct options){.user = "guest", .password = "guest"}, "user 'guest'", "user 'guest'");
  check_options(&(struct options){.url = "amqp://guest:guest@h/"}, "user 'guest'", "user 'guest'");
  check_options(&(struct options){.url = "amqp://guest@h/"}, "user 'guest'", "user 'guest'");
  check("a", "access refused", "access refused");
  check("", "access refused", "access refused");
  check(NULL, "access refused", "access refused");
  struct mask mask;
  char text[] = "access refused";
  mask_begin(&mask);
  mask_add(&mask, NULL, NULL);
  mask_add(&mask, rows, NULL);
  mask_hide(&mask, text);
  assert_string_equal(text, "access refused");
}

/* More words than there is room for: the text may hold any of them. A long secret alone takes no harm. */
static void too_much_to_look_for(void **state) {
  char many[4096] = "", longer[8000];
  for (size_t i = 0; i < 300; i++)
    snprintf(many + i * 8, sizeof many - i * 8, "w%06zu.", i);
  check(many, "anything", "***");
  check(many, "ab", "**");
  for (size_t i = 0; i < sizeof longer - 1; i++)
    longer[i] = (char)('a' + (i * 2654435761u >> 16) % 26);
  longer[sizeof longer - 1] = '\0';
  snprintf(many, sizeof many, "no %.13s!", longer);
  check(longer, many, "no ***!");
  check(longer, "anything", "anything");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_it_is),
      cmocka_unit_test(quoted),
      cmocka_unit_test(cut),
      cmocka_unit_test(beheaded),
      cmocka_unit_test(wrapped),
      cmocka_unit_test(in_quoted_printable),
      cmocka_unit_test(in_hexadecimal_and_in_octal),
      cmocka_unit_test(in_base64),
      cmocka_unit_test(credentials_in_other_forms),
      cmocka_unit_test(in_a_url_and_in_a_map),
      cmocka_unit_test(a_word_of_many_messages),
      cmocka_unit_test(a_text_made_to_take_long),
      cmocka_unit_test(a_long_token_among_other_text),
      cmocka_unit_test(what_is_no_secret),
      cmocka_unit_test(too_much_to_look_for),
  };
  return cmocka_run_group_tests_name("mask", tests, NULL, NULL);
}
