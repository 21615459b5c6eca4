/*-------------------------------------------------------------------------
 *
 * slow_resolver.c
 *		Name servers that do not answer, for tests: to be preloaded into a server.
 *
 * A name that ends with ".example" has no address.  As long as there is a file, SLOW_RESOLVER,
 * no answer comes.  A process that asks makes another file, SLOW_RESOLVER.log, before.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAP_US		10000

static int
answer_slowly(void)
{
	const char *file = getenv("SLOW_RESOLVER");
	char		log[4096];

	if (file == NULL)
		return EAI_NONAME;
	snprintf(log, sizeof(log), "%s.log", file);
	close(open(log, O_WRONLY | O_CREAT, 0600));
	while (access(file, F_OK) == 0)
		usleep(NAP_US);
	return EAI_NONAME;
}

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	static int	(*libc) (const char *, const char *, const struct addrinfo *, struct addrinfo **);

	if (node != NULL && strstr(node, ".example") != NULL)
		return answer_slowly();
	if (libc == NULL)
		*(void **) &libc = dlsym(RTLD_NEXT, "getaddrinfo");
	return libc(node, service, hints, result);
}
