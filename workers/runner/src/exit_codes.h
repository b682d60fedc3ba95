/* Exit codes of the program (docs/wire-formats.md). */
#ifndef TILEFARM_EXIT_CODES_H
#define TILEFARM_EXIT_CODES_H

#define EXIT_FINAL 0     /* a final record was written */
#define EXIT_NO_READER 1 /* stdout was closed, or a signal came: no final record */
#define EXIT_USAGE 2     /* job file, arguments or environment */
#define EXIT_NO_DRIVER 3

#endif
