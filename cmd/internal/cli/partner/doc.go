// Package partner has the commands of partners of the cash-in surface.
package partner
