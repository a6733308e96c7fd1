// Package cli has the commands of both programs: one command for each kind of role, and
// the commands of operators. Each noun of the operators' commands has one file.
package cli
