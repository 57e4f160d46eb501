/*
 * pause holds the namespaces of a pod.
 *
 * It is PID 1 there: it waits for signals, reaps children that were left to
 * it, and ends on the first polite request.
 */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t awaited;
	int signal_number;

	sigemptyset(&awaited);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGINT);
	sigaddset(&awaited, SIGCHLD);
	/* Blocked signals stay pending until sigwait takes them: none is lost. */
	if (sigprocmask(SIG_BLOCK, &awaited, NULL) != 0)
		return EXIT_FAILURE;

	for (;;) {
		if (sigwait(&awaited, &signal_number) != 0)
			return EXIT_FAILURE;
		if (signal_number != SIGCHLD)
			return EXIT_SUCCESS;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
