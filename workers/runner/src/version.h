/* The version that the result stream names. */
#ifndef TILEFARM_VERSION_H
#define TILEFARM_VERSION_H

#define RUNNER_VERSION "1.0.0"

#endif
