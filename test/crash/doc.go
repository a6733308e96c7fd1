// Package crash kills the program under load and counts what is lost or doubled.
//
// TestCrash starts every role at least twice. Integrators create sessions and citizens pay
// them. One payment in twenty is made by the program of a partner, through the deprecated
// cash-in surface. As often two citizens sign in to the portal and pay dues of one subject of
// an agency's ERP, whole and in parts, and both carts have one of the dues. Each repeats the
// request of the cart, without an answer and after one. Operators approve some payments late, clerks
// take cash and give it back, and staff resolve operator cases and give back payments, and single dues of carts. Meanwhile the test kills a
// process every two seconds, or stops an ingress as a deployment does. It kills the broker
// once, makes the processors' group rebalance for a while, and replaces the data of
// PostgreSQL by an older backup. When nothing is under way any more, it compares the log,
// the processors' state, Postgres and ClickHouse with the answers and messages that
// clients, the operator, receivers and ERPs got.
//
// Then the days of the load end. The operator's and the bank's statements are imported, people confirm
// the payouts and close the accounts, while imports and the programs that the statements pass through
// are killed. The closes must hold: their sums add up, and package audit computes the same roots from
// Kafka alone. Of the payments so many are sampled (40 of one agency, or 1,000 of all in a full run), and each must be proved
// by both closes, with the operator's line that has its reference and with the bank's line. The last
// lines of the report are
//
//	carts=N late=N items=N accepted=N receipts=N; amount of sessions=X items=X ERPs=X ClickHouse=X read_model=X
//	lost=0 doubled=0 gaps=0 diverged=0 blocked=0 untold=0 commands=N kills=K
//
// The first is about the completed carts. The test fails if one of the first six numbers of
// the second is not 0. The type verdict explains what each of them counts.
//
// TestCrashOfBatches starts the processors, sinks and read models of disbursement batches twice each. Agencies import
// files, whose lines go to both simulated operators, and the payees' numbers make each fault that the operators have.
// Meanwhile the test kills processes, the broker and PostgreSQL, makes the sink lose its offsets, has the operators refuse
// requests and answer too late, holds a batch, and leaves an agency without money for a while. Then the clock of the
// service moves until all is decided; people are asked about lines that are undecided for a day, and the operators decide
// these at last. Who was paid, and how often, is read from the operators' ledgers alone: each line has an amount of
// its own. The last line of the report is
//
//	lines=N paid=N returned=N paid_twice=0 lost=0 stuck=0 cases=faults (N)
//
// lost counts lines of which the service says another thing than the ledgers, stuck those that nobody decides, and cases
// those about which people are asked: they are those whose payees leave a doubt.
//
// TestCrashOfOffice has two people work on the pages of staff, over HTTP and with passkeys: they decide about cash that was
// taken twice, and have webhooks sent again in bulk. Meanwhile the test kills the pages, the sinks that carry out what they
// decide, the processor, the broker and PostgreSQL. What a page has said must be true. The last line of the report is
//
//	decisions=N rows=N lost=0 twice=0 audit=complete
//
// decisions counts signed steps, rows those of jobs. lost counts steps that a page has said were taken and that the audit table
// lacks, cases that are still open and rows without an end; twice counts steps, resolutions in Kafka and rows that were done
// more than once. audit is complete when the audit table and its topic are equal and each decision is proven.
//
// The normal suite runs a short version; -short leaves it out. The environment changes the
// run:
//
//	QUITTANCE_CRASH=full       a minute of load at 200 sessions a second, or at the
//	                           highest steady rate of the machine, at least 50
//	                           and 50,000 lines of 16 agencies, and 1,200 cases
//	QUITTANCE_CRASH_LINES=N    lines of batches
//	QUITTANCE_CRASH_MUTANT=M   build the program of the batches with a patch of test/mutants
//	QUITTANCE_CRASH_RATE=N     sessions a second, without a search for the steady rate
//	QUITTANCE_CRASH_SECONDS=N  of load; longer if the broker needs long to restart
//	QUITTANCE_CRASH_SEED=N     seed of the kills; every run prints its seed
//	QUITTANCE_CRASH_DIR=DIR    folder that keeps the data and the processes' output
//	QUITTANCE_CRASH_REPORT=F   file that also gets the report
package crash
