/* Starting and ending child processes; see child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define KILL_PATIENCE_MS 5000

static int be_child(int fd, pid_t parent, child_main *run, size_t first, void *arg) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        return CHILD_BROKEN; /* the parent died before prctl */
    }
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return CHILD_BROKEN;
    }
    (void)close(null);
    return run(fd, first, arg);
}

/* Both ends stay out of programs that a driver starts; ours does not block. */
static bool open_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static void close_end(int *end) {
    if (*end >= 0) {
        (void)close(*end);
        *end = -1;
    }
}

static void close_ends(int ends[2]) {
    close_end(&ends[0]);
    close_end(&ends[1]);
}

static bool start(struct child *child, int records[2], int words[2], child_main *run, size_t first,
                  void *arg) {
    pid_t parent = getpid();
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close_end(&records[0]);
        bool deaf = words[1] >= 0 && dup2(words[1], STDERR_FILENO) < 0;
        close_ends(words);
        _exit(deaf ? CHILD_BROKEN : be_child(records[1], parent, run, first, arg));
    }
    child->pid = pid < 0 ? 0 : pid;
    return pid > 0;
}

static bool start_with(struct child *child, int records[2], int words[2], child_main *run,
                       size_t first, void *arg) {
    bool good = start(child, records, words, run, first, arg);
    int error = errno;
    close_end(&records[1]);
    close_end(&words[1]);
    if (!good) {
        close_ends(records);
        close_ends(words);
    }
    child->fd = records[0];
    child->heard = words[0];
    errno = error;
    return good;
}

bool child_start(struct child *child, child_main *run, size_t first, void *arg) {
    int records[2] = {-1, -1}, words[2] = {-1, -1};
    if (!open_pipe(records)) {
        close_ends(records);
        return false;
    }
    return start_with(child, records, words, run, first, arg);
}

bool child_start_heard(struct child *child, child_main *run, size_t first, void *arg) {
    int records[2] = {-1, -1}, words[2] = {-1, -1};
    if (!open_pipe(records) || !open_pipe(words)) {
        close_ends(records);
        close_ends(words);
        return false;
    }
    return start_with(child, records, words, run, first, arg);
}

bool child_reap(struct child *child, int patience_ms, int *status) {
    int64_t until = clock_ms() + patience_ms;
    while (child->pid != 0) {
        pid_t done = waitpid(child->pid, status, WNOHANG);
        if (done == child->pid) {
            child->pid = 0;
            return true;
        }
        if ((done < 0 && errno != EINTR) || clock_ms() >= until) {
            return false;
        }
        const struct timespec nap = {.tv_nsec = 1000000};
        (void)nanosleep(&nap, NULL);
    }
    return false;
}

void child_kill(struct child *child) {
    int status = 0;
    if (child->pid != 0) {
        (void)kill(child->pid, SIGKILL);
        (void)child_reap(child, KILL_PATIENCE_MS, &status);
        child->pid = 0;
    }
}

void child_close(struct child *child) {
    close_end(&child->fd);
    close_end(&child->heard);
}
