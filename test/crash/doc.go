// Package crash kills the program under load and counts what is lost or doubled.
//
// TestCrash starts every role at least twice, lets citizens create and pay
// sessions, and meanwhile kills a process every two seconds, the broker once,
// and keeps the processors' group rebalancing for a while. When all is quiet
// again it compares what clients, the operator, receivers and ERPs were told
// with the log, the processors' state, Postgres and ClickHouse, over every
// acknowledged request. The last line of its report is
//
//	lost=0 doubled=0 gaps=0 diverged=0 commands=N kills=K
//
// and any of the four that is not 0 fails the test. What each of them counts is
// explained at the type verdict.
//
// It is shortened in the normal suite and left out with -short. The environment
// says otherwise:
//
//	QUITTANCE_CRASH=full       a minute of load at 200 sessions a second, or at the
//	                           highest steady rate of the machine, at least 50
//	QUITTANCE_CRASH_RATE=N     sessions a second, without finding out
//	QUITTANCE_CRASH_SECONDS=N  of load, longer when the broker takes long to come back
//	QUITTANCE_CRASH_SEED=N     of what is killed when; printed by every run
//	QUITTANCE_CRASH_DIR=DIR    where data and the processes' output stay for a look
//	QUITTANCE_CRASH_REPORT=F   file that gets the report as well
package crash
