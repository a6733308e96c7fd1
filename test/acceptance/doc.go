// Package acceptance tests the finished program from outside: real processes of
// the binary that `go build` makes, on servers of their own, spoken to as
// integrators, citizens, operators and agencies speak to it.
//
// TestMainJob is what a newcomer does first, TestBadInput what is refused and
// how, TestBadDays what goes wrong on the way of a payment; they run `quittance
// up`. QUITTANCE_SHOTS names a folder that keeps pictures of the pages.
//
// # Browsers
//
// TestJourneys is one table of journeys, each on the hosted page with a script and
// without and in the demo shop's frame, and afterwards a search of the log for what
// must not stand there. TestPagesForEverybody audits every page and state with axe.
// TestSDKInBrowser holds the SDK and the frame's script against a page of its own,
// TestShopInBrowser the embedded checkout against what a shop and its visitors may
// do beside paying. QUITTANCE_BUDGETS=hold (`make test/budgets`, alone on the
// machine) holds the first paint and how soon citizens are told against the budgets,
// QUITTANCE_BUDGETS=measure (`make bench/live`) measures them; QUITTANCE_SCREENS=write
// (`make screens`) writes docs/screens.
//
// # The crash test
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
// said at type verdict.
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
package acceptance
