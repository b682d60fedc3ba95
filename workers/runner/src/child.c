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

bool child_start(struct child *child, child_main *run, size_t first, void *arg) {
    int ends[2];
    pid_t parent = getpid();
    if (pipe(ends) != 0) {
        return false;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        _exit(be_child(ends[1], parent, run, first, arg));
    }
    int error = errno;
    (void)close(ends[1]);
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0) {
        (void)close(ends[0]);
        errno = error;
        return false;
    }
    child->pid = pid;
    child->fd = ends[0];
    return true;
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
    if (child->fd >= 0) {
        (void)close(child->fd);
        child->fd = -1;
    }
}
