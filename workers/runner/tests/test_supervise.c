/* The parent against children that crash, hang, flood, lie or never find a driver. No GPU, no
 * backend. */
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"
#include "job_folder.h"
#include "record.h"

static const struct job *job;
static struct stage_board *board;

static void say(int fd, const char *text) {
    if (!write_all(fd, text, strlen(text))) {
        _exit(99);
    }
}

static void say_start(int fd, size_t index) {
    struct json j = {0};
    record_start(&j, &job->cases[index], index);
    json_newline(&j);
    say(fd, j.data);
    json_free(&j);
}

static void say_end(int fd, size_t index) {
    struct json j = {0};
    record_end(&j, &job->cases[index], index, "ok");
    json_close(&j, '}');
    json_newline(&j);
    say(fd, j.data);
    json_free(&j);
}

static _Noreturn void sleep_for_ever(void) {
    for (;;) {
        (void)pause();
    }
}

static void flood(int fd, const char *text) {
    for (;;) {
        say(fd, text);
    }
}

/* The case's id says what its child does. */
static int misbehave(int fd, size_t first, void *arg) {
    (void)arg;
    (void)signal(SIGPIPE, SIG_DFL);
    say(fd, "{\"type\":\"driver\",\"api\":\"fake\"}\n");
    for (size_t i = first; i < job->case_count; i++) {
        const char *id = job->cases[i].id;
        if (strcmp(id, "garbage-before") == 0) {
            say(fd, "\x01\x02\n");
        }
        if (strcmp(id, "die-before") == 0) {
            return 5;
        }
        say_start(fd, i);
        atomic_store(&board->stage, STAGE_DISPATCH);
        if (strcmp(id, "abort") == 0) {
            for (int line = 0; line < 300; line++) {
                (void)fprintf(stderr, "assertion %d failed: gpu != NULL\n", line);
            }
            (void)signal(SIGABRT, SIG_DFL);
            abort();
        } else if (strcmp(id, "exit") == 0) {
            return 0;
        } else if (strcmp(id, "memory") == 0) {
            return CHILD_BROKEN;
        } else if (strcmp(id, "hang") == 0) {
            sleep_for_ever();
        } else if (strcmp(id, "deaf-hang") == 0) {
            (void)close(fd);
            sleep_for_ever();
        } else if (strcmp(id, "flood") == 0) {
            flood(fd, "{\"type\":\"beat\"}\n");
        } else if (strcmp(id, "endless-line") == 0) {
            flood(fd, "{\"type\":\"end\",");
        } else if (strcmp(id, "half-line") == 0) {
            say(fd, "{\"type\":\"end\"");
            return 0;
        } else if (strcmp(id, "wrong-index") == 0) {
            say_end(fd, i == 0 ? 1 : i - 1);
            sleep_for_ever();
        } else if (strcmp(id, "second-start") == 0) {
            say_start(fd, i);
            sleep_for_ever();
        }
        say_end(fd, i);
    }
    return 0;
}

static const char *run(struct job_folder *f, child_main *child, bool *finished) {
    struct job *loaded = folder_load(f);
    const struct work work = {.run = child, .board = board};
    job = loaded;
    const char *text = supervised(loaded, &work, finished);
    job_free(loaded);
    folder_close(f);
    return text;
}

static void every_child_gets_its_record(void) {
    static const struct {
        const char *id, *record;
    } cases[] = {
        {"fine-1", "\"status\":\"ok\""},
        {"abort", "\"status\":\"crashed\",\"stage\":\"dispatch\",\"signal\":6,\"log\":\""},
        {"exit", "\"status\":\"crashed\",\"stage\":\"dispatch\",\"exit_code\":0}"},
        {"memory", "\"status\":\"error\",\"stage\":\"dispatch\",\"reason\":"},
        {"hang", "\"status\":\"hung\",\"stage\":\"dispatch\",\"deadline_ms\":1000}"},
        {"deaf-hang", "\"status\":\"hung\",\"stage\":\"dispatch\",\"deadline_ms\":1000}"},
        {"flood", "\"status\":\"crashed\",\"stage\":\"dispatch\",\"reason\":"},
        {"endless-line", "\"status\":\"crashed\""},
        {"half-line", "\"status\":\"crashed\",\"stage\":\"dispatch\",\"exit_code\":0}"},
        {"fine-2", "\"status\":\"ok\""},
        {"wrong-index", "\"status\":\"crashed\""},
        {"second-start", "\"status\":\"crashed\""},
        {"garbage-before", "\"status\":\"error\",\"stage\":\"context\""},
        {"die-before",
         "\"status\":\"error\",\"stage\":\"context\",\"reason\":\"the process died (exit "
         "code 5) while it opened the driver\"}"},
        {"fine-3", "\"status\":\"ok\""},
    };
    struct job_folder f;
    bool finished = false;
    folder_open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        folder_case(&f, cases[i].id, "none", "");
    }
    const char *text = run(&f, misbehave, &finished);
    CHECK(finished);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_HAS(end_of(text, cases[i].id), cases[i].record);
    }
    CHECK_HAS(end_of(text, "abort"),
              "assertion 299 failed: gpu != NULL\\u000a"); /* the last of it */
    CHECK_LACKS(end_of(text, "abort"), "assertion 1 failed");
    CHECK_LACKS(end_of(text, "exit"), "log"); /* another process */
    CHECK_HAS(text, "{\"type\":\"beat\",\"uptime_ms\":");
    CHECK_LACKS(text, "{\"type\":\"beat\"}"); /* the flood's */
}

static unsigned *tries; /* shared with the children */

static int no_driver(int fd, size_t first, void *arg) {
    (void)arg;
    (*tries)++;
    if (first == 1) {
        return 5; /* died without a word */
    }
    struct json j = {0};
    record_end(&j, &job->cases[first], first, "error");
    json_close(&j, '}');
    json_newline(&j);
    say_start(fd, first);
    say(fd, j.data);
    json_free(&j);
    return CHILD_NO_DEVICE;
}

static void no_driver_three_times_ends_the_job(void) {
    struct job_folder f;
    bool finished = false;
    folder_open(&f);
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++) {
        folder_case(&f, ids[i], "none", "");
    }
    *tries = 0;
    const char *text = run(&f, no_driver, &finished);
    CHECK(finished && *tries == 3);
    CHECK_HAS(end_of(text, "e"),
              "\"status\":\"error\",\"stage\":\"context\",\"reason\":\"not tried");
    CHECK_HAS(text, "{\"type\":\"final\",\"cases\":5,");
}

static int closes_badly(int fd, size_t first, void *arg) {
    (void)arg;
    for (size_t i = first; i < job->case_count; i++) {
        say_start(fd, i);
        say_end(fd, i);
    }
    return CHILD_INVALID;
}

/* All cases have their records by then; only the missing final record can tell. */
static void a_complaint_at_closing_leaves_no_final_record(void) {
    struct job_folder f;
    bool finished = true;
    folder_open(&f);
    folder_case(&f, "a", "none", "");
    folder_case(&f, "b", "none", "");
    const char *text = run(&f, closes_badly, &finished);
    CHECK(!finished);
    CHECK_HAS(end_of(text, "b"), "\"status\":\"ok\"");
    CHECK(strstr(text, "\"final\"") == NULL);
}

static int hang_in_the_driver(int fd, size_t first, void *arg) {
    (void)fd;
    (void)first;
    (void)arg;
    sleep_for_ever();
}

static void a_hanging_driver_is_no_kernels_fault(void) {
    struct job_folder f;
    bool finished = false;
    folder_open(&f);
    folder_case(&f, "a", "none", "");
    CHECK_HAS(
        end_of(run(&f, hang_in_the_driver, &finished), "a"),
        "\"status\":\"error\",\"stage\":\"context\",\"reason\":\"opening the driver took longer");
    CHECK(finished);
}

static int linger(int fd, size_t first, void *arg) {
    (void)misbehave(fd, first, arg);
    sleep_for_ever();
}

/* A driver that hangs when it is closed costs a few seconds and no case. */
static void a_lingering_child_is_ended(void) {
    struct job_folder f;
    bool finished = false;
    folder_open(&f);
    folder_case(&f, "fine", "none", "");
    int64_t start = clock_ms();
    CHECK_HAS(end_of(run(&f, linger, &finished), "fine"), "\"status\":\"ok\"");
    CHECK(finished && clock_ms() - start < 20000);
}

static void a_lost_reader_ends_the_child(void) {
    struct job_folder f;
    int ends[2];
    folder_open(&f);
    folder_case(&f, "hang", "none", "");
    struct job *loaded = folder_load(&f);
    struct stream out;
    const struct work work = {.run = misbehave, .board = board};
    job = loaded;
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    stream_open(&out, ends[1]);
    int64_t start = clock_ms();
    CHECK(!supervise(loaded, &out, &work)); /* the first record it writes tells */
    CHECK(out.broken && clock_ms() - start < 900);
    CHECK(close(ends[1]) == 0);
    job_free(loaded);
    folder_close(&f);
}

int main(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    board = stage_board_new();
    tries = (unsigned *)stage_board_new();
    CHECK(board != NULL && tries != NULL);
    every_child_gets_its_record();
    no_driver_three_times_ends_the_job();
    a_complaint_at_closing_leaves_no_final_record();
    a_hanging_driver_is_no_kernels_fault();
    a_lingering_child_is_ended();
    a_lost_reader_ends_the_child();
    return 0;
}
