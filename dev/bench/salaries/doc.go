// Package salaries measures how an agency pays many people: the import of a file, as CSV and as a workbook, until the
// batch is sealed, the payment of its lines by the simulated operators, the memory of each process, and what others
// notice meanwhile: integrators who create sessions, and another agency whose commands are in the same partition.
package salaries
