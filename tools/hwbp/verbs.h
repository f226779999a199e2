/* SPDX-License-Identifier: GPL-2.0 */
/* The verbs, in the order of 'hwbp --help'. Each line needs a verb_NAME.c. */
VERB(watch)
VERB(stat)
VERB(slots)
VERB(text)
VERB(trace)
