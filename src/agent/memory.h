/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Returns to the kernel what only the start needed: free memory, and the pages of the program and
 * its libraries that nobody else uses. Pages that are needed again are read again. Pages that a debugger or
 * a uprobe has changed stay as they are.
 */
void memory_return(void);
