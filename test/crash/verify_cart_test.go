package crash_test

import "fmt"

// cartSums are the numbers of the completed carts.
type cartSums struct {
	carts, late, items, accepted, receipts   int
	session, item, confirmed, receipt, model int64 // money without fees
}

func (c cartSums) String() string {
	return fmt.Sprintf("carts=%d late=%d items=%d accepted=%d receipts=%d; amount of sessions=%d items=%d ERPs=%d ClickHouse=%d read_model=%d",
		c.carts, c.late, c.items, c.accepted, c.receipts, c.session, c.item, c.confirmed, c.receipt, c.model)
}

// cart checks the carts: the amounts and the fees of the items add up to those of the
// session, and so do the items in every store and the receipts in ClickHouse, of which each
// due has one.
func (v *verdict) cart(h history, l *log) {
	receipts := map[string][]receipt{} // by transaction_id
	for _, r := range h.receipts {
		receipts[r.transaction] = append(receipts[r.transaction], r)
	}
	confirmed := map[string]int64{}
	for _, c := range h.confirmed {
		confirmed[c.transaction] = c.amount
	}
	v.keys(h, l)
	for session := range l.sessions {
		e := l.last(session)
		if !e.cart {
			continue
		}
		amount, _ := e.sums()
		if amount != e.after.amount {
			v.diverge("the items of %s add up to %d, the session is of %d", session, amount, e.after.amount)
		}
		var model int64
		for _, s := range h.stores {
			if got, has := s.items[session]; s.items != nil && (!has || got != amount) {
				v.diverge("the items of %s add up to %d in %s, to %d in the log", session, got, s.name, amount)
			} else if has {
				model = got // of the last such store, the read model
			}
		}
		completed := l.of(session, kindCompleted)
		if len(completed) == 0 {
			continue
		}
		e = completed[0]
		if _, fee := e.sums(); fee != e.after.fee {
			v.diverge("the fees of the items of %s add up to %d, the session's is %d", session, fee, e.after.fee)
		}
		c := &v.carts
		c.carts, c.session, c.item, c.model = c.carts+1, c.session+e.after.amount, c.item+amount, c.model+model
		if e.late {
			c.late++
		}
		for i, d := range e.dues {
			c.items++
			if got, ok := confirmed[d.transaction]; ok {
				c.accepted, c.confirmed = c.accepted+1, c.confirmed+got
			}
			for n, r := range receipts[d.transaction] {
				c.receipts, c.receipt = c.receipts+1, c.receipt+r.amount
				if want := (receipt{session, d.transaction, d.ref, int64(i + 1), d.amount, d.fee}); r != want {
					v.diverge("the receipt is %+v, want %+v", r, want)
				}
				if n > 0 {
					v.double("transaction %s of %s has %d receipts", d.transaction, session, n+1)
				}
			}
			if len(receipts[d.transaction]) == 0 {
				v.lose("transaction %s of %s has no receipt", d.transaction, session)
			}
		}
	}
}

// keys checks that no Idempotency-Key of a cart made two sessions, however often its request
// was repeated, and that a refused one made none.
func (v *verdict) keys(h history, l *log) {
	made := map[string]string{}
	for session, events := range l.sessions {
		e := events[0]
		if !e.cart {
			continue
		}
		if e.mark == "" {
			v.diverge("the cart %s does not say which request made it", session)
		} else if other, again := made[e.mark]; again {
			v.double("the key %s made the carts %s and %s", e.mark, other, session)
		}
		made[e.mark] = session
	}
	for _, key := range h.refused {
		if session, ok := made[key]; ok {
			v.diverge("the cart with the key %s was refused, and %s was made", key, session)
		}
	}
	v.count("carts in the log", len(made))
}

// sums adds up the dues of an event.
func (e event) sums() (amount, fee int64) {
	for _, d := range e.dues {
		amount += d.amount
		fee += d.fee
	}
	return amount, fee
}
