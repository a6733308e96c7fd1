package disbursements

import "quittance/disbursement"

// ProveEvents proves a batch from events, as Prove does from their records.
func ProveEvents(tenantID, batch string, events []disbursement.Event) Proof {
	p := prover{tenantID: tenantID, batch: batch, agencies: map[bool]disbursement.Agency{}, out: Proof{Offsets: [2]int64{-1, -1}}}
	for offset, e := range events {
		p.take(e, int64(offset))
	}
	p.end()
	return p.out
}
