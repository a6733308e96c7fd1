// Package budgets holds what citizens wait for against the budgets: the first paint of
// the page, and how soon they are told that their payment is made. `make test/budgets`
// runs it, alone on the machine; `make bench/live` measures more.
package budgets
