// Package budgets holds the first paint, and how soon citizens are told that their
// payment is made, against the budgets: QUITTANCE_BUDGETS=hold (`make test/budgets`,
// alone on the machine) holds them, QUITTANCE_BUDGETS=measure (`make bench/live`)
// measures more of it.
package budgets
