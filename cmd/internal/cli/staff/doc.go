// Package staff has the commands of staff.
package staff
