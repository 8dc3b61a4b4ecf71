/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of the size and Ctrl-Z come as signals through the loop: ncurses ignores the second
 * while it draws. Messages would tear the picture, whoever writes them, so standard error is a file
 * in memory meanwhile.
 */
#define NCURSES_WIDECHAR 1
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "view/grid.h"

#include <term.h> /* last: it has macros called columns and lines */

#define MESSAGES_BYTES (64 << 10) /* at most, that are kept */
#define MESSAGE_BYTES  1024	  /* of the last one, that can be seen */
#define HEAT_PAIRS     16	  /* the first of 256 */

static const struct {
	const char *sgr;
	attr_t plain, coloured;
	short colour; /* 0: that of the terminal */
} styles[] = {
	{ SGR_END, 0, 0, 0 },
	{ SGR_TITLE, A_BOLD, A_BOLD, 0 },
	{ SGR_FAINT, A_DIM, A_DIM, 0 },
	{ SGR_HEADING, A_UNDERLINE, A_UNDERLINE, 0 },
	{ SGR_HIGH, A_BOLD, 0, COLOR_YELLOW },
	{ SGR_ALARM, A_BOLD | A_UNDERLINE, A_BOLD, COLOR_RED },
	{ SGR_CHOSEN, A_BOLD, A_BOLD, COLOR_CYAN },
};

static SCREEN *screen;
static bool has_colour;
static int messages_fd = -1, stderr_fd = -1;

bool screen_is_possible(void)
{
	int known;
	bool can_move;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    setupterm(NULL, STDOUT_FILENO, &known) != OK)
		return false;
	can_move = tigetstr("cup") > (char *)0;
	del_curterm(cur_term);
	return can_move;
}

static void begin_messages(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	messages_fd = memfd_create("messages", MFD_CLOEXEC);
	stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	/* Each is written after those before, also after some have been taken out. */
	if (messages_fd < 0 || stderr_fd < 0 || fcntl(messages_fd, F_SETFL, O_APPEND) ||
	    dup2(messages_fd, STDERR_FILENO) < 0)
		closep(&messages_fd);
}

/* The last of them, as bytes without a NUL. */
static size_t read_messages(char *to, size_t size)
{
	struct stat status;
	off_t start;
	ssize_t n;

	if (messages_fd < 0 || fstat(messages_fd, &status))
		return 0;
	start = status.st_size > (off_t)size ? status.st_size - (off_t)size : 0;
	n = pread(messages_fd, to, size, start);
	return n > 0 ? (size_t)n : 0;
}

const char *screen_message(void)
{
	static char text[MESSAGE_BYTES];
	size_t n = read_messages(text, sizeof(text) - 1);
	const char *last;

	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	last = strrchr(text, '\n');
	return last ? last + 1 : text;
}

static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	sigprocmask(how, &set, NULL);
}

int screen_begin(void)
{
	const char *no_color = getenv("NO_COLOR");

	if (screen)
		return 0;
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -ENOTTY;
	block_signals(SIG_BLOCK);
	begin_messages();
	has_colour = !(no_color && *no_color) && has_colors() && start_color() == OK &&
		     use_default_colors() == OK;
	for (short i = 0; i < (short)ARRAY_SIZE(styles) && has_colour; i++)
		if (styles[i].colour)
			init_pair((short)(i + 1), styles[i].colour, -1);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	intrflush(stdscr, FALSE);
	set_escdelay(25);
	curs_set(0);
	return 0;
}

void screen_end(void)
{
	static char messages[MESSAGES_BYTES];
	size_t n;

	if (!screen)
		return;
	erase(); /* there may be no other screen to return to */
	refresh();
	endwin();
	delscreen(screen);
	screen = NULL;
	n = read_messages(messages, sizeof(messages));
	if (messages_fd >= 0)
		(void)dup2(stderr_fd, STDERR_FILENO);
	(void)!write(STDERR_FILENO, messages, n);
	closep(&messages_fd);
	closep(&stderr_fd);
	messages_fd = stderr_fd = -1;
}

void screen_resize(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
}

void screen_suspend(void)
{
	signal(SIGTSTP, SIG_DFL);
	endwin();
	raise(SIGTSTP);
	block_signals(SIG_UNBLOCK); /* until SIGCONT */
	block_signals(SIG_BLOCK);
	def_shell_mode(); /* the shell may have changed it */
	screen_resize();
}

unsigned int screen_lines(void)
{
	return (unsigned int)getmaxy(stdscr);
}

unsigned int screen_columns(void)
{
	return (unsigned int)getmaxx(stdscr);
}

bool screen_has_colours(void)
{
	return has_colour && COLORS >= 256;
}

/* Returns the bytes of the SGR sequence that text begins with, or 0. */
static size_t set_style(const char *text)
{
	unsigned int colour, n;

	for (size_t i = 0; i < ARRAY_SIZE(styles); i++) {
		if (strncmp(text, styles[i].sgr, strlen(styles[i].sgr)))
			continue;
		if (has_colour && styles[i].colour)
			attrset(styles[i].coloured | (attr_t)COLOR_PAIR(i + 1));
		else
			attrset(styles[i].plain);
		return strlen(styles[i].sgr);
	}
	if (sscanf(text, "\033[48;5;%um%n", &colour, &n) != 1 || colour > UINT8_MAX)
		return 0;
	init_pair((short)(HEAT_PAIRS + colour), -1, (short)colour);
	attrset(COLOR_PAIR(HEAT_PAIRS + colour));
	return n;
}

void screen_put(unsigned int line, const char *text, bool is_chosen)
{
	unsigned int width = screen_columns(), taken;

	if (line >= screen_lines())
		return;
	move((int)line, 0);
	for (size_t bytes; *text; text += bytes) {
		_cleanup_(freep) char *part = NULL;

		bytes = set_style(text);
		if (bytes)
			continue;
		bytes = strcspn(text + 1, "\033") + 1;
		part = strndup(text, bytes);
		if (!part)
			continue;
		grid_to_locale(part);
		taken = grid_width(part);
		addnstr(part, (int)grid_fit(part, width));
		width -= taken < width ? taken : width;
	}
	attrset(0);
	if (is_chosen)
		mvchgat((int)line, 0, -1, A_REVERSE, 0, NULL);
}

void screen_show(void)
{
	refresh();
	erase(); /* what is seen stays */
}

int screen_key(void)
{
	wint_t key;
	int kind = get_wch(&key);

	if (kind == ERR)
		return 0;
	if (kind == KEY_CODE_YES)
		return -(int)key;
	return key == 8 || key == 127 ? -KEY_BACKSPACE : (int)key;
}
