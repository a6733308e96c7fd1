// Package payday plays agencies that pay many people, in an installation of quittance-dev with its simulators: their
// people with passkeys and their policy, files of lines, approval and release, and what the simulated operators paid.
// The test of kills and the benchmark of disbursements use it.
//
// Files are imported by the program's own command. Whatever people sign is signed by passkeys whose keys are made of
// their names, and is sent as the pages send it.
package payday
