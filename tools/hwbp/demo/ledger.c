// SPDX-License-Identifier: GPL-2.0
/*
 * A small ledger with a bug.
 *
 * Teller threads post entries to an account and count them under its lock.  A clerk
 * thread renames the account now and then.  At the end the program compares the
 * account's counter with the number of entries that the tellers have posted.  Both
 * should be equal: only the three account_*() functions write the counter, and they
 * hold the lock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LABEL_SIZE	16
#define NR_TELLERS	3
#define NR_ENTRIES	400
#define NR_RENAMES	40

struct account {
	pthread_mutex_t lock;
	long balance;
	char label[LABEL_SIZE];
	unsigned long posted;
};

static struct account account = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.label = "opening",
};

static const char *const customers[] = {
	"Ada Lovelace",
	"Alan Turing",
	"Grace Hopper",
	"Barbara Liskov",
	"Tim Berners-Lee",
	"Edsger W. Dijkstra",
	"Ken Thompson",
	"Donald E. Knuth",
};

#define NR_CUSTOMERS	(sizeof(customers) / sizeof(customers[0]))

static void account_deposit(long amount)
{
	pthread_mutex_lock(&account.lock);
	account.balance += amount;
	account.posted++;
	pthread_mutex_unlock(&account.lock);
}

static void account_withdraw(long amount)
{
	pthread_mutex_lock(&account.lock);
	account.balance -= amount;
	account.posted++;
	pthread_mutex_unlock(&account.lock);
}

static void account_charge_fee(void)
{
	pthread_mutex_lock(&account.lock);
	account.balance -= 1;
	account.posted++;
	pthread_mutex_unlock(&account.lock);
}

/* Copy at most @size characters of a label. */
static void copy_label(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i < size && from[i]; i++)
		to[i] = from[i];
	to[i] = '\0';
}

static void account_rename(const char *name)
{
	pthread_mutex_lock(&account.lock);
	copy_label(account.label, name, LABEL_SIZE);
	pthread_mutex_unlock(&account.lock);
}

static void pause_us(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/* Returns the number of entries that this teller has posted. */
static void *teller(void *arg)
{
	unsigned long posted = 0;
	long n;

	pthread_setname_np(pthread_self(), "teller");
	for (n = 0; n < NR_ENTRIES; n++) {
		long kind = (n + (long)arg) % 4;

		if (kind < 2)
			account_deposit(100);
		else if (kind == 2)
			account_withdraw(30);
		else
			account_charge_fee();
		posted++;
		if (n % 8 == 0)
			pause_us(500);
	}
	return (void *)posted;
}

static void *clerk(void *arg)
{
	int n;

	(void)arg;
	pthread_setname_np(pthread_self(), "clerk");
	for (n = 0; n < NR_RENAMES; n++) {
		account_rename(customers[n % NR_CUSTOMERS]);
		pause_us(1000);
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), long n)
{
	if (pthread_create(thread, NULL, run, (void *)n)) {
		fprintf(stderr, "ledger: cannot start a thread\n");
		exit(2);
	}
}

int main(void)
{
	pthread_t tellers[NR_TELLERS], renamer;
	unsigned long expected = 0;
	void *posted;
	long i;

	start(&renamer, clerk, 0);
	for (i = 0; i < NR_TELLERS; i++)
		start(&tellers[i], teller, i);
	for (i = 0; i < NR_TELLERS; i++) {
		pthread_join(tellers[i], &posted);
		expected += (unsigned long)posted;
	}
	pthread_join(renamer, NULL);

	printf("ledger: the tellers posted %lu entries, the counter says %lu: %s\n",
	       expected, account.posted, account.posted == expected ? "right" : "WRONG");
	return account.posted != expected;
}
