/* SPDX-License-Identifier: Apache-2.0 */
#include "top/script.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/array.h"
#include "util/cleanup.h"

/* Lists of options, each between blanks. A version may follow the name of a program. */
static const struct interpreter {
	const char *name;
	const char *skipped; /* the next word belongs to them */
	const char *named;   /* the next word is the name */
	const char *code;    /* the next word is a program */
} interpreters[] = {
	{ "python", " -W -X -Q ", " -m ", " -c " },
	{ "pypy", " -W -X ", " -m ", " -c " },
	{ "perl", " -I ", "", " -e -E " },
	{ "ruby", " -I -r ", "", " -e " },
	{ "node", " -r --require --import --loader ", "", " -e -p --eval --print " },
	{ "nodejs", " -r --require --import --loader ", "", " -e -p --eval --print " },
	{ "php", " -d -c -z ", " -f ", " -r " },
	{ "java", " -cp -classpath --class-path --module-path --add-modules ", " -jar --module ", "" },
	{ "sh", " -o ", "", " -c " },
	{ "dash", " -o ", "", " -c " },
	{ "bash", " -o -O --rcfile --init-file ", "", " -c " },
	{ "zsh", " -o ", "", " -c " },
	{ "ksh", " -o ", "", " -c " },
	{ "lua", " -l ", "", " -e " },
	{ "tclsh", "", "", "" },
	{ "Rscript", "", "", " -e " },
};

static const struct interpreter *find_interpreter(const char *executable)
{
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
		size_t length = strlen(interpreters[i].name);
		const char *version = executable + length;

		if (!strncmp(executable, interpreters[i].name, length) &&
		    version[strspn(version, "0123456789.-")] == '\0')
			return &interpreters[i];
	}
	return NULL;
}

/* Short options may be joined: the last one, "-c" of "-lc", takes the next word. */
static bool is_among(const char *options, const char *word)
{
	size_t length = strlen(word);
	bool is_joined = length > 2 && word[1] != '-' && !strpbrk(word, "=:/.");
	const char last[] = { ' ', '-', length ? word[length - 1] : ' ', ' ', '\0' };
	char searched[32];

	if (is_joined && strstr(options, last))
		return true;
	return snprintf(searched, sizeof(searched), " %s ", word) < (int)sizeof(searched) &&
	       strstr(options, searched);
}

const char *script_find(const char *executable, const char *words, size_t size)
{
	const struct interpreter *interpreter = find_interpreter(executable);
	const char *end = words + size, *slash;
	bool is_skipped = true, is_named = false; /* the first word is the interpreter */

	for (const char *word = words; interpreter && word < end; word += strlen(word) + 1) {
		if (!is_skipped && (is_named || *word != '-')) {
			slash = strrchr(word, '/');
			if (slash && slash[1])
				return slash + 1;
			return *word ? word : NULL;
		}
		if (!is_skipped && is_among(interpreter->code, word))
			return NULL;
		is_named = !is_skipped && is_among(interpreter->named, word);
		is_skipped = !is_skipped && is_among(interpreter->skipped, word);
	}
	return NULL;
}

const char *script_of(const char *executable, pid_t pid, char *buffer, size_t size)
{
	_cleanup_(closep) int fd = -1;
	char path[32];
	ssize_t n;

	if (!find_interpreter(executable))
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buffer, size - 1);
	if (n <= 0)
		return NULL;
	buffer[n] = '\0'; /* a long command line is cut */
	return script_find(executable, buffer, (size_t)n);
}
