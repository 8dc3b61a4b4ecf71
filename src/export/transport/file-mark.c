/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/file-mark.h"

bool file_mark_look(struct file_mark *mark, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (mark->device == st.st_dev && mark->inode == st.st_ino && mark->size == st.st_size &&
	    mark->changed.tv_sec == st.st_mtim.tv_sec && mark->changed.tv_nsec == st.st_mtim.tv_nsec)
		return false;
	*mark = (struct file_mark){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
	return true;
}
